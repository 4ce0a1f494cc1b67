// The filters of the live stream.

import { z } from 'zod';
import { eventStatus, kind, outcome, publicationResult } from './fields.ts';
import { jobId, source } from './filters.ts';

export const liveFilters = {
  events: z.enum(['deliveries', 'publications']).optional().describe('Both where not given.'),
  source: source.optional(),
  outcome: outcome.optional().describe('Then no publications come.'),
  result: publicationResult.optional().describe('Then no deliveries come.'),
  status: eventStatus.optional(),
  kind: kind.optional(),
  job_id: jobId.optional(),
};
