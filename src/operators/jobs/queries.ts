// The list of jobs, and one job. A job's state comes from its events. It is stuck if it has not ended long after it was first
// seen.

import { type Kysely, sql } from 'kysely';
import { STUCK_AFTER_S } from '../../base/time/stuck-after.ts';
import type { Database } from '../../ledger/index.ts';
import {
  byAllSources,
  byColumn,
  type FilterTable,
  type Scoped,
  sourcesAndJobs,
} from '../kernel/list/filters.queries.ts';
import { createList, type List, questionOf } from '../kernel/list/list.queries.ts';
import type { ListSpec } from '../kernel/list/range.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { Job, jobFilters } from './contract.ts';

/** `from` and `to` are of when a job was first seen. */
export type JobFilters = Scoped<typeof jobFilters>;

const spec: ListSpec<Job> = {
  table: 'jobs',
  row: sql`t.source, t.job_id, t.last_status, t.highest_progress, t.first_seen_at, t.last_seen_at, t.completed_at,
    t.failed_at, t.is_held, least(t.completed_at, t.failed_at) as terminal_at`,
  columns: shownColumns<Job>({
    source: 'column',
    job_id: 'column',
    state: sql`t.last_status`,
    highest_progress: 'column',
    first_seen_at: 'time',
    last_seen_at: 'time',
    completed_at: 'time',
    failed_at: 'time',
    is_held: 'column',
    terminal_at: 'time',
    // By the events' key.
    error_code: sql`case when t.failed_at is not null then (
      select e.error_code from events e where e.source = t.source and e.job_id = t.job_id and e.status = 'failed') end`,
    duration_ms: sql`case when t.terminal_at > t.first_seen_at
      then round(extract(epoch from t.terminal_at - t.first_seen_at) * 1000)::float8 end`,
  }),
  time: 'first_seen_at',
  ties: [
    { column: 'source', type: 'text' },
    { column: 'job_id', type: 'text' },
  ],
  // Index jobs_source.
  all: () => [byAllSources('jobs')],
};

// The primary key, and index jobs_source.
const { sources, ...ofJobs } = sourcesAndJobs('jobs', 'few');

/** Where the filters of `jobs` become SQL, and by which index. */
const jobTable: FilterTable<JobFilters> = {
  ...ofJobs,
  // Index jobs_status. Stuck ones are those in processing before a time: see `firstSeenBefore`.
  state: (state) =>
    byColumn('last_status', state === 'stuck' ? 'processing' : state, {
      usual: ['completed'],
      only: sql`t.last_status <> 'completed'`,
    }),
  stuck_after: () => undefined,
  sources,
};

export const jobs: List<JobFilters, Job> = createList(spec, {
  toQuestion: (asked) => {
    const question = questionOf(jobTable)(asked);
    return asked.state === 'stuck' ? { ...question, to: firstSeenBefore(asked) } : question;
  },
  toItem: (job) => job,
});

/** By the database's clock, as first_seen_at is. */
function firstSeenBefore({ to, stuck_after: seconds = STUCK_AFTER_S }: JobFilters) {
  return sql`least(${to ?? 'infinity'}::timestamptz, now() - make_interval(secs => ${seconds}::int))`;
}

/** By its primary key. Undefined for a job without an event. */
export async function findJob(
  db: Kysely<Database>,
  { source, jobId }: { source: string; jobId: string },
): Promise<Job | undefined> {
  const { rows } = await sql<Job>`
    select ${spec.columns} from (
      select ${spec.row} from jobs t where t.source = ${source} and t.job_id = ${jobId}
    ) t`.execute(db);
  return rows[0];
}
