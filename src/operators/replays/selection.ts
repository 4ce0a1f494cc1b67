// Which events a replay is for: named by their ids, or by a filter as in the list of events. Finds and counts them in the
// ledger; what is done with them stands elsewhere.

import { type Expression, type Kysely, type SqlBool, sql } from 'kysely';
import type { z } from 'zod';
import type { Condition } from '../audit/access-path.ts';
import { type EventFilters, eventSpec, eventTable, readEventsNumbered } from '../audit/events.ts';
import { bySources, type Filter, type FilterTable, filtersOf } from '../audit/filters.ts';
import { looseScan } from '../audit/loose-scan.ts';
import type { deliveryFilters } from '../contract/deliveries.ts';
import type { Event, eventFilters } from '../contract/events.ts';
import { firstRows } from '../audit/scan.ts';
import { eventId, parseEventId, type Status } from '../../event/index.ts';
import { type Database } from '../../ledger/index.ts';

type DeliveryFilter = z.output<z.ZodObject<typeof deliveryFilters>>;
type OfDelivery = Pick<DeliveryFilter, 'secret_fingerprint' | 'remote_address'>;

/** As the API has it, since it is stored and shown as it was sent. At least one of them is given. */
export type EventFilter = z.output<z.ZodObject<typeof eventFilters>> & OfDelivery;

/** As it is stored in `replays.selection`. `sequences` are those of the ids, in ascending order. */
export type Selection =
  | { readonly event_ids: readonly string[]; readonly sequences: readonly string[] }
  | { readonly filter: EventFilter };

export type FoundEvent = { readonly id: string; readonly sequence: string; readonly source: string };

/** The events with these ids (events_dedup_key), in the order of their acceptance. */
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

/** The filters of the list of events, and those of an event's delivery. */
const replayTable: FilterTable<EventFilters & OfDelivery> = {
  ...eventTable,
  secret_fingerprint: (_, asked) => byDelivery(asked),
  remote_address: (_, asked) => (asked.secret_fingerprint === undefined ? byDelivery(asked) : undefined),
};

/**
 * An event's delivery has the event's time, and is found by the primary key in one partition. A released one is older: it is
 * found by index deliveries_released, which has no others; the subquery is hashed once.
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

/** `sources`: only events of these; null for all. */
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

/** The conditions on `events as t`. `sources`: only events of these; null for all. */
export function selected(selection: Selection, sources: readonly string[] | null): Expression<SqlBool> {
  const conditions = filtersIn(selection, sources).map(({ condition }) => condition);
  conditions.push(...timesOf(selection));
  if ('filter' in selection) {
    const { source, job_id, job_id_prefix } = selection.filter;
    // For events_dedup_key, which begins with the source, to serve a job without one.
    if (source === undefined && sources === null && (job_id ?? job_id_prefix) !== undefined)
      conditions.push(sql`t.source in (${looseScan('jobs', 'source')})`);
  }
  return sql<SqlBool>`(${sql.join(conditions, sql` and `)})`;
}

function timesOf(selection: Selection): Condition[] {
  const { from, to } = 'filter' in selection ? selection.filter : {};
  return [
    ...(from === undefined ? [] : [sql`t.recorded_at >= ${from}::timestamptz`]),
    ...(to === undefined ? [] : [sql`t.recorded_at < ${to}::timestamptz`]),
  ];
}

/** Between which sequences the events of a replay are: behind `after`, and up to `upTo`. */
export type Extent = {
  readonly matched: number;
  /** False if there were too many events to read: then `matched` is a lower bound. */
  readonly isExact: boolean;
  readonly after: string;
  readonly upTo: string;
};

/** Events that are read at most, in the order of the table: a microsecond or two each. */
const READ_MAX = 1_000_000;
/** The same if each costs a random access: to the table for a prefix of jobs' ids, or to the deliveries. */
const RANDOM_READ_MAX = 100_000;
/** No statement takes so long from its begin, which is the event's time, to drawing the event's sequence. */
const DRAWN_WITHIN = sql`interval '1 hour'`;

/**
 * Counts the events, and finds between which sequences they are. Reads a bounded number of events, at most `lookMax`, since
 * the ledger keeps them for good.
 *
 * If there are more, `upTo` is the highest sequence of all events: those committed before this statement have no higher one.
 * An event that is committed later may have a lower one, as it may in between the events that were counted: it is replayed, too.
 */
export async function measureSelected(
  db: Kysely<Database>,
  selection: Selection,
  { sources, lookMax }: { sources: readonly string[] | null; lookMax?: number },
): Promise<Extent> {
  const { read, limit } = boundedRead(selection, sources, lookMax);
  const from = 'filter' in selection ? (selection.filter.from ?? null) : null;
  const { rows } = await sql<{
    read: string;
    matched: string;
    first: string;
    last: string;
    before: string;
    newest: string;
  }>`
    select count(*) as read, count(*) filter (where is_meant) as matched,
      coalesce(min(sequence) filter (where is_meant), 1) as first,
      coalesce(max(sequence) filter (where is_meant), 0) as last,
      -- One row each: by events_time, and by the primary key.
      coalesce((
        select b.sequence from events b where b.recorded_at < ${from}::timestamptz - ${DRAWN_WITHIN}
        order by b.recorded_at desc, b.sequence desc limit 1
      ), 0) as before,
      coalesce((select max(a.sequence) from events a), 0) as newest
    from (select t.sequence, ${selected(selection, sources)} as is_meant from (${read}) t offset 0) as events_read`.execute(
    db,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('an aggregate has one row');
  const matched = Math.min(Number(row.matched), limit);
  return Number(row.read) > limit
    ? { matched, isExact: false, after: row.before, upTo: row.newest }
    : { matched, isExact: true, after: String(BigInt(row.first) - 1n), upTo: row.last };
}

/** The first of those that are counted, as the API shows events. */
export async function sampleSelected(
  db: Kysely<Database>,
  selection: Selection,
  { sources, limit, lookMax }: { sources: readonly string[] | null; limit: number; lookMax?: number },
): Promise<Event[]> {
  const { read } = boundedRead(selection, sources, lookMax);
  const { rows } = await sql<{ sequence: string }>`
    select t.sequence from (${read}) t where ${selected(selection, sources)}
    order by t.sequence limit ${limit}`.execute(db);
  return readEventsNumbered(
    db,
    rows.map(({ sequence }) => sequence),
  );
}

/**
 * The events that may be selected, by one index: the first of the filters' table, which is the narrowest as a rule. At most one
 * more than the limit, and in the order of the index, so that the planner does not read the whole table instead.
 */
function boundedRead(selection: Selection, sources: readonly string[] | null, lookMax = READ_MAX) {
  const path = filtersIn(selection, sources).find((filter) => filter.path !== undefined)?.path ?? {};
  const filter = 'filter' in selection ? selection.filter : {};
  const isRandom = [
    filter.job_id,
    filter.job_id_prefix,
    filter.secret_fingerprint,
    filter.remote_address,
  ].some((value) => value !== undefined);
  const limit = Math.min(lookMax, isRandom ? RANDOM_READ_MAX : READ_MAX);
  // Only what the conditions need, since a million rows may be read.
  const columns = sql`t.sequence, t.source, t.job_id, t.status, t.error_code, t.late, t.recorded_at, t.delivery_id`;
  // Of jobs those of any time: their index is not in the order of time, so the others would be read all the same.
  const conditions = path.sorted ? [] : timesOf(selection);
  const read = firstRows(eventSpec, path, { columns, conditions, limit: limit + 1 });
  return { read, limit };
}
