// The statements behind the lists: they read rows by one index, in the order of the list, from any place on (range.queries.ts). A
// statement reads about as many rows as its limits say, whatever the planner estimates: the order is that of the index.

import { type RawBuilder, sql } from 'kysely';
import { timeText } from '../../../ledger/index.ts';
import type { AccessPath, Condition } from './access-path.queries.ts';
import {
  all,
  type Bounds,
  columnsOf,
  descending,
  firstOf,
  type Limit,
  type ListSpec,
  orderOf,
  type Range,
  rangeOf,
  rowsOf,
} from './range.queries.ts';

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
  // A sorted path: offset 0 keeps the planner from using an index of the list's order instead. Other paths: the inner limit
  // is the bound, and the outer one lets Postgres stop earlier, as soon as enough rows meet the conditions.
  const found = (count: Limit, ties: keyof typeof firstOf = 'with ties') =>
    path.sorted
      ? sql`select t.* from (${rowsOf(spec, range)} offset 0) t where ${all(rest)}`
      : rest.length === 0
        ? rowsOf(spec, range, count, ties)
        : sql`select t.* from (${rowsOf(spec, range, inspect, ties)}) t where ${all(rest)}
            ${firstOf[ties](range.order, sql`${count.value ?? count.max}`)}`;
  const isMany = path.lead?.count === null;
  const newest = (count: Limit) => found(count, 'without ties');
  const ctes = [...range.ctes, ...(isMany ? [nearCte(spec, newest, limit)] : [])];
  const outer = isMany ? sql`near b cross join k` : range.outer;
  const rows = sql`select t.* from ${outer} cross join lateral (${found({ max: limit })}) t`;
  const inListOrder = sql`order by ${descending('t', orderOf(spec))} limit ${limit}`;
  const isCut = path.lead !== undefined && !path.sorted && rest.length > 0;
  if (isCut) ctes.push(...cutCtes(spec, path.lead, { range: { ...range, outer }, rows, limit, inspect }));
  const page = isCut
    ? sql`select ${spec.columns} from found t where (${placeIn('t', spec)} >= (select * from cut)) is not false ${inListOrder}`
    : sql`select ${spec.columns} from (${rows}) t ${inListOrder}`;
  if (spec.complete === undefined) return sql<Row>`with ${sql.join(ctes)} ${page}`;
  return sql<Row>`with ${sql.join(ctes)}, page as materialized (${page})
    select ${spec.complete.columns} from page ${spec.complete.joins} order by ${descending('page', orderOf(spec))}`;
}

/**
 * The CTE `near`: the bounds `b`, without the times before those of a page. So a page reads few rows of each of a thousand keys.
 * Example: of each key the first two rows are read. If 51 of all these are younger than a minute, so are the first 51 rows. Of few
 * keys more rows each are read, three times the page together, since the busiest may have most of the page.
 */
function nearCte<Row>(
  spec: ListSpec<Row>,
  newest: (count: Limit) => RawBuilder<unknown>,
  limit: number,
): RawBuilder<unknown> {
  const value = sql`(select least(${limit}::bigint, greatest(2, 3 * ${limit}::bigint / greatest(count(*), 1))) from k)`;
  const time = sql.ref(`t.${spec.time}`);
  const uppers = orderOf(spec).map((_, index) => `upper${index}`);
  return sql`near as materialized (
    select ${columnsOf('b', uppers)}, greatest(b.lower0, (
      select ${time} from b cross join k cross join lateral (${newest({ max: limit, value })}) t
      order by ${time} desc offset ${limit - 1} limit 1
    )) as lower0 from b)`;
}

/**
 * The CTEs `found`, the rows of all keys, and `cut`, a place or none: not all rows behind it have been looked at. That is so where
 * the `inspect` rows of a key were not enough to find `limit` ones. Without it a page would go on with rows of other keys,
 * and the next one begin behind rows of this key.
 */
function cutCtes<Row>(
  spec: ListSpec<Row>,
  { columns }: { readonly columns: readonly string[] },
  options: { range: Range; rows: RawBuilder<unknown>; limit: number; inspect: Limit },
): RawBuilder<unknown>[] {
  const { range, rows, limit, inspect } = options;
  const [ofKey, ofFound] = [columnsOf('k', columns), columnsOf('f', columns)];
  const isShort = sql`(${ofKey}) not in (
    select ${ofFound} from found f group by ${ofFound} having count(*) >= ${limit})`;
  const last = lastInspected(spec, range, inspect);
  return [
    sql`found as materialized (${rows})`,
    sql`cut as materialized (
      select ${columnsOf('t', orderOf(spec))} from ${range.outer} cross join lateral (${last}) t where ${isShort}
      order by ${descending('t', orderOf(spec))} limit 1)`,
  ];
}

const placeIn = <Row>(table: string, spec: ListSpec<Row>) => sql`(${columnsOf(table, orderOf(spec))})`;

/** The last one of the first `inspect` rows of a key in the order of the list; none if it has less. */
function lastInspected<Row>(spec: ListSpec<Row>, range: Range, inspect: Limit): RawBuilder<unknown> {
  return sql`
    select ${columnsOf('t', orderOf(spec))} from (${rowsOf(spec, range, inspect)}) t
    order by ${descending('t', orderOf(spec))} offset ${inspect.value ?? inspect.max}::bigint - 1 limit 1`;
}

/** The place up to which the first `inspect` rows of each key reach; no row if that is to the end of the list. */
export function reachStatement<Row>(
  spec: ListSpec<Row>,
  { path, bounds, inspect }: { path: AccessPath; bounds: Bounds; inspect: Limit },
): RawBuilder<Record<string, string>> {
  const range = rangeOf(spec, path, bounds);
  const { ctes, outer } = range;
  const place = [
    sql`${timeText(`t.${spec.time}`)} as p0`,
    ...spec.ties.map(
      ({ column }, index) => sql`${sql.ref(`t.${column}`)}::text as ${sql.ref(`p${index + 1}`)}`,
    ),
  ];
  return sql`with ${sql.join(ctes)}
    select ${sql.join(place)} from ${outer} cross join lateral (${lastInspected(spec, range, inspect)}) t
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
