// Sizes: what the tables hold, and what a day adds.

import { z } from 'zod';

const rows = z.int().describe('Estimated by Postgres’ own statistics, and not counted.');
const bytes = z
  .int()
  .describe('On disk: rows, bodies stored beside their rows (TOAST), indexes, free space.');

const TableSize = z
  .object({
    table: z.string(),
    days: z
      .int()
      .nullable()
      .describe('How many daily partitions there are, with those made ahead. Null if it has none.'),
    rows,
    bytes,
    index_bytes: z.int().describe('Of `bytes`, those of indexes.'),
    kept: z
      .enum(['retention', 'for_good', 'while_needed'])
      .describe(
        'How long a row is kept: for `RETENTION_DAYS`, for good, or as long as the service needs it.',
      ),
    a_day: z
      .object({ rows, bytes })
      .nullable()
      .describe(
        'What a day adds. Of tables with days, the mean of the days in `days_measured`. Of `events`, by the deliveries that were ' +
          'accepted on these days; of `jobs`, as many for an event as there are now. Null of all others, which do not grow with ' +
          'deliveries, and before the first whole day.',
      ),
    bytes_at_retention: z
      .int()
      .nullable()
      .describe('What it comes to at that rate once it has all days of `RETENTION_DAYS`, and today’s.'),
  })
  .meta({ id: 'TableSize', description: 'A table with all its partitions.' });

export const Sizes = z
  .object({
    retention_days: z.int().describe('`RETENTION_DAYS` of the replica that answers.'),
    days_measured: z
      .int()
      .describe(
        'The whole days, of UTC, that `a_day` is of: at most the last seven. 0 before the first one is over.',
      ),
    database_bytes: z.int().describe('The whole database, with what is not Tallyhook’s. Without WAL.'),
    all_tables: z.object({
      bytes,
      a_day_bytes: z.int().nullable().describe('What a day adds to all tables.'),
      for_good_a_day_bytes: z
        .int()
        .nullable()
        .describe(
          'Of that, what is kept for good: so much the tables go on growing once the retention is full.',
        ),
      bytes_at_retention: z.int().nullable().describe('Of the tables with days, once the retention is full.'),
    }),
    items: z.array(TableSize).describe('The largest first.'),
  })
  .meta({ id: 'Sizes', description: 'What the tables hold, what a day adds, and what it comes to.' });

export type TableSize = z.infer<typeof TableSize>;
export type Sizes = z.infer<typeof Sizes>;
