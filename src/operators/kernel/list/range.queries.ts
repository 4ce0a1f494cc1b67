// Which rows of a list a statement reads: a part of an index, between two places of the list's order. The bounds stand in a
// materialized CTE, which hides their values from the planner. (When it saw them, it once expected few rows and sorted
// 660,000.)

import { type RawBuilder, sql } from 'kysely';
import { TIME_FORMAT } from '../../../ledger/index.ts';
import type { AccessPath, Condition } from './access-path.queries.ts';
import type { Position, ValueType } from './cursor.ts';

/** A table as a list shows it, newest first. `Row`: a row of a page's statement. */
export type ListSpec<Row> = {
  readonly table:
    | 'deliveries'
    | 'events'
    | 'incidents'
    | 'jobs'
    | 'operator_log'
    | 'publications'
    | 'replays';
  /** The columns of `t` that are read, without bodies, and under their own names. */
  readonly row: RawBuilder<unknown>;
  /** What is shown of them, times as text. */
  readonly columns: RawBuilder<unknown>;
  /** The order: the column of time, and the columns that order rows of one time. */
  readonly time: keyof Row & string;
  readonly ties: readonly { readonly column: keyof Row & string; readonly type: ValueType }[];
  /**
   * The paths to the whole list. Each but the last leads to the newest rows behind a place only: the next one is taken where
   * these are not enough for a page. Without it, an index has the order of the list.
   */
  readonly all?: (bounds: Bounds) => readonly AccessPath[];
  /** Joins other tables to the rows of a page (`page`), one row to each. */
  readonly complete?: { readonly columns: RawBuilder<unknown>; readonly joins: RawBuilder<unknown> };
  /** Where more rows of the list are. */
  readonly packed?: Packed;
};

/**
 * A table with many rows of a list in each of its own, at the same time and with ids that follow each other: nothing stands
 * between them in the list. A packed row has the id of its first row. So it begins before a place in the list if any of
 * its rows does, and has the list's indexes.
 */
type Packed = {
  readonly table: 'publication_batches';
  /** `row` of the list, made of a packed row `t`, and of `joins`. */
  readonly row: RawBuilder<unknown>;
  readonly joins: RawBuilder<unknown>;
};

export type Bounds = {
  /** Only rows behind this place. */
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
  // The collation of the columns, which they are sorted by.
  text: 'text collate "C"',
  rank: 'int',
};

/** The columns of a list's order. */
export const orderOf = <Row>({ time, ties }: ListSpec<Row>): readonly (keyof Row & string)[] => [
  time,
  ...ties.map(({ column }) => column),
];

export const columnsOf = (table: string, names: readonly string[]) =>
  sql.join(names.map((name) => sql.ref(`${table}.${name}`)));
export const descending = (table: string, names: readonly string[]) =>
  sql.join(names.map((name) => sql`${sql.ref(`${table}.${name}`)} desc`));

export const all = (conditions: readonly Condition[]) => sql.join([sql`true`, ...conditions], sql` and `);

/** The CTE `b` of one row: `upper0`, `upper1`, … is a place in the order, and `lower0` a time. */
function boundsCte<Row>({ ties }: ListSpec<Row>, { after, from, to }: Bounds): RawBuilder<unknown> {
  // `to` alone is a place, too: that of the smallest ties, so rows at exactly this time are not below it.
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

export type Range = {
  readonly ctes: readonly RawBuilder<unknown>[];
  /** Joined with the rows `t` of the table. */
  readonly joins: RawBuilder<unknown>;
  /** To be joined with the rows: the bounds `b`, and the keys `k` of the path. */
  readonly outer: RawBuilder<unknown>;
  readonly where: RawBuilder<unknown>;
  /** The same for packed rows; null if none of them is in the range. */
  readonly wherePacked: RawBuilder<unknown> | null;
  /** The columns that the index is sorted by, up to the time: one that goes on with the ties is sorted by these, too. */
  readonly order: readonly string[];
};

/**
 * One row, which the planner takes for a thousand. Of one among many keys it expects few rows. To sort all of these seems cheaper
 * than to step into the index of each partition, one that was empty at its last VACUUM above all. With a thousand times as many
 * it takes the index, which gives the first ones at once.
 */
export const AS_OF_MANY = sql`cross join generate_series(1, (select 1)) as of_many`;

/** The condition that a row is in the path and between the bounds. `bounds`: undefined for any time. */
export function rangeOf<Row>(
  spec: ListSpec<Row>,
  { lead, only, sorted, packed }: AccessPath,
  bounds: Bounds | undefined,
): Range {
  const leading = lead?.columns ?? [];
  const order = orderOf(spec);
  const behind = order.filter((name) => !leading.includes(name));
  const uppers = order.map((_, index) => sql.ref(`b.upper${index}`));
  const time = sql.ref(`t.${spec.time}`);
  const isBelow = sql`(${columnsOf('t', order)}) < (${sql.join(uppers)})`;
  // Of a thousand keys few rows each are wanted, so the part of a key is its rows by equality: by its two ends the planner would
  // take an index of another order, and sort. Their order goes on without the key, which is the same in all of them.
  const isOfOneKey = lead?.count === null && bounds !== undefined;
  const conditions: Condition[] = only === undefined ? [] : [only];
  if (lead === undefined || isOfOneKey || sorted !== undefined || bounds === undefined) {
    if (lead) conditions.push(sql`(${columnsOf('t', leading)}) = (${columnsOf('k', leading)})`);
    if (bounds) conditions.push(isBelow, sql`${time} >= b.lower0`);
  } else {
    // Between two places of the index, instead of by equality: for an equal job id the planner may estimate few rows, read
    // all of them and sort.
    const [ofRow, ofKey] = [columnsOf('t', leading), columnsOf('k', leading)];
    conditions.push(sql`(${ofRow}, ${time}) >= (${ofKey}, b.lower0)`);
    if (behind.length === order.length)
      conditions.push(sql`(${ofRow}, ${columnsOf('t', order)}) < (${ofKey}, ${sql.join(uppers)})`);
    // The leading column is also in the list's order (source of jobs), and the index goes on without it.
    else conditions.push(sql`(${ofRow}, ${time}) <= (${ofKey}, b.upper0)`, isBelow);
  }
  const where = all(conditions);
  return {
    ctes: [
      boundsCte(spec, bounds ?? UNBOUNDED),
      ...(lead
        ? [sql`k (${sql.join(leading.map((name) => sql.ref(name)))}) as materialized (${lead.keys})`]
        : []),
    ],
    joins: isOfOneKey ? AS_OF_MANY : sql``,
    outer: lead ? sql`b cross join k` : sql`b`,
    where,
    wherePacked: packed === undefined ? where : packed && all([packed, isBelow, sql`${time} >= b.lower0`]),
    order: sorted?.by ?? (isOfOneKey ? [spec.time] : [...leading, spec.time]),
  };
}

/** How many rows of each key at most. `value`: if the number of keys decides, the number that Postgres computes. */
export type Limit = { readonly max: number; readonly value?: RawBuilder<unknown> };

/**
 * The first rows `t` in the order of an index. With ties, all others that are equal to the last one in it come, too: so the first
 * ones in the order of the list are among them, and no sort is asked for that the index does not give. Asked for the list's
 * order, the planner sorted all rows of a source of which it expected few.
 */
export const firstOf = {
  'with ties': (order: readonly string[], limit: RawBuilder<unknown>) =>
    sql`order by ${descending('t', order)} fetch first (${limit}) rows with ties`,
  'without ties': (order: readonly string[], limit: RawBuilder<unknown>) =>
    sql`order by ${descending('t', order)} limit ${limit}`,
} as const;

/** The rows of a range, with `limit` the first of them. */
export function rowsOf<Row>(
  { table, row, packed }: ListSpec<Row>,
  { joins, where, wherePacked, order }: Range,
  limit?: Limit,
  ties: keyof typeof firstOf = 'with ties',
): RawBuilder<unknown> {
  const firstUpTo = (count: number | RawBuilder<unknown>) => firstOf[ties](order, sql`${count}`);
  const first = limit === undefined ? sql`` : firstUpTo(limit.max);
  const firstOfTable = sql`select ${row} from ${sql.table(table)} t ${joins} where ${where} ${first}`;
  // A limit of its own, since the planner would expect a tenth of the table behind a number that it does not see, and sort it.
  const ofTable =
    limit?.value === undefined
      ? firstOfTable
      : sql`select t.* from (${firstOfTable}) t ${firstUpTo(limit.value)}`;
  if (packed === undefined || wherePacked === null) return ofTable;
  // Each packed row gives one row at least, so the limit is enough for them, too. They come in the order of time: no more is
  // unpacked than the limit needs.
  const inRange = sql`select t.* from ${sql.table(packed.table)} t where ${wherePacked} ${first}`;
  const unpacked = sql`select ${packed.row} from (${inRange}) t ${packed.joins}`;
  return sql`
    select t.* from (
      (${ofTable})
      union all
      (select t.* from (${unpacked}) t where ${where} ${first})
    ) t ${first}`;
}

/** This time, but now at the latest. */
export const untilText = (to?: string): RawBuilder<string> =>
  sql`to_char(least(${to ?? null}::timestamptz, now()) at time zone 'UTC', ${sql.raw(TIME_FORMAT)})`;
