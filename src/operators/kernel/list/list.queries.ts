// How a list is read: which index leads to the rows, a page of them, and where the next page begins. Each page costs about
// the same, and reads a bounded number of rows: with several filters that no one index serves, a page may be short, or empty,
// before the end of the list (docs/decisions/2026-11-22-access-paths.md).

import { type Kysely, sql } from 'kysely';
import type { Database } from '../../../ledger/index.ts';
import type { AccessPath, Condition } from './access-path.queries.ts';
import type { Position, ValueType } from './cursor.ts';
import { type Filter, type FilterTable, filtersOf } from './filters.queries.ts';
import { type Bounds, type Limit, type ListSpec, orderOf } from './range.queries.ts';
import { pageStatement, reachStatement } from './scan.queries.ts';

/** What is asked of a list. */
export type Question = { readonly filters: readonly Filter[] } & Pick<Bounds, 'from' | 'to'>;

/** For lists that need nothing but their table. */
export const questionOf =
  <Asked extends { readonly from?: string | undefined; readonly to?: string | undefined }>(
    table: FilterTable<Asked>,
  ) =>
  (asked: Asked): Question => ({ from: asked.from, to: asked.to, filters: filtersOf(table, asked) });

export type Page<Item> = { readonly items: readonly Item[]; readonly next: Position | null };
export type PageOptions = {
  /** Rows behind this place; null for the first page. */
  readonly after: Position | null;
  /** At least 1. */
  readonly limit: number;
};

/** A list, for those who show or export it. */
export type List<Filters, Item> = {
  /** The types of the values of a position in it. */
  readonly types: readonly ValueType[];
  /** `next` of a page is the `after` of the page behind it. */
  readonly read: (db: Kysely<Database>, filters: Filters, options: PageOptions) => Promise<Page<Item>>;
};

/** Rows that a page reads at most: some 10 ms in memory. Enough for a full page if one row of 100 is wanted. */
const INSPECT = 5_000;
/** Rows of each key of a path at least, however many keys there are (a token's sources). */
const INSPECT_EACH_MIN = 500;
/** Rows of each path that are compared, to find the one that reaches back the farthest. */
const COMPARED = 500;

export function createList<Filters, Row extends Record<string, unknown>, Item>(
  spec: ListSpec<Row>,
  { toQuestion, toItem }: { toQuestion: (filters: Filters) => Question; toItem: (row: Row) => Item },
): List<Filters, Item> {
  return {
    types: typesOf(spec),
    read: async (db, filters, options) => {
      const { items, next } = await readPage(db, spec, toQuestion(filters), options);
      return { items: items.map(toItem), next };
    },
  };
}

const typesOf = <Row>({ ties }: ListSpec<Row>): readonly ValueType[] => [
  'time',
  ...ties.map(({ type }) => type),
];

async function readPage<Row extends Record<string, unknown>>(
  db: Kysely<Database>,
  spec: ListSpec<Row>,
  { filters, from, to }: Question,
  { after, limit }: PageOptions,
): Promise<Page<Row>> {
  const bounds: Bounds = { after, from, to };
  const { paths, rest } = await choosePaths(db, spec, filters, bounds);
  let page: Page<Row> = { items: [], next: null };
  for (const path of paths) {
    page = await readByPath(db, spec, { path, rest, bounds, limit });
    if (page.next !== null) break;
  }
  return page;
}

async function readByPath<Row extends Record<string, unknown>>(
  db: Kysely<Database>,
  spec: ListSpec<Row>,
  options: { path: AccessPath; rest: readonly Condition[]; bounds: Bounds; limit: number },
): Promise<Page<Row>> {
  const { path, rest, bounds, limit } = options;
  const inspect = ofEachKey(path, INSPECT, INSPECT_EACH_MIN);
  const statement = pageStatement(spec, { path, rest, bounds, limit: limit + 1, inspect });
  const { rows } = await statement.execute(db);
  const page = cutPage(rows, limit, (row) => placeOf(spec, row));
  if (page.next !== null || rest.length === 0 || path.sorted) return page;
  const next = await reachOf(db, spec, { path, bounds, inspect });
  // Rows behind that place are left to the next page: there, not all keys of the path have been read.
  return { items: rows.filter((row) => next === null || compare(spec, placeOf(spec, row), next) >= 0), next };
}

/** Makes a page of rows that were read with `limit` + 1: if there is one more, the next page begins behind the last item. */
export function cutPage<Row>(
  rows: readonly Row[],
  limit: number,
  toPlace: (row: Row) => Position,
): Page<Row> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? toPlace(last) : null };
}

/**
 * Chooses the filter whose index leads to the rows; the other filters become conditions on each row.
 *
 * 1. A path to few rows, as to a job's events: they are read and sorted.
 * 2. Of other paths the one with the fewest rows from here on: its next 500 rows reach back the farthest. Example: a source
 *    sends 100,000 deliveries a day, and 20 a day are quarantined. The next 500 of the source reach back seven minutes, the
 *    next 500 quarantined ones 25 days. So the quarantined ones are read, and those of the source are picked from them.
 * 3. The paths to the whole list: the next one is taken where the rows of the one before are not enough.
 */
async function choosePaths<Row>(
  db: Kysely<Database>,
  spec: ListSpec<Row>,
  filters: readonly Filter[],
  bounds: Bounds,
): Promise<{ paths: readonly AccessPath[]; rest: readonly Condition[] }> {
  const found = (await findFew(db, filters)) ?? (await findFarthest(db, spec, filters, bounds));
  return {
    paths: found?.path ? [found.path] : (spec.all?.(bounds) ?? [{}]),
    rest: filters.filter((filter) => filter !== found).map(({ condition }) => condition),
  };
}

async function findFew(db: Kysely<Database>, filters: readonly Filter[]): Promise<Filter | undefined> {
  for (const filter of filters) {
    const sorted = filter.path?.sorted;
    if (sorted === undefined) continue;
    if (sorted.onlyIf === undefined) return filter;
    const { rows, atMost } = sorted.onlyIf;
    // Without places and times, so that the choice is the same on each page.
    const counted = await sql<{ count: number }>`
      select count(*)::int as count from (${rows} limit ${atMost + 1}) counted`.execute(db);
    if ((counted.rows[0]?.count ?? 0) <= atMost) return filter;
  }
  return undefined;
}

async function findFarthest<Row>(
  db: Kysely<Database>,
  spec: ListSpec<Row>,
  filters: readonly Filter[],
  bounds: Bounds,
): Promise<Filter | undefined> {
  const served = filters.filter(({ path }) => path !== undefined && path.sorted === undefined);
  let [farthest] = served;
  if (served.length < 2) return farthest;
  let farthestReach: Position | undefined;
  for (const filter of served) {
    const path = filter.path ?? {};
    const reach = await reachOf(db, spec, { path, bounds, inspect: ofEachKey(path, COMPARED, 1) });
    if (reach === null) return filter;
    if (farthestReach !== undefined && compare(spec, reach, farthestReach) >= 0) continue;
    [farthest, farthestReach] = [filter, reach];
  }
  return farthest;
}

/** How many rows of each key make so many in all. */
function ofEachKey({ lead }: AccessPath, rows: number, atLeast: number): Limit {
  if (lead?.count !== null)
    return { max: Math.max(atLeast, Math.ceil(rows / Math.max(1, lead?.count ?? 1))) };
  const value = sql`(select greatest(${atLeast}::bigint, ${rows}::bigint / greatest(count(*), 1)) from k)`;
  return { max: rows, value };
}

/** Up to which place the next rows of a path reach; null if to the end of the list. */
async function reachOf<Row>(
  db: Kysely<Database>,
  spec: ListSpec<Row>,
  options: { path: AccessPath; bounds: Bounds; inspect: Limit },
): Promise<Position | null> {
  const [place] = (await reachStatement(spec, options).execute(db)).rows;
  return place === undefined ? null : Object.values(place);
}

/** A row's place: its columns of the order, which `columns` of every list holds under their own names. */
function placeOf<Row extends Record<string, unknown>>(spec: ListSpec<Row>, row: Row): Position {
  return orderOf(spec).map((name) => String(row[name]));
}

/** Above zero where `a` comes before `b` in a list, newest first. */
function compare<Row>(spec: ListSpec<Row>, a: Position, b: Position): number {
  for (const [index, type] of typesOf(spec).entries()) {
    const [one = '', other = ''] = [a[index], b[index]];
    if (one === other) continue;
    if (type === 'bigint') return BigInt(one) > BigInt(other) ? 1 : -1;
    return Buffer.compare(Buffer.from(one), Buffer.from(other));
  }
  return 0;
}
