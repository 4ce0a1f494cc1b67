// The list of events, and one event by its id. What became of an event's publication stands in the outbox: what is no
// longer there is done.

import { type Kysely, sql } from 'kysely';
import {
  eventId,
  type Kind,
  kindOf,
  parseEventId,
  type Status,
  type Database,
  timeText,
} from '../../ledger/index.ts';
import { byColumn, bySourcesAndJob, byUnusual, statusOf } from './filters.ts';
import { type Filter, type List, readPage, typesOf } from './lists.ts';
import { type Spec } from './scan.ts';

/** As the API shows it. */
export type EventItem = {
  readonly id: string;
  readonly sequence: string;
  readonly source: string;
  readonly job_id: string;
  readonly status: Status;
  readonly kind: Kind;
  readonly progress_percentage: number | null;
  readonly error_code: string | null;
  readonly late: boolean;
  readonly occurred_at: string | null;
  readonly recorded_at: string;
  readonly delivery_id: string;
  readonly repeats: number;
  readonly publication: 'done' | 'pending' | 'returned' | 'parked';
};

/** Times are RFC 3339. `sources`: those that may be seen, null for all. */
export type EventFilters = {
  readonly sources: readonly string[] | null;
  readonly status?: Status | undefined;
  readonly kind?: Kind | undefined;
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
  readonly error_code?: string | undefined;
  readonly late?: boolean | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

// The event's own entry by its primary key; copies that a replay made have numbers of their own.
const complete = {
  columns: sql`page.*, coalesce(o.state, 'done') as publication`,
  joins: sql`left join outbox o on o.sequence = page.sequence`,
};

const spec: Spec = {
  table: 'events',
  row: sql`t.sequence, t.source, t.job_id, t.status, t.progress_percentage, t.error_code, t.late, t.occurred_at,
    t.recorded_at, t.delivery_id, t.repeats`,
  columns: sql`t.sequence, t.source, t.job_id, t.status, t.progress_percentage, t.error_code, t.late,
    ${timeText('t.occurred_at')} as occurred_at, ${timeText('t.recorded_at')} as recorded_at, t.delivery_id, t.repeats`,
  time: 'recorded_at',
  ties: [{ column: 'sequence', type: 'bigint' }],
  complete,
};

export const events: List<EventFilters, EventItem> = {
  types: typesOf(spec),
  read: async (db, filters, options) => {
    // A job has at most 103 events.
    const { sure, maybe, filters: ofJob } = bySourcesAndJob(filters, 'few');
    const { rows, next } = await readPage(
      db,
      spec,
      {
        from: filters.from,
        to: filters.to,
        ...(sure && { sure }),
        ...(maybe && { maybe }),
        filters: [
          ...ofJob,
          ...byStatus(filters.status),
          ...byStatus(statusOf(filters.kind)),
          ...byColumn('error_code', filters.error_code, { only: sql`t.error_code is not null` }),
          ...byLate(filters.late),
        ],
      },
      options,
    );
    return { items: (rows as EventRow[]).map(toEvent), next };
  },
};

const byStatus = (status: string | undefined) =>
  byUnusual('status', status, { usual: ['processing', 'completed'], only: sql`t.status = 'failed'` });

/** Late ones are few and have an index (events_late); nearly all others are not late. */
function byLate(late: boolean | undefined): Filter[] {
  if (late === undefined) return [];
  if (!late) return [{ condition: sql`not t.late` }];
  const condition = sql`t.late`;
  return [{ condition, access: { by: 'partial', condition } }];
}

type EventRow = Omit<EventItem, 'id' | 'kind'>;

function toEvent(row: EventRow): EventItem {
  const { source, job_id: jobId, status, progress_percentage: progress } = row;
  return { id: eventId(source, { jobId, status, progress }), ...row, kind: kindOf(status) };
}

/** By its key (events_dedup_key). Undefined if there is none. */
export async function findEvent(db: Kysely<Database>, id: string): Promise<EventItem | undefined> {
  const key = parseEventId(id);
  if (key === undefined) return undefined;
  const {
    rows: [row],
  } = await sql<EventRow>`
    with page as materialized (
      select ${spec.columns} from events t
      where t.source = ${key.source} and t.job_id = ${key.jobId} and t.status = ${key.status}
        and t.progress_percentage is not distinct from ${key.progress}::smallint)
    select ${complete.columns} from page ${complete.joins}`.execute(db);
  return row && toEvent(row);
}

/** Those with these numbers, in the order of their acceptance (primary key). */
export async function readEventsNumbered(
  db: Kysely<Database>,
  sequences: readonly string[],
): Promise<EventItem[]> {
  const { rows } = await sql<EventRow>`
    with page as materialized (
      select ${spec.columns} from events t where t.sequence = any(${sequences}::bigint[]))
    select ${complete.columns} from page ${complete.joins} order by page.sequence`.execute(db);
  return rows.map(toEvent);
}

/** All of one job, at most 103 (events_dedup_key), in the order in which they were accepted. */
export async function readEventsOfJob(
  db: Kysely<Database>,
  { source, jobId }: { source: string; jobId: string },
): Promise<EventItem[]> {
  const { rows } = await sql<EventRow>`
    with page as materialized (
      select ${spec.columns} from events t where t.source = ${source} and t.job_id = ${jobId})
    select ${complete.columns} from page ${complete.joins} order by page.sequence`.execute(db);
  return rows.map(toEvent);
}
