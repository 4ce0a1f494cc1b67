// Which events a replay means: named by their ids, or by a filter as in the list of events. Knows how to ask the ledger
// for them in the order of their acceptance, and nothing of what is done with them.

import { type Expression, type Kysely, type SqlBool, sql } from 'kysely';
import { type EventItem, readEventsNumbered } from '../audit/events.ts';
import { prefixEnd, statusOf } from '../audit/filters.ts';
import { eventId, parseEventId, type Kind, type Status } from '../ledger/event.ts';
import type { Database } from '../ledger/tables.ts';

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

/** How many there are now, and between which sequences. As slow as the filter is wide. */
export async function countSelected(
  db: Kysely<Database>,
  selection: Selection,
  sources: readonly string[] | null,
): Promise<{ matched: string; first: string; last: string }> {
  const { rows } = await sql<{ matched: string; first: string; last: string }>`
    select count(*) as matched, coalesce(min(e.sequence), 1) as first, coalesce(max(e.sequence), 0) as last
    from events e where ${selected(selection, sources)}`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('an aggregate has one row');
  return row;
}

/** The first of them, as operators are shown events. */
export async function sampleSelected(
  db: Kysely<Database>,
  selection: Selection,
  { sources, limit }: { sources: readonly string[] | null; limit: number },
): Promise<EventItem[]> {
  const { rows } = await sql<{ sequence: string }>`
    select e.sequence from events e where ${selected(selection, sources)}
    order by e.sequence limit ${limit}`.execute(db);
  return readEventsNumbered(
    db,
    rows.map(({ sequence }) => sequence),
  );
}
