// Prints lists and single items: tables on a terminal, otherwise JSON as the API gave it.

import { UsageError } from '../base/errors.ts';
import { whole } from './arguments.ts';
import type { Io } from './io.ts';
import { flag, option } from './options.ts';
import { counted } from './readable.ts';
import { type Column, layTable, type TableOptions, terminalWidth } from './table.ts';
import { SHORTENED } from './text-width.ts';

/** Rows that a table waits for: more would keep the reader waiting for the first. */
const TABLE_ROWS = 200;
const LIMIT = 50;
const LIMIT_MAX = 1_000_000;

export const LISTING_OPTIONS = {
  limit: option('N', `at most N (${LIMIT})`),
  all: flag('all of them'),
} as const;

/** `isGiven`: the user set it, so that a note that there may be more is not needed. */
export type Limit = { readonly max: number; readonly isGiven: boolean };

/** How many items are asked for. @throws UsageError */
export function limitOf({ limit, all }: { limit?: string | undefined; all?: boolean | undefined }): Limit {
  if (all && limit !== undefined) throw new UsageError('--limit and --all exclude each other');
  if (all) return { max: Number.POSITIVE_INFINITY, isGiven: true };
  const max = whole('--limit', limit, LIMIT, { min: 1, max: LIMIT_MAX });
  return { max, isGiven: limit !== undefined };
}

/** As wide as the terminal. */
export async function printTable<T>(
  io: Io,
  rows: readonly T[],
  columns: readonly Column<T>[],
  options: Pick<TableOptions, 'head'> = {},
): Promise<void> {
  const { text, isShortened } = layTable(rows, columns, {
    width: terminalWidth(io),
    paint: io.paint,
    ...options,
  });
  await io.put(`${text}\n`);
  if (!isShortened) return;
  io.complain(io.paint('dim', `ids with "${SHORTENED}" are shortened; to see them whole, pipe to "cat"`));
}

/** `noun`: of one item, for the line that says that there is none, or that there may be more. */
export async function printList<T>(
  io: Io,
  items: AsyncIterable<T>,
  options: {
    readonly columns: readonly Column<T>[];
    readonly noun: string;
    readonly limit: Limit;
  },
): Promise<number> {
  const { columns, noun, limit } = options;
  const isForPeople = io.stdout.isTTY;
  let rows: T[] = [];
  let printed = 0;
  const flush = async () => {
    if (rows.length === 0) return;
    printed += rows.length;
    // With their heads each time: which columns there are depends on the rows.
    await printTable(io, rows, columns);
    rows = [];
  };
  for await (const item of items) {
    if (!isForPeople) {
      printed += 1;
      await io.putJson(item);
      continue;
    }
    rows.push(item);
    if (rows.length >= TABLE_ROWS) await flush();
  }
  await flush();
  if (printed === 0) io.complain(`no ${counted(2, noun).slice(2)} match`);
  else if (printed === limit.max && !limit.isGiven)
    io.complain(`the first ${counted(printed, noun)}; there may be more: --limit N, --all`);
  return 0;
}

type Field = readonly [name: string, value: string | number | boolean | null | undefined];

const FIELD_COLUMNS: readonly Column<Field>[] = [
  { head: '', text: ([name]) => name, colour: () => 'dim' },
  { head: '', text: ([, value]) => String(value), wrapTo: 20 },
];

/** Names and values on a terminal, without those that have none; otherwise one line of JSON. */
export async function printOne(io: Io, item: object, fields: readonly Field[]): Promise<void> {
  if (!io.stdout.isTTY) return io.putJson(item);
  const known = fields.filter(([, value]) => value !== undefined && value !== null && value !== '');
  await printTable(io, known, FIELD_COLUMNS, { head: false });
}
