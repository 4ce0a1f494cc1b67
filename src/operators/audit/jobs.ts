// The list of jobs, and one job. What a job's state is, its events have told; a job is stuck if no event has told its end
// long after the first one.

import { type Kysely, sql } from 'kysely';
import { type Status, type Database, timeText } from '../../ledger/index.ts';
import { bySourcesAndJob, byUnusual } from './filters.ts';
import { type List, readPage, typesOf } from './lists.ts';
import { type Spec } from './scan.ts';

/** As the API shows it. */
export type JobItem = {
  readonly source: string;
  readonly job_id: string;
  readonly state: Status;
  readonly highest_progress: number | null;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly completed_at: string | null;
  readonly failed_at: string | null;
  readonly terminal_at: string | null;
  readonly duration_ms: number | null;
};

/** Times are RFC 3339, of when a job was first seen. `sources`: those that may be seen, null for all. */
export type JobFilters = {
  readonly sources: readonly string[] | null;
  readonly state?: Status | 'stuck' | undefined;
  /** Seconds since it was first seen, with `stuck` alone. */
  readonly stuck_after?: number | undefined;
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

export const STUCK_AFTER_S = 3_600;

const spec: Spec = {
  table: 'jobs',
  row: sql`t.source, t.job_id, t.last_status, t.highest_progress, t.first_seen_at, t.last_seen_at, t.completed_at,
    t.failed_at, t.terminal_at`,
  columns: sql`t.source, t.job_id, t.last_status as state, t.highest_progress,
    ${timeText('t.first_seen_at')} as first_seen_at, ${timeText('t.last_seen_at')} as last_seen_at,
    ${timeText('t.completed_at')} as completed_at, ${timeText('t.failed_at')} as failed_at,
    ${timeText('t.terminal_at')} as terminal_at,
    round(extract(epoch from t.terminal_at - t.first_seen_at) * 1000)::float8 as duration_ms`,
  time: 'first_seen_at',
  ties: [
    { column: 'source', type: 'text' },
    { column: 'job_id', type: 'text' },
  ],
};

export const jobs: List<JobFilters, JobItem> = {
  types: typesOf(spec),
  read: async (db, filters, options) => {
    const isStuck = filters.state === 'stuck';
    const { sure, maybe, filters: ofJob } = bySourcesAndJob(filters, 'few');
    const { rows, next } = await readPage(
      db,
      spec,
      {
        from: filters.from,
        to: isStuck ? firstSeenBefore(filters) : filters.to,
        ...(sure && { sure }),
        ...(maybe && { maybe }),
        filters: [
          ...ofJob,
          ...byUnusual('last_status', isStuck ? 'processing' : filters.state, {
            usual: ['completed'],
            only: sql`t.last_status <> 'completed'`,
          }),
        ],
      },
      options,
    );
    return { items: rows as JobItem[], next };
  },
};

/** By the database's clock, which is the one that said when a job was first seen. */
function firstSeenBefore({ to, stuck_after: seconds = STUCK_AFTER_S }: JobFilters) {
  return sql`least(${to ?? 'infinity'}::timestamptz, now() - make_interval(secs => ${seconds}::int))`;
}

/** By its primary key. Undefined if no event ever told of it. */
export async function findJob(
  db: Kysely<Database>,
  { source, jobId }: { source: string; jobId: string },
): Promise<JobItem | undefined> {
  const { rows } = await sql<JobItem>`
    select ${spec.columns} from jobs t where t.source = ${source} and t.job_id = ${jobId}`.execute(db);
  return rows[0];
}
