// Statistics: counts and times of each step and source.

import { z } from 'zod';
import { timestamp } from './fields.ts';

const percentiles = z
  .object({ p50: z.number(), p90: z.number(), p99: z.number() })
  .nullable()
  .describe('Milliseconds, right to 10 %; null where nothing was measured.');

export const StatsItem = z
  .object({
    at: timestamp.describe('When the step begins.'),
    source: z.string(),
    deliveries: z
      .record(z.string(), z.int())
      .describe('By outcome; `unavailable` was answered with 503 and left no delivery.'),
    answer_ms: percentiles,
    publications: z
      .record(z.string(), z.int())
      .describe('Publish attempts by result, without those of replays.'),
    lag_ms: percentiles,
  })
  .meta({
    id: 'StatsItem',
    description: 'One step of one source. Steps in which nothing happened are left out.',
  });

export const Stats = z
  .object({
    from: timestamp,
    to: timestamp,
    step: z.int().describe('Seconds, as they were taken.'),
    items: z.array(StatsItem),
  })
  .meta({ id: 'Stats', description: 'What happened from `from` to `to`, in steps.' });

export type StatsItem = z.infer<typeof StatsItem>;
