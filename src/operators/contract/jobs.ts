// Jobs: the fields that the API shows, and the filters of its list.

import { z } from 'zod';
import { eventStatus, timestamp } from './fields.ts';
import { job, range, source, wholeNumber } from './filters.ts';

export const Job = z
  .object({
    source: z.string(),
    job_id: z.string(),
    state: eventStatus,
    highest_progress: z.int().nullable(),
    first_seen_at: timestamp,
    last_seen_at: timestamp,
    completed_at: timestamp.nullable(),
    failed_at: timestamp.nullable(),
    terminal_at: timestamp.nullable(),
    duration_ms: z.int().nullable().describe('From its first delivery to its end.'),
  })
  .meta({ id: 'Job', description: 'What the deliveries of a job reported.' });

export const jobFilters = {
  source: source.optional(),
  state: z.enum(['processing', 'completed', 'failed', 'stuck']).optional(),
  stuck_after: wholeNumber(60, 31_536_000)
    .optional()
    .describe('With `state=stuck`: seconds since it was first seen, without an end. 3600 where not given.'),
  ...job,
  ...range,
};

export type Job = z.infer<typeof Job>;
