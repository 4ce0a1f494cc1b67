// Which jobs are held: an event of theirs waits for a retry or is parked, so all later ones wait behind it in outbox_held.
// `jobs.is_held` says so to the statement that records an event (R4).

import type { Statement } from '../sessions/database.ts';

/**
 * CTEs that hold the jobs of events; `held` has a row of each.
 * @param events a query for their `source` and `job_id`. They are locked before: jobs come after entries, in this order (R46)
 */
export const holdJobs = (events: string): string => `job as materialized (
  select j.source, j.job_id from jobs j where (j.source, j.job_id) in (${events})
  order by j.source, j.job_id for update
),
held as (
  update jobs j set is_held = true, hold_version = j.hold_version + 1
  from job where j.source = job.source and j.job_id = job.job_id returning j.job_id
)`;

/**
 * Ends the hold of jobs that have no event left that others wait behind. `$1` and `$2` are their sources and ids.
 *
 * `hold_version` grows with each delivery of a held job and with each event that is held. If it has changed since this statement
 * began, nothing is released (R36): the end of what was held meanwhile does it. A duplicate at that moment leaves the job held, too,
 * with nothing to wait for: its next event is held, published and ends that.
 */
export const RELEASE_JOBS: Statement = {
  name: 'release-jobs',
  text: `
with freed as materialized (
  select j.source, j.job_id, j.hold_version from jobs j
  where (j.source, j.job_id) in (select * from unnest($1::text[], $2::text[])) and j.is_held
    and not exists (
      select from outbox_held h where h.source = j.source and h.job_id = j.job_id and h.state <> 'returned'
    )
),
locked as (
  select j.source, j.job_id, j.hold_version from jobs j
  where (j.source, j.job_id) in (select source, job_id from freed)
  order by j.source, j.job_id for update
)
update jobs j set is_held = false from freed join locked using (source, job_id, hold_version)
where j.source = freed.source and j.job_id = freed.job_id`,
};
