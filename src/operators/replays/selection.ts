// Which events a replay means: named by their ids, or by a filter as in the list of events. Knows how to ask the ledger
// for them in the order of their acceptance, and nothing of what is done with them.

import { type Expression, type Kysely, type SqlBool, sql } from 'kysely';
import type { z } from 'zod';
import { type EventFilters, eventSpec, eventTable, readEventsNumbered } from '../audit/events.ts';
import { bySources, type Filter, type FilterTable, filtersOf } from '../audit/filters.ts';
import { looseScan } from '../audit/loose-scan.ts';
import { type Condition, firstRows } from '../audit/scan.ts';
import type { deliveryFilters, eventFilters } from '../contract/filters.ts';
import type { Event } from '../contract/items.ts';
import { eventId, parseEventId, type Status, type Database } from '../../ledger/index.ts';

type DeliveryFilter = z.output<z.ZodObject<typeof deliveryFilters>>;
type OfDelivery = Pick<DeliveryFilter, 'secret_fingerprint' | 'remote_address'>;

/** In the API's own words, since it is kept and shown as it was asked. At least one of them is given. */
export type EventFilter = z.output<z.ZodObject<typeof eventFilters>> & OfDelivery;

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

/** The list's filters, and those of the delivery that told an event. */
const replayTable: FilterTable<EventFilters & OfDelivery> = {
  ...eventTable,
  secret_fingerprint: (_, asked) => byDelivery(asked),
  remote_address: (_, asked) => (asked.secret_fingerprint === undefined ? byDelivery(asked) : undefined),
};

/**
 * The delivery that told an event was accepted at the same moment (primary key of `deliveries`, one partition), but
 * for those that were released later (index deliveries_released, which holds just these; hashed once).
 */
function byDelivery({ secret_fingerprint: secret, remote_address: address }: OfDelivery): Filter {
  const wanted = [
    ...(secret === undefined ? [] : [sql`d.secret_fingerprint = ${secret}`]),
    ...(address === undefined ? [] : [sql`d.remote_address = ${address}`]),
  ];
  const condition = sql.join(wanted, sql` and `);
  return {
    condition: sql`(
      exists (
        select from deliveries d
        where d.id = t.delivery_id and d.received_at = t.recorded_at and ${condition}
      )
      or (t.sequence, t.delivery_id) in (
        select d.event_sequence, d.id from deliveries d where d.released_at is not null and ${condition}
      )
    )`,
  };
}

/** `sources` limits it to some; null for all. */
function filtersIn(selection: Selection, sources: readonly string[] | null): Filter[] {
  if ('sequences' in selection) {
    const condition = sql`t.sequence = any(${[...selection.sequences]}::bigint[])`;
    const named = { condition, path: { only: condition, sorted: { by: ['sequence'] } } };
    const within = bySources(sources);
    return within === undefined ? [named] : [named, within];
  }
  const { source, ...filter } = selection.filter;
  const within = source === undefined ? sources : (sources?.filter((name) => name === source) ?? [source]);
  return filtersOf(replayTable, { ...filter, sources: within });
}

/** The conditions on `events as t`. `sources` limits it to some; null for all. */
export function selected(selection: Selection, sources: readonly string[] | null): Expression<SqlBool> {
  const conditions: Condition[] = filtersIn(selection, sources).map(({ condition }) => condition);
  if ('filter' in selection) {
    const { source, job_id, job_id_prefix, from, to } = selection.filter;
    if (from !== undefined) conditions.push(sql`t.recorded_at >= ${from}::timestamptz`);
    if (to !== undefined) conditions.push(sql`t.recorded_at < ${to}::timestamptz`);
    // So that events_dedup_key, which begins with the source, serves a job without one.
    if (source === undefined && sources === null && (job_id ?? job_id_prefix) !== undefined)
      conditions.push(sql`t.source in (${looseScan('jobs', 'source')})`);
  }
  return sql<SqlBool>`(${sql.join(conditions, sql` and `)})`;
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
    from (select t.sequence, ${selected(selection, sources)} as is_meant from (${look}) t offset 0) as looked_at`.execute(
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
): Promise<Event[]> {
  const { look } = boundedLook(selection, sources, lookMax);
  const { rows } = await sql<{ sequence: string }>`
    select t.sequence from (${look}) t where ${selected(selection, sources)}
    order by t.sequence limit ${limit}`.execute(db);
  return readEventsNumbered(
    db,
    rows.map(({ sequence }) => sequence),
  );
}

/**
 * All that may be meant, by one index, and no more of it than may be looked at and one: by the narrowest as a rule, which is
 * the first one in the table. In the index's order, so that the planner cannot read the whole table instead.
 */
function boundedLook(selection: Selection, sources: readonly string[] | null, lookMax = LOOK_MAX) {
  const path = filtersIn(selection, sources).find((filter) => filter.path !== undefined)?.path ?? {};
  const { from, to, ...filter } = 'filter' in selection ? selection.filter : {};
  const isFar = [filter.job_id, filter.job_id_prefix, filter.secret_fingerprint, filter.remote_address].some(
    (value) => value !== undefined,
  );
  const limit = Math.min(lookMax, isFar ? LOOK_FAR_MAX : LOOK_MAX);
  // What the conditions need, and no more: a million rows of these are looked at.
  const columns = sql`t.sequence, t.source, t.job_id, t.status, t.error_code, t.late, t.recorded_at, t.delivery_id`;
  const look = firstRows(eventSpec, path, { columns, bounds: { after: null, from, to }, limit: limit + 1 });
  return { look, limit };
}
