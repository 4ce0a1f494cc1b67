// The list of events, and one event by its id. The state of its publication is that of its entry in the outbox: an event in a
// batch is pending, and one without an entry is done.

import { type Kysely, sql } from 'kysely';
import { eventId, kindOf, parseEventId } from '../../event/index.ts';
import { type Database, hasEvent } from '../../ledger/index.ts';
import {
  byAllSources,
  byColumn,
  byPartialIndex,
  type FilterTable,
  type Scoped,
  sourcesAndJobs,
  statusOf,
} from '../kernel/list/filters.queries.ts';
import { createList, type List, questionOf } from '../kernel/list/list.queries.ts';
import type { ListSpec } from '../kernel/list/range.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { Event, eventFilters } from './contract.ts';

export type EventFilters = Scoped<typeof eventFilters>;

type EventRow = Omit<Event, 'id' | 'kind'>;

// The event's own entry, by the primary key or outbox_batches_time. Copies that a replay made have numbers of their own. Each is
// looked up: for a join the planner may read all that is held.
const complete = {
  columns: sql`page.*, coalesce(
    (select h.state from outbox_held h where h.sequence = t.sequence),
    case when exists (select from outbox_batches b where ${hasEvent('t')}) then 'pending' else 'done' end
  ) as publication`,
  joins: sql`cross join lateral (select page.sequence, page.recorded_at::timestamptz as recorded_at) t`,
};

/** Index events_source. */
export const allEvents = byAllSources('events');

export const eventSpec: ListSpec<EventRow> = {
  table: 'events',
  row: sql`t.sequence, t.source, t.job_id, t.status, t.progress_percentage, t.error_code, t.late, t.occurred_at,
    t.recorded_at, t.delivery_id, t.repeats`,
  columns: shownColumns<Omit<EventRow, 'publication'>>({
    sequence: 'column',
    source: 'column',
    job_id: 'column',
    status: 'column',
    progress_percentage: 'column',
    error_code: 'column',
    late: 'column',
    occurred_at: 'time',
    recorded_at: 'time',
    delivery_id: 'column',
    repeats: 'column',
  }),
  time: 'recorded_at',
  ties: [{ column: 'sequence', type: 'bigint' }],
  all: () => [allEvents],
  complete,
};

const byStatus = (status: string) =>
  byColumn('status', status, { usual: ['processing', 'completed'], only: sql`t.status = 'failed'` });

// Indexes events_dedup_key and events_source. A job has at most 103 events.
const { sources, ...ofJobs } = sourcesAndJobs('events', 'few');

/** Where the filters of `events` become SQL, for the list and for replays, and by which index. */
export const eventTable: FilterTable<EventFilters> = {
  ...ofJobs,
  // Index events_error.
  error_code: (code) => byColumn('error_code', code, { only: sql`t.error_code is not null` }),
  // Both by events_status, which holds the failed ones.
  status: byStatus,
  kind: (kind) => byStatus(statusOf(kind)),
  // Index events_late. Nearly all others are not late.
  late: (isLate) => (isLate ? byPartialIndex(sql`t.late`) : { condition: sql`not t.late` }),
  // Last, since a replay is counted by the first one that has an index.
  sources,
};

export const events: List<EventFilters, Event> = createList(eventSpec, {
  toQuestion: questionOf(eventTable),
  toItem: toEvent,
});

function toEvent(row: EventRow): Event {
  const { source, job_id: jobId, status, progress_percentage: progress } = row;
  return { id: eventId(source, { jobId, status, progress }), ...row, kind: kindOf(status) };
}

/** By its key (events_dedup_key). Undefined if there is none. */
export async function findEvent(db: Kysely<Database>, id: string): Promise<Event | undefined> {
  const key = parseEventId(id);
  if (key === undefined) return undefined;
  const {
    rows: [row],
  } = await sql<EventRow>`
    with page as materialized (
      select ${eventSpec.columns} from events t
      where t.source = ${key.source} and t.job_id = ${key.jobId} and t.status = ${key.status}
        and t.progress_percentage is not distinct from ${key.progress}::smallint)
    select ${complete.columns} from page ${complete.joins}`.execute(db);
  return row && toEvent(row);
}

/** The events with these sequences, in the order of their acceptance (primary key). */
export async function readEventsNumbered(
  db: Kysely<Database>,
  sequences: readonly string[],
): Promise<Event[]> {
  const { rows } = await sql<EventRow>`
    with page as materialized (
      select ${eventSpec.columns} from events t where t.sequence = any(${sequences}::bigint[]))
    select ${complete.columns} from page ${complete.joins} order by page.sequence`.execute(db);
  return rows.map(toEvent);
}

/** All events of one job, at most 103 (events_dedup_key), in the order of their acceptance. */
export async function readEventsOfJob(
  db: Kysely<Database>,
  { source, jobId }: { source: string; jobId: string },
): Promise<Event[]> {
  const { rows } = await sql<EventRow>`
    with page as materialized (
      select ${eventSpec.columns} from events t where t.source = ${source} and t.job_id = ${jobId})
    select ${complete.columns} from page ${complete.joins} order by page.sequence`.execute(db);
  return rows.map(toEvent);
}
