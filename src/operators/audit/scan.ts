// The statements behind every list: how rows are found by one index, in the order of the list, from any place of it on.
// Guarantees that a statement reads about as many rows as it is told to inspect, whatever the planner believes: the order
// is by the index's own columns and the bounds are hidden from its estimates, so no other plan is worth its while. (With
// bounds in sight it once took the rows for few, and sorted 660,000 of them.)

import { type RawBuilder, sql } from 'kysely';
import { timeText } from '../../ledger/index.ts';
import type { Position, ValueType } from './cursor.ts';

export type Condition = RawBuilder<unknown>;

/** A table as a list shows it, newest first. */
export type Spec = {
  readonly table: 'deliveries' | 'events' | 'publications' | 'jobs';
  /** What is read of a row `t`, under the names of its columns: no bodies. */
  readonly row: RawBuilder<unknown>;
  /** What is shown of it. */
  readonly columns: RawBuilder<unknown>;
  /** The order: the column of time, and what tells rows of one time apart. */
  readonly time: string;
  readonly ties: readonly { readonly column: string; readonly type: ValueType }[];
  /** Adds to the rows of a page (`page`) what other tables know of them. Gives one row for each. */
  readonly complete?: { readonly columns: RawBuilder<unknown>; readonly joins: RawBuilder<unknown> };
};

/**
 * How rows are found.
 * - `time`: by the index of the whole list.
 * - `partial`: by an index that holds just these rows, in the order of the list.
 * - `column`: by an index on the column, and then the order of the list; for each of the values.
 * - `job`: by an index on source, job, and the order of the list.
 * - `few`: all that meet the condition, sorted. Of `sources`, or of no matter which.
 */
export type Access =
  | { readonly by: 'time' }
  | { readonly by: 'partial'; readonly condition: Condition }
  | {
      readonly by: 'column';
      readonly column: string;
      readonly type?: 'uuid';
      /** What the rows of the index have in common, if it does not hold all. */
      readonly only?: Condition;
      readonly values: readonly string[];
    }
  | { readonly by: 'job'; readonly jobId: string; readonly sources: readonly string[] | null }
  | {
      readonly by: 'few';
      readonly condition: Condition;
      /** Undefined where the condition needs no source to be found by. */
      readonly sources: readonly string[] | null | undefined;
    };

export type Bounds = {
  /** Rows after this one, in the order of the list. */
  readonly after: Position | null;
  /** RFC 3339. */
  readonly from: string | undefined;
  readonly to: string | RawBuilder<unknown> | undefined;
};

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

const columnsOf = (names: readonly string[]) => sql.join(names.map((name) => sql.ref(`t.${name}`)));
const descending = (names: readonly string[]) =>
  sql.join(names.map((name) => sql`${sql.ref(`t.${name}`)} desc`));
const orderOf = ({ time, ties }: Spec) => [time, ...ties.map(({ column }) => column)];

/** The bounds of the whole statement. Materialized, so that no estimate is made from what they are. */
function boundsOf({ ties }: Spec, { after, from, to }: Bounds): RawBuilder<unknown> {
  const uppers = ties.map(
    ({ type }, index) =>
      sql`${after?.[index + 1] ?? SMALLEST[type]}::${sql.raw(PG_TYPES[type])} as ${sql.ref(`upper${index + 1}`)}`,
  );
  return sql`b as materialized (select (${after?.[0] ?? to ?? 'infinity'})::timestamptz as upper0,
    ${from ?? '-infinity'}::timestamptz as lower0${uppers.length > 0 ? sql`, ${sql.join(uppers)}` : sql``})`;
}

/**
 * `(time, ties…)` of a row is below the upper bound: behind the last row that was shown, or before `to`, since nothing
 * is smaller than the smallest of ties.
 */
function below(spec: Spec, lead: readonly [RawBuilder<unknown>, RawBuilder<unknown>][]): RawBuilder<unknown> {
  const names = orderOf(spec);
  return sql`(${sql.join([...lead.map(([column]) => column), columnsOf(names)])}) <
    (${sql.join([...lead.map(([, value]) => value), ...names.map((_, index) => sql.ref(`b.upper${index}`))])})`;
}

/** The table `s (v)` of sources: those that are given, or (null) all that `table` has rows of. */
export function sourcesCte(table: Spec['table'], sources: readonly string[] | null): RawBuilder<unknown> {
  if (sources !== null) return sql`s (v) as materialized (select unnest(${sources}::text[]) collate "C")`;
  // A loose scan of the index that begins with source and job: a look-up for each source, of which there are few.
  const next = (behind: RawBuilder<unknown>) =>
    sql`select source from ${sql.table(table)} ${behind} order by source, job_id limit 1`;
  return sql`s (v) as materialized (
    with recursive known (v) as (
      (${next(sql``)})
      union all
      select (${next(sql`where source > known.v`)}) from known where known.v is not null
    )
    select v from known where v is not null)`;
}

/** The rows in order, as a subquery `t` on `b` (and `s`), and the tables that it stands on. */
function scanOf(
  spec: Spec,
  access: Access,
  columns: RawBuilder<unknown>,
): { ctes: RawBuilder<unknown>[]; from: RawBuilder<unknown>; scan: RawBuilder<unknown>; order: string[] } {
  const order = orderOf(spec);
  const table = sql`${sql.table(spec.table)} t`;
  const since = sql`${sql.ref(`t.${spec.time}`)} >= b.lower0`;
  switch (access.by) {
    case 'time':
    case 'partial': {
      const only = access.by === 'partial' ? sql`${access.condition} and ` : sql``;
      return {
        ctes: [],
        from: sql`b`,
        order,
        scan: sql`select ${columns} from ${table} where ${only}${below(spec, [])} and ${since}`,
      };
    }
    case 'column': {
      const column = sql.ref(`t.${access.column}`);
      const lower = sql`(${column}, ${sql.ref(`t.${spec.time}`)}) >= (s.v, b.lower0)`;
      const there = access.only ? sql` and ${access.only}` : sql``;
      const isTie = spec.ties.some((tie) => tie.column === access.column);
      // Where the column is itself a part of the order, the index goes on without it.
      const upper = isTie
        ? sql`(${column}, ${sql.ref(`t.${spec.time}`)}) <= (s.v, b.upper0) and ${below(spec, [])}`
        : below(spec, [[column, sql`s.v`]]);
      return {
        ctes: [
          sql`s (v) as materialized (select unnest(${access.values}::${sql.raw(access.type ?? 'text')}[]))`,
        ],
        from: sql`b cross join s`,
        order: [access.column, ...order.filter((name) => name !== access.column)],
        scan: sql`select ${columns} from ${table} where ${upper} and ${lower}${there}`,
      };
    }
    case 'job': {
      // Between two places of the index, and not by equal ids: what the planner knows of an id may tell it that the job
      // has few rows, and that they may as well be read whole and sorted.
      const jobId = sql`j.job_id`;
      const lower = sql`(t.job_id, ${sql.ref(`t.${spec.time}`)}) >= (${jobId}, b.lower0)`;
      return {
        ctes: [
          sourcesCte(spec.table, access.sources),
          sql`j as materialized (select ${access.jobId}::text collate "C" as job_id)`,
        ],
        from: sql`b cross join s cross join j`,
        order: ['source', 'job_id', ...order],
        scan: sql`select ${columns} from ${table}
          where t.source = s.v and ${below(spec, [[sql`t.job_id`, jobId]])} and ${lower}`,
      };
    }
    case 'few': {
      const { condition, sources } = access;
      const ofSource = sources === undefined ? sql`` : sql`t.source = s.v and `;
      return {
        ctes: sources === undefined ? [] : [sourcesCte(spec.table, sources)],
        from: sources === undefined ? sql`b` : sql`b cross join s`,
        order,
        scan: sql`select ${columns} from ${table} where ${ofSource}${condition} and ${below(spec, [])} and ${since}`,
      };
    }
    default:
      return access satisfies never;
  }
}

/**
 * One page: at most `limit` rows. With conditions that the index does not serve (`rest`) at most `inspect` rows are
 * looked at, for each value of the access: what is not found among them is left to the next page.
 */
export function pageStatement(
  spec: Spec,
  options: {
    access: Access;
    rest: readonly Condition[];
    bounds: Bounds;
    limit: number;
    inspect: number;
  },
): RawBuilder<Record<string, unknown>> {
  const { access, rest, bounds, limit, inspect } = options;
  const { ctes, from, scan, order } = scanOf(spec, access, spec.row);
  const by = descending(order);
  const conditions = sql.join(rest, sql` and `);
  let found: RawBuilder<unknown>;
  if (access.by === 'few') {
    // Read whole before it is sorted, so that no index of another order looks like a short cut.
    const all = sql`select t.* from ${from} cross join lateral (${scan}) t`;
    const cte = sql`few as materialized (${all})`;
    ctes.push(cte);
    found = sql`select * from few t${rest.length > 0 ? sql` where ${conditions}` : sql``}`;
  } else if (rest.length === 0) {
    found = sql`select t.* from ${from} cross join lateral (${scan} order by ${by} limit ${limit}) t`;
  } else {
    found = sql`select t.* from ${from} cross join lateral (
      select t.* from (${scan} order by ${by} limit ${inspect}) t
      where ${conditions} order by ${by} limit ${limit}) t`;
  }
  const newest = descending(orderOf(spec));
  const page = sql`select ${spec.columns} from (${found}) t order by ${newest} limit ${limit}`;
  const all = [boundsOf(spec, bounds), ...ctes];
  if (spec.complete === undefined) return sql`with ${sql.join(all)} ${page}`;
  const last = sql.join(orderOf(spec).map((name) => sql`${sql.ref(`page.${name}`)} desc`));
  return sql`with ${sql.join(all)}, page as materialized (${page})
    select ${spec.complete.columns} from page ${spec.complete.joins} order by ${last}`;
}

/** The place of the row up to which a page with `inspect` has looked, for sure; no row if it has seen all there is. */
export function inspectedStatement(
  spec: Spec,
  { access, bounds, inspect }: { access: Access; bounds: Bounds; inspect: number },
): RawBuilder<Record<string, string>> {
  const { ctes, from, scan, order } = scanOf(spec, access, columnsOf(placeColumns(spec, access)));
  const values = spec.ties.map(
    ({ column }, index) => sql`${sql.ref(`t.${column}`)}::text as ${sql.ref(`p${index + 1}`)}`,
  );
  return sql`with ${sql.join([boundsOf(spec, bounds), ...ctes])}
    select ${sql.join([sql`${timeText(`t.${spec.time}`)} as p0`, ...values])}
    from ${from} cross join lateral (${scan} order by ${descending(order)} offset ${inspect - 1} limit 1) t
    order by ${descending(orderOf(spec))} limit 1`;
}

/** How far back the newest `count` rows of each access reach, in seconds of Unix time; null for one that has fewer. */
export function reachStatement(
  spec: Spec,
  { accesses, bounds, count }: { accesses: readonly Access[]; bounds: Bounds; count: number },
): RawBuilder<Record<string, number | null>> {
  const reaches = accesses.map((access, index) => {
    const { ctes, from, scan, order } = scanOf(spec, access, columnsOf(placeColumns(spec, access)));
    const inEach = Math.floor(count / (access.by === 'column' ? access.values.length : 1));
    const time = sql.ref(`t.${spec.time}`);
    return sql`(${ctes.length > 0 ? sql`with ${sql.join(ctes)} ` : sql``}
      select extract(epoch from max(${time}))::float8 from ${from}
      cross join lateral (${scan} order by ${descending(order)} offset ${inEach} limit 1) t) as ${sql.ref(`a${index}`)}`;
  });
  return sql`with ${boundsOf(spec, bounds)} select ${sql.join(reaches)}`;
}

/**
 * How many rows a `few` of some sources would read, up to `limit`. Of any time: the answer is the same for each page, and
 * comes from the index by source and job alone, in its order, lest the whole table look like the shorter way.
 */
export function countStatement(
  { table }: Spec,
  { condition, sources, limit }: { condition: Condition; sources: readonly string[] | null; limit: number },
): RawBuilder<{ count: number }> {
  return sql`with ${sourcesCte(table, sources)}
    select count(*)::int as count from (
      select 1 from s cross join lateral (
        select 1 from ${sql.table(table)} t where t.source = s.v and ${condition} order by t.job_id limit ${limit}
      ) t limit ${limit}) counted`;
}

function placeColumns(spec: Spec, access: Access): readonly string[] {
  return [...new Set([...orderOf(spec), ...(access.by === 'column' ? [access.column] : [])])];
}
