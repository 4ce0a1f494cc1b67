// Which jobs are held: an event of theirs waits for a retry or is parked, so all later ones wait behind it in outbox_held.
// `jobs.hold` says so to the statement that records an event (R4).

import type { Statement } from './database.ts';

/**
 * Ends the hold of jobs that have no event left that others wait behind. `$1` and `$2` are their sources and ids.
 *
 * `hold` changes with each delivery of a held job and with each event that is held. If it has changed since this statement began,
 * nothing is released (R36): the end of what was held meanwhile does it. A duplicate at that moment leaves the job held, too, with
 * nothing to wait for: its next event is held, published and ends that.
 */
export const RELEASE_JOBS: Statement = {
  name: 'release-jobs',
  text: `
with freed as materialized (
  select j.source, j.job_id, j.hold from jobs j
  where (j.source, j.job_id) in (select * from unnest($1::text[], $2::text[])) and j.hold > 0
    and not exists (
      select from outbox_held h where h.source = j.source and h.job_id = j.job_id and h.state <> 'returned'
    )
),
locked as (
  select j.source, j.job_id, j.hold from jobs j
  where (j.source, j.job_id) in (select source, job_id from freed)
  order by j.source, j.job_id for update
)
update jobs j set hold = 0 from freed join locked using (source, job_id)
where j.source = freed.source and j.job_id = freed.job_id and locked.hold = freed.hold`,
};
