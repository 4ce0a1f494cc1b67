// The statements behind the lists: they read rows by one index, in the order of the list, from any place on (range.ts). A
// statement reads about as many rows as its limits say, whatever the planner estimates: the order is that of the index.

import { type RawBuilder, sql } from 'kysely';
import { timeText } from '../../ledger/index.ts';
import type { AccessPath, Condition } from './access-path.ts';
import {
  all,
  type Bounds,
  columnsOf,
  descending,
  type Limit,
  type ListSpec,
  orderOf,
  rangeOf,
  rowsOf,
} from './range.ts';

/**
 * One page: at most `limit` rows. `rest` are conditions that the index does not serve: with these, at most `inspect` rows of
 * each key are read, and rows behind them are left to the next page.
 */
export function pageStatement<Row>(
  spec: ListSpec<Row>,
  options: {
    path: AccessPath;
    rest: readonly Condition[];
    bounds: Bounds;
    limit: number;
    inspect: Limit;
  },
): RawBuilder<Row> {
  const { path, rest, bounds, limit, inspect } = options;
  const range = rangeOf(spec, path, bounds);
  const { order } = range;
  // A sorted path: offset 0 keeps the planner from using an index of the list's order instead. Other paths: the inner limit
  // is the bound, and the outer one lets Postgres stop earlier, as soon as enough rows meet the conditions.
  const found = (count: number) =>
    path.sorted
      ? sql`select t.* from (${rowsOf(spec, range)} offset 0) t where ${all(rest)}`
      : rest.length === 0
        ? rowsOf(spec, range, { max: count })
        : sql`select t.* from (${rowsOf(spec, range, inspect)}) t where ${all(rest)}
            order by ${descending('t', order)} limit ${count}`;
  const isMany = path.lead?.count === null;
  const ctes = isMany ? [...range.ctes, nearCte(spec, range, { found, limit })] : range.ctes;
  const outer = isMany ? sql`near b cross join k` : range.outer;
  const page = sql`
    select ${spec.columns} from (select t.* from ${outer} cross join lateral (${found(limit)}) t) t
    order by ${descending('t', orderOf(spec))} limit ${limit}`;
  if (spec.complete === undefined) return sql<Row>`with ${sql.join(ctes)} ${page}`;
  return sql<Row>`with ${sql.join(ctes)}, page as materialized (${page})
    select ${spec.complete.columns} from page ${spec.complete.joins} order by ${descending('page', orderOf(spec))}`;
}

/** Of so many keys some rows are read, to find how far back a page reaches. */
const KEYS_COMPARED = 50;

/**
 * The CTE `near`: the bounds `b`, without the times before those of a page. So a page reads few rows of each of a thousand keys.
 * Example: the second row of each of 26 keys is younger than a minute. Then the first 51 rows of all are younger, too.
 */
function nearCte<Row>(
  spec: ListSpec<Row>,
  { order }: { readonly order: readonly string[] },
  { found, limit }: { found: (count: number) => RawBuilder<unknown>; limit: number },
): RawBuilder<unknown> {
  const each = Math.ceil(limit / KEYS_COMPARED);
  const keys = Math.ceil(limit / each);
  const time = sql.ref(`t.${spec.time}`);
  const uppers = orderOf(spec).map((_, index) => `upper${index}`);
  return sql`near as materialized (
    select ${columnsOf('b', uppers)}, greatest(b.lower0, (
      select ${time} from b cross join k cross join lateral (
        select ${time} from (${found(each)}) t order by ${descending('t', order)} offset ${each - 1} limit 1) t
      order by ${time} desc offset ${keys - 1} limit 1
    )) as lower0 from b)`;
}

/** The place up to which the first `inspect` rows of each key reach; no row if that is to the end of the list. */
export function reachStatement<Row>(
  spec: ListSpec<Row>,
  { path, bounds, inspect }: { path: AccessPath; bounds: Bounds; inspect: Limit },
): RawBuilder<Record<string, string>> {
  const range = rangeOf(spec, path, bounds);
  const { ctes, outer, order } = range;
  const columns = columnsOf('t', [...new Set([...orderOf(spec), ...order])]);
  const place = [
    sql`${timeText(`t.${spec.time}`)} as p0`,
    ...spec.ties.map(
      ({ column }, index) => sql`${sql.ref(`t.${column}`)}::text as ${sql.ref(`p${index + 1}`)}`,
    ),
  ];
  return sql`with ${sql.join(ctes)}
    select ${sql.join(place)} from ${outer} cross join lateral (
      select ${columns} from (${rowsOf(spec, range, inspect)}) t
      order by ${descending('t', order)} offset ${inspect.value ?? inspect.max}::bigint - 1 limit 1) t
    order by ${descending('t', orderOf(spec))} limit 1`;
}

/**
 * The first rows of a path that meet the conditions, in the order of its index: at most `limit` of each key and in all. The
 * oldest ones, if that is the order of the list.
 */
export function firstRows<Row>(
  spec: ListSpec<Row>,
  path: AccessPath,
  options: { columns: RawBuilder<unknown>; conditions: readonly Condition[]; limit: number },
): RawBuilder<unknown> {
  const { columns, conditions, limit } = options;
  const { ctes, outer, where, order } = rangeOf(spec, path, undefined);
  return sql`with ${sql.join(ctes)}
    select t.* from ${outer} cross join lateral (
      select ${columns} from ${sql.table(spec.table)} t where ${sql.join([where, ...conditions], sql` and `)}
      order by ${columnsOf('t', order)} limit ${limit}) t limit ${limit}`;
}
