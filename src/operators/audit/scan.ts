// The statements behind every list: rows by one index, in the order of the list, from any place of it on. A statement
// reads about as many rows as it is told to, whatever the planner estimates: the order is that of the index, and the
// bounds stand in a materialized CTE, which hides their values from the planner. (When it saw them, it once expected few
// rows and sorted 660,000.)

import { type RawBuilder, sql } from 'kysely';
import { timeText } from '../../ledger/index.ts';
import type { Position, ValueType } from './cursor.ts';

export type Condition = RawBuilder<unknown>;

/** A table as a list shows it, newest first. `Row`: what a page's statement gives. */
export type ListSpec<Row> = {
  readonly table: 'deliveries' | 'events' | 'jobs' | 'operator_log' | 'publications' | 'replays';
  /** What is read of a row `t`, under the names of its columns: no bodies. */
  readonly row: RawBuilder<unknown>;
  /** What is shown of it. */
  readonly columns: RawBuilder<unknown>;
  /** The order: the column of time, and what tells rows of one time apart. */
  readonly time: keyof Row & string;
  readonly ties: readonly { readonly column: keyof Row & string; readonly type: ValueType }[];
  /** Adds to the rows of a page (`page`) what other tables know of them. Gives one row for each. */
  readonly complete?: { readonly columns: RawBuilder<unknown>; readonly joins: RawBuilder<unknown> };
};

/**
 * An index, and which part of it holds the rows. `{}` is the index of the whole list.
 *
 * Example: deliveries_source is on (source, received_at, id). For the sources a and b `lead` has the column `source` and
 * the keys a and b: of each the newest rows are read, and of both the newest are shown.
 */
export type AccessPath = {
  /** The columns of the index before those of the list's order, and a query for the values wanted, `count` of them. */
  readonly lead?: {
    readonly columns: readonly string[];
    readonly keys: RawBuilder<unknown>;
    readonly count: number;
  };
  /** A condition on all of these rows; of a partial index its predicate, as the migrations write it. */
  readonly only?: Condition;
  /** Set for an index that does not go on in the order of the list: its rows are read whole, and sorted. */
  readonly sorted?: {
    /** The columns of the index, with those of `lead`. */
    readonly by: readonly string[];
    /** Where there may be too many: the path is taken if this query gives at most so many rows. */
    readonly onlyIf?: { readonly rows: RawBuilder<unknown>; readonly atMost: number };
  };
};

export type Bounds = {
  /** Rows after this one, in the order of the list. */
  readonly after: Position | null;
  /** RFC 3339. */
  readonly from: string | undefined;
  readonly to: string | RawBuilder<unknown> | undefined;
};

const UNBOUNDED: Bounds = { after: null, from: undefined, to: undefined };

const SMALLEST: Readonly<Record<ValueType, string>> = {
  time: '-infinity',
  uuid: '00000000-0000-0000-0000-000000000000',
  bigint: '0',
  text: '',
  rank: '0',
};
const PG_TYPES: Readonly<Record<ValueType, string>> = {
  time: 'timestamptz',
  uuid: 'uuid',
  bigint: 'bigint',
  // As the columns: it is by this that they are sorted.
  text: 'text collate "C"',
  rank: 'int',
};

/** The columns of a list's order. */
export const orderOf = <Row>({ time, ties }: ListSpec<Row>): readonly (keyof Row & string)[] => [
  time,
  ...ties.map(({ column }) => column),
];

const columnsOf = (table: string, names: readonly string[]) =>
  sql.join(names.map((name) => sql.ref(`${table}.${name}`)));
const descending = (table: string, names: readonly string[]) =>
  sql.join(names.map((name) => sql`${sql.ref(`${table}.${name}`)} desc`));

/** The table `b` of bounds: `upper…` is a place in the order, `lower0` a time. */
function boundsCte<Row>({ ties }: ListSpec<Row>, { after, from, to }: Bounds): RawBuilder<unknown> {
  // Without a place there are no ties: nothing is smaller than the smallest, so what is at the time `to` is left out.
  const uppers = ties.map(
    ({ type }, index) =>
      sql`${after?.[index + 1] ?? SMALLEST[type]}::${sql.raw(PG_TYPES[type])} as ${sql.ref(`upper${index + 1}`)}`,
  );
  return sql`b as materialized (${sql.join([
    sql`select (${after?.[0] ?? to ?? 'infinity'})::timestamptz as upper0`,
    sql`${from ?? '-infinity'}::timestamptz as lower0`,
    ...uppers,
  ])})`;
}

type Range = {
  readonly ctes: readonly RawBuilder<unknown>[];
  /** Stands before `cross join lateral`: the bounds, and the keys `k` that the path begins with. */
  readonly outer: RawBuilder<unknown>;
  readonly where: RawBuilder<unknown>;
  /** The columns that the index is sorted by. */
  readonly order: readonly string[];
};

/** The part of the index between the bounds. Without `bounds`, which a sorted path can do without: of any time. */
function rangeOf<Row>(
  spec: ListSpec<Row>,
  { lead, only, sorted }: AccessPath,
  bounds: Bounds | undefined,
): Range {
  const leading = lead?.columns ?? [];
  const order = orderOf(spec);
  const behind = order.filter((name) => !leading.includes(name));
  const uppers = order.map((_, index) => sql.ref(`b.upper${index}`));
  const time = sql.ref(`t.${spec.time}`);
  const isBelow = sql`(${columnsOf('t', order)}) < (${sql.join(uppers)})`;
  const inTime = bounds === undefined ? [] : [isBelow, sql`${time} >= b.lower0`];
  const conditions: Condition[] = only === undefined ? [] : [only];
  if (lead === undefined) conditions.push(...inTime);
  else if (sorted !== undefined) {
    conditions.push(sql`(${columnsOf('t', leading)}) = (${columnsOf('k', leading)})`, ...inTime);
  } else {
    // Between two places of the index, and not by equality: by what the planner knows of an equal id, the job may have
    // few rows, which it would read whole and sort.
    const [ofRow, ofKey] = [columnsOf('t', leading), columnsOf('k', leading)];
    conditions.push(sql`(${ofRow}, ${time}) >= (${ofKey}, b.lower0)`);
    if (behind.length === order.length)
      conditions.push(sql`(${ofRow}, ${columnsOf('t', order)}) < (${ofKey}, ${sql.join(uppers)})`);
    // A leading column is one of the order, too (of jobs: source), and the index goes on without it.
    else conditions.push(sql`(${ofRow}, ${time}) <= (${ofKey}, b.upper0)`, isBelow);
  }
  return {
    ctes: [
      boundsCte(spec, bounds ?? UNBOUNDED),
      ...(lead
        ? [sql`k (${sql.join(leading.map((name) => sql.ref(name)))}) as materialized (${lead.keys})`]
        : []),
    ],
    outer: lead ? sql`b cross join k` : sql`b`,
    where: sql.join(conditions, sql` and `),
    order: sorted?.by ?? [...leading, ...behind],
  };
}

/**
 * One page: at most `limit` rows. With conditions that the index does not serve (`rest`) at most `inspect` rows are
 * looked at for each key: what is not found among them is left to the next page.
 */
export function pageStatement<Row>(
  spec: ListSpec<Row>,
  options: {
    path: AccessPath;
    rest: readonly Condition[];
    bounds: Bounds;
    limit: number;
    inspect: number;
  },
): RawBuilder<Row> {
  const { path, rest, bounds, limit, inspect } = options;
  const { ctes, outer, where, order } = rangeOf(spec, path, bounds);
  const inRange = sql`select ${spec.row} from ${sql.table(spec.table)} t where ${where}`;
  const isMeant = sql.join([sql`true`, ...rest], sql` and `);
  const by = descending('t', order);
  // Sorted rows are read whole (offset 0), so that no index of another order looks like a short cut. Of others Postgres
  // stops at the first `limit` that are meant, which is long before `inspect` where many are.
  const found = path.sorted
    ? sql`select t.* from (${inRange} offset 0) t where ${isMeant}`
    : rest.length === 0
      ? sql`${inRange} order by ${by} limit ${limit}`
      : sql`select t.* from (${inRange} order by ${by} limit ${inspect}) t where ${isMeant} order by ${by} limit ${limit}`;
  const page = sql`
    select ${spec.columns} from (select t.* from ${outer} cross join lateral (${found}) t) t
    order by ${descending('t', orderOf(spec))} limit ${limit}`;
  if (spec.complete === undefined) return sql<Row>`with ${sql.join(ctes)} ${page}`;
  return sql<Row>`with ${sql.join(ctes)}, page as materialized (${page})
    select ${spec.complete.columns} from page ${spec.complete.joins} order by ${descending('page', orderOf(spec))}`;
}

/** The place up to which the first `inspect` rows of each key reach for sure; no row if that is to the end of the list. */
export function reachStatement<Row>(
  spec: ListSpec<Row>,
  { path, bounds, inspect }: { path: AccessPath; bounds: Bounds; inspect: number },
): RawBuilder<Record<string, string>> {
  const { ctes, outer, where, order } = rangeOf(spec, path, bounds);
  const columns = columnsOf('t', [...new Set([...orderOf(spec), ...order])]);
  const place = [
    sql`${timeText(`t.${spec.time}`)} as p0`,
    ...spec.ties.map(
      ({ column }, index) => sql`${sql.ref(`t.${column}`)}::text as ${sql.ref(`p${index + 1}`)}`,
    ),
  ];
  return sql`with ${sql.join(ctes)}
    select ${sql.join(place)} from ${outer} cross join lateral (
      select ${columns} from ${sql.table(spec.table)} t where ${where}
      order by ${descending('t', order)} offset ${inspect - 1} limit 1) t
    order by ${descending('t', orderOf(spec))} limit 1`;
}

/**
 * The first rows of a path in the order of its index, the oldest ones where that is the list's: at most `limit` of each key
 * and in all. Of a sorted path they are of any time: its index would lead through the others as well.
 */
export function firstRows<Row>(
  spec: ListSpec<Row>,
  path: AccessPath,
  { columns, bounds, limit }: { columns: RawBuilder<unknown>; bounds: Bounds; limit: number },
): RawBuilder<unknown> {
  const { ctes, outer, where, order } = rangeOf(spec, path, path.sorted ? undefined : bounds);
  return sql`with ${sql.join(ctes)}
    select t.* from ${outer} cross join lateral (
      select ${columns} from ${sql.table(spec.table)} t where ${where}
      order by ${columnsOf('t', order)} limit ${limit}) t limit ${limit}`;
}
