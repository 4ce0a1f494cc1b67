// How a list is read: which index finds the rows of a question, a page of them, and where the next one begins. Costs the
// same on every page, and never more than a bounded number of rows: where filters meet that no index serves together, a
// page may be short, or empty, before the end of its list.

import type { Kysely, RawBuilder } from 'kysely';
import type { Database } from '../../ledger/index.ts';
import type { Position, ValueType } from './cursor.ts';
import {
  type Access,
  type Bounds,
  type Condition,
  countStatement,
  inspectedStatement,
  pageStatement,
  reachStatement,
  type Spec,
} from './scan.ts';

/** A filter: as a condition for any row, and the index that finds its rows, if there is one. */
export type Filter = { readonly condition: Condition; readonly access?: Access };

/** What is asked of a list. */
export type Question = {
  readonly filters: readonly Filter[];
  /** An access that is taken whatever else is asked: it leads to the rows of one job or event. */
  readonly sure?: Access;
  /** One that is good if it leads to few rows; else it is a condition as others. */
  readonly maybe?: {
    readonly access: Access & { by: 'few'; readonly sources: readonly string[] | null };
    readonly condition: Condition;
    readonly atMost: number;
  };
} & Pick<Bounds, 'from' | 'to'>;

export type Page<Item> = { readonly items: readonly Item[]; readonly next: Position | null };
export type PageOptions = {
  /** Rows behind this place; null for the first ones. */
  readonly after: Position | null;
  readonly limit: number;
};

/** What all lists have in common for those who show or export them. */
export type List<Filters, Item> = {
  /** Of the values of a position in it. */
  readonly types: readonly ValueType[];
  /** `limit`: how many items at most, from 1. A place that a page gave leads to the page behind it. */
  readonly read: (db: Kysely<Database>, filters: Filters, options: PageOptions) => Promise<Page<Item>>;
};

/** Some 10 ms of rows in memory. Full pages come of it wherever one row of 100 is meant. */
const INSPECT = 5_000;
/** Of each value of an access: few enough for the many sources that a token may be limited to. */
const INSPECT_EACH_MIN = 500;
/** So many of its rows are looked for to tell which of several accesses reaches back the farthest. */
const REACH = 500;

export const typesOf = (spec: Spec): readonly ValueType[] => ['time', ...spec.ties.map(({ type }) => type)];

/** The rows as the statement shows them, and the place where the next page begins. */
export async function readPage(
  db: Kysely<Database>,
  spec: Spec,
  question: Question,
  { after, limit }: PageOptions,
): Promise<{ rows: Record<string, unknown>[]; next: Position | null }> {
  const run: Run = async (statement) => (await statement.execute(db)).rows;
  const bounds: Bounds = { after, from: question.from, to: question.to };
  const { access, rest } = await chooseAccess(run, spec, question, bounds);
  const each = access.by === 'column' ? access.values.length : 1;
  const inspect = Math.max(INSPECT_EACH_MIN, Math.ceil(INSPECT / Math.max(1, each)));
  const rows = await run(pageStatement(spec, { access, rest, bounds, limit: limit + 1, inspect }));
  if (rows.length > limit) {
    const shown = rows.slice(0, limit);
    return { rows: shown, next: placeOf(spec, shown.at(-1)) };
  }
  if (rest.length === 0 || access.by === 'few') return { rows, next: null };
  const [end] = await run(inspectedStatement(spec, { access, bounds, inspect }));
  if (end === undefined) return { rows, next: null };
  const next = Object.values(end);
  // Behind that place other values of the access have not been looked at, or rows have come since.
  return { rows: rows.filter((row) => compare(spec, placeOf(spec, row), next) >= 0), next };
}

type Run = <T>(statement: RawBuilder<T>) => Promise<T[]>;

async function chooseAccess(
  run: Run,
  spec: Spec,
  { filters, sure, maybe }: Question,
  bounds: Bounds,
): Promise<{ access: Access; rest: readonly Condition[] }> {
  const all = filters.map(({ condition }) => condition);
  if (sure !== undefined) return { access: sure, rest: all };
  const serving = filters.filter((filter) => filter.access !== undefined);
  const others = maybe === undefined ? [] : [maybe.condition];
  if (maybe !== undefined) {
    const { condition, sources } = maybe.access;
    const [found] = await run(countStatement(spec, { condition, sources, limit: maybe.atMost + 1 }));
    if (found !== undefined && found.count <= maybe.atMost) return { access: maybe.access, rest: all };
  }
  const best = await farthestReaching(run, spec, serving, bounds);
  if (best?.access === undefined) return { access: { by: 'time' }, rest: [...all, ...others] };
  const rest = filters.filter((filter) => filter !== best).map(({ condition }) => condition);
  return { access: best.access, rest: [...rest, ...others] };
}

/** Of several indexes the one with the fewest rows hereabouts: how far its next rows reach back tells. */
async function farthestReaching(
  run: Run,
  spec: Spec,
  filters: readonly Filter[],
  bounds: Bounds,
): Promise<Filter | undefined> {
  if (filters.length < 2) return filters[0];
  const accesses = filters.flatMap(({ access }) => access ?? []);
  const [reached = {}] = await run(reachStatement(spec, { accesses, bounds, count: REACH }));
  const reach = filters.map((_, index) => reached[`a${index}`] ?? Number.NEGATIVE_INFINITY);
  return filters[reach.indexOf(Math.min(...reach))];
}

/** A row's place: its columns of the order, which every list shows under their own names. */
function placeOf(spec: Spec, row: Record<string, unknown> | undefined): Position {
  return [spec.time, ...spec.ties.map(({ column }) => column)].map((name) => String(row?.[name]));
}

/** Above zero where `a` comes before `b` in a list, newest first. */
function compare(spec: Spec, a: Position, b: Position): number {
  for (const [index, type] of typesOf(spec).entries()) {
    const [one = '', other = ''] = [a[index], b[index]];
    if (one === other) continue;
    if (type === 'bigint') return BigInt(one) > BigInt(other) ? 1 : -1;
    return Buffer.compare(Buffer.from(one), Buffer.from(other));
  }
  return 0;
}
