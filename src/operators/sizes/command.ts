// `tallyhook sizes`: what the tables hold, what a day adds, and what that comes to.

import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { bytes, count, counted, NOTHING } from '../../terminal/readable.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { numberColumn } from '../kernel/list/looks.command.ts';

const help = `What the tables hold now, what a day adds, and what that comes to once RETENTION_DAYS are full.

  sizes                 on a terminal the largest tables; in a pipe all of them, as one JSON object

Rows are estimated and no table is counted, so it may be asked at any time. Sizes are those on disk, with indexes and free
space. "a day" is the mean of the last whole days (UTC), at most seven.`;

type Sizes = Answers['sizes'];
type TableSize = Sizes['items'][number];

/** The others are a few pages each, unless something waits. */
const TABLES_SHOWN = 8;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  parse(args, {});
  const sizes = await openApi(env, io).client.sizes();
  if (!io.stdout.isTTY) {
    await io.putJson(sizes);
    return 0;
  }
  await printTable(io, shownTables(sizes.items), SIZES);
  await io.put(`\n${summaryOf(sizes).join('\n')}\n`);
  return 0;
}

export function shownTables(items: readonly TableSize[]): readonly TableSize[] {
  const others = items.slice(TABLES_SHOWN);
  if (others.length === 0) return items;
  const sum = (of: (item: TableSize) => number) => others.reduce((total, item) => total + of(item), 0);
  const rest: TableSize = {
    table: `${others.length} others`,
    days: null,
    rows: sum(({ rows }) => rows),
    bytes: sum((item) => item.bytes),
    index_bytes: sum((item) => item.index_bytes),
    kept: '',
    a_day: null,
    bytes_at_retention: null,
  };
  return [...items.slice(0, TABLES_SHOWN), rest];
}

const KEPT: Readonly<Record<string, string>> = {
  retention: 'RETENTION_DAYS',
  for_good: 'for good',
  while_needed: 'while needed',
};

export const SIZES: readonly Column<TableSize>[] = [
  { head: 'table', text: (item) => item.table },
  numberColumn('days', ({ days }) => (days === null ? '' : count(days))),
  numberColumn('rows', ({ rows }) => count(rows)),
  numberColumn('on disk', (item) => bytes(item.bytes)),
  { ...numberColumn('indexes', (item: TableSize) => bytes(item.index_bytes)), drop: true },
  {
    ...numberColumn('rows a day', ({ a_day: day }: TableSize) => (day === null ? '' : count(day.rows))),
    drop: true,
  },
  numberColumn('a day', ({ a_day: day }) => (day === null ? '' : bytes(day.bytes))),
  { head: 'kept', text: ({ kept }) => KEPT[kept] ?? kept },
];

const DAYS_OF_A_YEAR = 365;

const shown = (value: number | null) => (value === null ? NOTHING : bytes(value));

export function summaryOf({
  all_tables: all,
  retention_days: retention,
  days_measured: days,
  ...sizes
}: Sizes): string[] {
  const now = `${bytes(all.bytes)} in all; the whole database ${bytes(sizes.database_bytes)}, without WAL.`;
  const forGood = all.for_good_a_day_bytes;
  if (days === 0 || forGood === null)
    return [now, 'What a day adds is known once a whole day (UTC) is over.'];
  return [
    now,
    `A day adds ${shown(all.a_day_bytes)} (the last ${counted(days, 'whole day')}).`,
    `With RETENTION_DAYS=${retention} full, the tables with days take ${shown(all.bytes_at_retention)}.`,
    `What is kept for good grows by ${shown(forGood)} a day, ${bytes(forGood * DAYS_OF_A_YEAR)} a year.`,
  ];
}

export const sizes: Command = { help, run };
