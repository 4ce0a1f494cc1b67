// The filters of the live stream.

import { z } from 'zod';
import { eventStatus, outcome, publicationResult } from '../kernel/list/fields.contract.ts';
import {
  filter,
  job,
  kindFilter,
  outcomeFilter,
  resultFilter,
  source,
  statusFilter,
} from '../kernel/list/filters.contract.ts';

export const liveFilters = {
  events: filter(z.enum(['deliveries', 'publications']).describe('Both where not given.'), {
    label: 'Show',
    option: 'events',
    takes: 'WHAT',
    help: 'deliveries or publications (both)',
  }),
  source,
  outcome: filter(outcome.describe('Then no publications come.'), outcomeFilter.form),
  result: filter(publicationResult.describe('Then no deliveries come.'), resultFilter.form),
  status: statusFilter(eventStatus),
  kind: kindFilter,
  job_id: job.job_id,
};
