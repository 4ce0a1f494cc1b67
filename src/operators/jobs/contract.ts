// Jobs: the fields that the API shows, and the filters of its list.

import { z } from 'zod';
import { STUCK_AFTER_S } from '../../base/time/stuck-after.ts';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { eventStatus, timestamp } from '../kernel/list/fields.contract.ts';
import { filter, job, range, source, stateFilter, wholeNumber } from '../kernel/list/filters.contract.ts';

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
    is_held: z
      .boolean()
      .describe(
        'An event of it could not be published so far, and its later ones wait behind that one: see its story.',
      ),
    error_code: z.string().nullable().optional().describe('Of its failure.'),
    duration_ms: z
      .int()
      .nullable()
      .describe(
        'From its first delivery to its end. Null while it has no end, and if that was its first delivery.',
      ),
  })
  .meta({ id: 'Job', description: 'What the deliveries of a job reported.' });

export const jobFilters = {
  source,
  state: stateFilter(z.enum(['processing', 'completed', 'failed', 'stuck']), {
    help: 'processing, completed, failed, or stuck: without an end for too long',
  }),
  stuck_after: filter(
    wholeNumber(60, 31_536_000).describe(
      `With \`state=stuck\`: seconds since it was first seen, without an end. ${STUCK_AFTER_S} where not given.`,
    ),
    {
      label: 'Stuck after',
      option: 'stuck-after',
      takes: 'TIME',
      converts: 'seconds',
      help: 'with --state stuck: first seen longer ago than this: 90s, 15m, 24h, 7d (1h)',
    },
  ),
  ...job,
  ...range,
};

export type Job = z.infer<typeof Job>;

export const jobColumns = columnsOf<Job>()({
  first_seen_at: { head: 'first seen (UTC)', look: 'time' },
  source: { head: 'source', look: 'name' },
  job_id: { head: 'job', look: 'name' },
  state: { head: 'state', look: 'word' },
  highest_progress: {
    head: 'progress',
    look: 'percent',
    // A completed job has often told of less than 100 %: its last progress would say that it is not complete.
    of: ({ completed_at: end, highest_progress: percent }) => (end === null ? percent : null),
  },
  is_held: {
    head: 'bus',
    look: 'word',
    isRare: true,
    of: ({ is_held: isHeld }) => (isHeld ? 'held back' : null),
  },
  error_code: { head: 'error', look: 'name', isRare: true },
  last_seen_at: { head: 'last heard of', look: 'age', isMinor: true },
  duration_ms: { head: 'took', look: 'duration' },
});
