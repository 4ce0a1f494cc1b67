// The quarantine: the filters of its list, and the order and answers of a release.

import { z } from 'zod';
import { flag, job, orderCursor, plain, range, source } from './filters.ts';

/** One transaction locks as many jobs. */
export const RELEASED_AT_ONCE = 100;

export const quarantineFilters = {
  source: source.optional(),
  status: plain(128).optional().describe('As it was sent.'),
  ...job,
  ...range,
  released: flag.optional().describe('Those that an operator has released, and not those that wait.'),
};

const { released: _released, ...releaseFilters } = quarantineFilters;

export const ReleaseOrder = z
  .strictObject({
    filter: z.strictObject(releaseFilters).describe('As in the list of the quarantine; empty for all.'),
    limit: z.int().min(1).max(RELEASED_AT_ONCE).default(RELEASED_AT_ONCE),
    cursor: orderCursor,
  })
  .meta({ id: 'ReleaseOrder', description: 'Which deliveries to release, oldest first.' });

export const ReleaseResult = z
  .object({
    delivery_id: z.uuid(),
    result: z
      .enum(['accepted', 'duplicate', 'conflict', 'still_quarantined'])
      .describe('What it would have been, had it been understood when it came.'),
    event_id: z.string().nullable(),
    reason: z.string().nullable().describe('Why it is still not understood.'),
  })
  .meta({ id: 'ReleaseResult', description: 'What became of a quarantined delivery.' });

export const ReleasePage = z
  .object({
    items: z.array(ReleaseResult),
    next_cursor: z.string().nullable().describe('For the next call; null when all have had their turn.'),
  })
  .meta({ id: 'ReleasePage', description: 'What became of some of them.' });

export type ReleaseOrder = z.input<typeof ReleaseOrder>;
