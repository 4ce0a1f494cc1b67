// Statistics: counts and times of each step and source, and of all of them.

import { z } from 'zod';
import { timestamp } from '../kernel/list/fields.contract.ts';

const percentiles = z
  .object({ p50: z.number(), p90: z.number(), p99: z.number() })
  .nullable()
  .describe('Milliseconds, accurate to 10 %; null where nothing was measured.');

const figures = {
  deliveries: z
    .record(z.string(), z.int())
    .describe('By outcome; `unavailable` was answered with 503 and left no delivery.'),
  answer_ms: percentiles,
  publications: z
    .record(z.string(), z.int())
    .describe('Publish attempts by result, without those of replays.'),
  lag_ms: percentiles,
};

/** No source has this name. */
export const TOGETHER = '*';

export const StatsItem = z
  .object({
    at: timestamp.describe('When the step begins.'),
    source: z.string().describe(`\`${TOGETHER}\` where the sources were asked for together.`),
    ...figures,
  })
  .meta({
    id: 'StatsItem',
    description: 'One step of one source, or of all together. Steps in which nothing happened are left out.',
  });

export const StatsTotal = z.object({ from: timestamp, to: timestamp, ...figures }).meta({
  id: 'StatsTotal',
  description:
    'All sources together. `from` and `to` are those that were asked for, widened to whole minutes and not to whole ' +
    'steps (to whole hours where counts are kept by the hour). The percentiles are those of all answers and events, ' +
    'and no mean of percentiles.',
});

export const WaitsItem = z
  .object({
    at: timestamp.describe('When the step begins.'),
    pending: z.int().describe('Events to publish.'),
    returned: z.int(),
    parked: z.int(),
    quarantined: z.int().describe('Deliveries, counted up to 1,000.'),
    oldest_pending_s: z
      .number()
      .describe('Seconds for which the oldest pending event had waited; 0 where none did.'),
  })
  .meta({
    id: 'WaitsItem',
    description:
      'The most that waited at any moment of a step. Steps in which nobody looked are left out, as while Postgres is away.',
  });

export const Stats = z
  .object({
    from: timestamp,
    to: timestamp,
    step: z.int().describe('Seconds, as they were taken.'),
    items: z.array(StatsItem),
    total: StatsTotal,
    waits: z
      .array(WaitsItem)
      .describe('Of all sources, seen every ten seconds. Empty where one source, or some, are asked for.'),
  })
  .meta({ id: 'Stats', description: 'What happened from `from` to `to`, in steps.' });

export type StatsItem = z.infer<typeof StatsItem>;
export type StatsTotal = z.infer<typeof StatsTotal>;
export type WaitsItem = z.infer<typeof WaitsItem>;
