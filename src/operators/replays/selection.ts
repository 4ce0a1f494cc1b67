// Which events a replay means: named by their ids, or by a filter as in the list of events. Knows how to ask the ledger
// for them in the order of their acceptance, and nothing of what is done with them.

import { type Expression, type Kysely, type SqlBool, sql } from 'kysely';
import { type EventItem, readEventsNumbered } from '../audit/events.ts';
import { prefixEnd, statusOf } from '../audit/filters.ts';
import { eventId, parseEventId, type Kind, type Status, type Database } from '../../ledger/index.ts';

/** In the API's own words, since it is kept and shown as it was asked. At least one of them is given. */
export type EventFilter = {
  readonly source?: string | undefined;
  readonly status?: Status | undefined;
  readonly kind?: Kind | undefined;
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
  readonly error_code?: string | undefined;
  readonly late?: boolean | undefined;
  /** Of the acceptance: not before, and before. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Of the delivery that told it. */
  readonly secret_fingerprint?: string | undefined;
  readonly remote_address?: string | undefined;
};

/** As it is kept in `replays.selection`. `sequences` are those of the ids, in order. */
export type Selection =
  | { readonly event_ids: readonly string[]; readonly sequences: readonly string[] }
  | { readonly filter: EventFilter };

export type FoundEvent = { readonly id: string; readonly sequence: string; readonly source: string };

/** The events of these ids, in the order of their acceptance (constraint events_dedup_key). */
export async function findEvents(db: Kysely<Database>, ids: readonly string[]): Promise<FoundEvent[]> {
  const keys = [...new Set(ids)].flatMap((id) => {
    const key = parseEventId(id);
    return key === undefined ? [] : [key];
  });
  const { rows } = await sql<{
    sequence: string;
    source: string;
    jobId: string;
    status: Status;
    progress: number | null;
  }>`
    select e.sequence, e.source, e.job_id as "jobId", e.status, e.progress_percentage as progress
    from unnest(
      ${keys.map((key) => key.source)}::text[], ${keys.map((key) => key.jobId)}::text[],
      ${keys.map((key) => key.status)}::text[], ${keys.map((key) => key.progress)}::smallint[]
    ) as k (source, job_id, status, progress)
    join events e on e.source = k.source and e.job_id = k.job_id and e.status = k.status
      and e.progress_percentage is not distinct from k.progress
    order by e.sequence`.execute(db);
  return rows.map((row) => ({ id: eventId(row.source, row), sequence: row.sequence, source: row.source }));
}

/** The conditions on `events as e`. `sources` limits it to some; null for all. */
export function selected(selection: Selection, sources: readonly string[] | null): Expression<SqlBool> {
  const conditions = 'filter' in selection ? conditionsOf(selection.filter, sources) : [];
  if ('sequences' in selection) conditions.push(sql`e.sequence = any(${[...selection.sequences]}::bigint[])`);
  if (sources !== null) conditions.push(sql`e.source = any(${[...sources]}::text[])`);
  return sql<SqlBool>`(${sql.join(conditions, sql` and `)})`;
}

function conditionsOf(filter: EventFilter, sources: readonly string[] | null) {
  const conditions = [];
  const { job_id: jobId, job_id_prefix: prefix } = filter;
  if (filter.source !== undefined) conditions.push(sql<SqlBool>`e.source = ${filter.source}`);
  // So that the key, which begins with the source, serves a job without one.
  else if (sources === null && (jobId ?? prefix) !== undefined)
    conditions.push(sql<SqlBool>`e.source in (${KNOWN_SOURCES})`);
  if (filter.status !== undefined) conditions.push(sql<SqlBool>`e.status = ${filter.status}`);
  if (filter.kind !== undefined) conditions.push(sql<SqlBool>`e.status = ${statusOf(filter.kind)}`);
  if (jobId !== undefined) conditions.push(sql<SqlBool>`e.job_id = ${jobId}`);
  if (prefix !== undefined)
    conditions.push(sql<SqlBool>`e.job_id >= ${prefix} and e.job_id < ${prefixEnd(prefix)}`);
  if (filter.error_code !== undefined) conditions.push(sql<SqlBool>`e.error_code = ${filter.error_code}`);
  if (filter.late !== undefined) conditions.push(sql<SqlBool>`e.late = ${filter.late}`);
  if (filter.from !== undefined) conditions.push(sql<SqlBool>`e.recorded_at >= ${filter.from}::timestamptz`);
  if (filter.to !== undefined) conditions.push(sql<SqlBool>`e.recorded_at < ${filter.to}::timestamptz`);
  const told = [];
  if (filter.secret_fingerprint !== undefined)
    told.push(sql<SqlBool>`d.secret_fingerprint = ${filter.secret_fingerprint}`);
  if (filter.remote_address !== undefined)
    told.push(sql<SqlBool>`d.remote_address = ${filter.remote_address}`);
  if (told.length > 0) conditions.push(toldBy(sql.join(told, sql` and `)));
  return conditions;
}

/** All sources that ever had a job, each found by one step in the primary key of `jobs`. */
const KNOWN_SOURCES = sql`
  with recursive known (source) as (
    select min(source) from jobs
    union all
    select (select min(j.source) from jobs j where j.source > known.source) from known
    where known.source is not null
  )
  select source from known where source is not null`;

/**
 * The delivery that told an event was accepted at the same moment (primary key of `deliveries`, one partition), but
 * for those that were released later (index deliveries_released, which holds just these; hashed once).
 */
function toldBy(condition: Expression<unknown>): Expression<SqlBool> {
  return sql<SqlBool>`(
    exists (
      select from deliveries d
      where d.id = e.delivery_id and d.received_at = e.recorded_at and ${condition}
    )
    or (e.sequence, e.delivery_id) in (
      select d.event_sequence, d.id from deliveries d where d.released_at is not null and ${condition}
    )
  )`;
}

/** What a replay is bounded by. The sequences that are meant are those behind `after`, and up to `upTo`. */
export type Extent = {
  readonly matched: number;
  /** False if more events than may be looked at would have to be: then `matched` is at least as many as there are. */
  readonly isExact: boolean;
  readonly after: string;
  readonly upTo: string;
};

/** In the order of an index that the table is in, too: a microsecond or two each. */
const LOOK_MAX = 1_000_000;
/** Each is a step elsewhere: in the table for a prefix of jobs' ids, or in the deliveries. */
const LOOK_FAR_MAX = 100_000;
/** No statement draws a sequence so long after the time that it writes down. */
const DRAWN_WITHIN = sql`interval '1 hour'`;

/**
 * How many there are now, and where. Looks at a bounded number of events, since the ledger keeps them for good; at
 * `lookMax` at most.
 *
 * Where that is not all, the end is the highest sequence of all events: each that was committed before this statement
 * has one up to there. What is not committed yet may have one, too, as between the first and the last of those counted.
 */
export async function measureSelected(
  db: Kysely<Database>,
  selection: Selection,
  { sources, lookMax }: { sources: readonly string[] | null; lookMax?: number },
): Promise<Extent> {
  const { look, limit } = boundedLook(selection, sources, lookMax);
  const from = 'filter' in selection ? (selection.filter.from ?? null) : null;
  const { rows } = await sql<{
    looked: string;
    matched: string;
    first: string;
    last: string;
    before: string;
    newest: string;
  }>`
    select count(*) as looked, count(*) filter (where is_meant) as matched,
      coalesce(min(sequence) filter (where is_meant), 1) as first,
      coalesce(max(sequence) filter (where is_meant), 0) as last,
      -- One step each: in events_time, and in the primary key.
      coalesce((
        select b.sequence from events b where b.recorded_at < ${from}::timestamptz - ${DRAWN_WITHIN}
        order by b.recorded_at desc, b.sequence desc limit 1
      ), 0) as before,
      coalesce((select max(a.sequence) from events a), 0) as newest
    from (select e.sequence, ${selected(selection, sources)} as is_meant from (${look}) e offset 0) as looked_at`.execute(
    db,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('an aggregate has one row');
  const matched = Math.min(Number(row.matched), limit);
  return Number(row.looked) > limit
    ? { matched, isExact: false, after: row.before, upTo: row.newest }
    : { matched, isExact: true, after: String(BigInt(row.first) - 1n), upTo: row.last };
}

/** The first of them that are found, as operators are shown events. Looks at as many events as the count does. */
export async function sampleSelected(
  db: Kysely<Database>,
  selection: Selection,
  { sources, limit, lookMax }: { sources: readonly string[] | null; limit: number; lookMax?: number },
): Promise<EventItem[]> {
  const { look } = boundedLook(selection, sources, lookMax);
  const { rows } = await sql<{ sequence: string }>`
    select e.sequence from (${look}) e where ${selected(selection, sources)}
    order by e.sequence limit ${limit}`.execute(db);
  return readEventsNumbered(
    db,
    rows.map(({ sequence }) => sequence),
  );
}

/**
 * All that may be meant, by one index, and no more of it than may be looked at and one. In the index's order, so that the
 * planner cannot read the whole table instead; of each source apart, since no index gives the order of several.
 */
function boundedLook(selection: Selection, sources: readonly string[] | null, lookMax = LOOK_MAX) {
  const { conditions, order, known, isFar } = accessOf(selection, sources);
  const limit = Math.min(lookMax, isFar ? LOOK_FAR_MAX : LOOK_MAX);
  const ofSource = known === null ? [] : [sql<SqlBool>`i.source = k.source`];
  const ordered = sql`
    select i.sequence, i.source, i.job_id, i.status, i.error_code, i.late, i.recorded_at, i.delivery_id from events i
    where ${sql.join([sql`true`, ...ofSource, ...conditions], sql` and `)} order by ${order} limit ${limit + 1}`;
  const look =
    known === null
      ? ordered
      : sql`select i.* from (${known}) as k (source) cross join lateral (${ordered}) as i limit ${limit + 1}`;
  return { look, limit };
}

type Access = {
  /** On `events as i`, all served by one index, and the order of that index. */
  readonly conditions: readonly Expression<SqlBool>[];
  readonly order: Expression<unknown>;
  /** The sources, where the index begins with one; null where it does not. */
  readonly known: Expression<unknown> | null;
  /** Whether each row is a step elsewhere. */
  readonly isFar: boolean;
};

const IN_TIME = sql`i.recorded_at, i.sequence`;

/** The narrowest index, as a rule: a job's own, those of few events (error, failed, late), a source's, or that of time. */
function accessOf(selection: Selection, sources: readonly string[] | null): Access {
  if ('sequences' in selection) {
    const named = sql<SqlBool>`i.sequence = any(${[...selection.sequences]}::bigint[])`;
    return { conditions: [named], order: sql`i.sequence`, known: null, isFar: false };
  }
  const { filter } = selection;
  const names = filter.source === undefined ? sources : [filter.source];
  const known = names === null ? null : sql`select unnest(${[...names]}::text[])`;
  const ofJobs = jobsOf(filter);
  if (ofJobs !== undefined) {
    return { conditions: [ofJobs], order: sql`i.job_id`, known: known ?? KNOWN_SOURCES, isFar: true };
  }
  const isFar = filter.secret_fingerprint !== undefined || filter.remote_address !== undefined;
  const conditions = [];
  if (filter.from !== undefined) conditions.push(sql<SqlBool>`i.recorded_at >= ${filter.from}::timestamptz`);
  if (filter.to !== undefined) conditions.push(sql<SqlBool>`i.recorded_at < ${filter.to}::timestamptz`);
  const few = fewOf(filter);
  return few === undefined
    ? { conditions, order: IN_TIME, known, isFar }
    : { conditions: [few, ...conditions], order: IN_TIME, known: null, isFar };
}

function jobsOf({ job_id: jobId, job_id_prefix: prefix }: EventFilter): Expression<SqlBool> | undefined {
  if (jobId !== undefined) return sql<SqlBool>`i.job_id = ${jobId}`;
  if (prefix === undefined) return undefined;
  return sql<SqlBool>`i.job_id >= ${prefix} and i.job_id < ${prefixEnd(prefix)}`;
}

/** As the predicates of the partial indexes are written: events_error, events_status, events_late. */
function fewOf(filter: EventFilter): Expression<SqlBool> | undefined {
  if (filter.error_code !== undefined) return sql<SqlBool>`i.error_code = ${filter.error_code}`;
  if (filter.status === 'failed' || filter.kind === 'failed') return sql<SqlBool>`i.status = 'failed'`;
  return filter.late === true ? sql<SqlBool>`i.late` : undefined;
}
