// What decisions change in `jobs.hold`, which tells the intake that an event of the job is held: it then puts the later ones
// behind that event (ledger/record.ts, ledger/hold.ts).

import { CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import { type Database, RELEASE_JOBS } from '../../ledger/index.ts';

/**
 * CTEs that mark the jobs of the entries in the CTE `entries`, which has `source` and `job_id`. Jobs are locked in this order, and
 * after the entries (R46).
 */
export const holding = (entries: string): RawBuilder<unknown> => sql`
  job as materialized (
    select j.source, j.job_id from jobs j where (j.source, j.job_id) in (select source, job_id from ${sql.ref(entries)})
    order by j.source, j.job_id for update
  ),
  marked as (
    update jobs j set hold = j.hold + 1 from job where j.source = job.source and j.job_id = job.job_id
  )`;

/** Ends the hold of these jobs, where none of their events is held any more. */
export async function releaseJobs(
  db: Kysely<Database>,
  jobs: readonly { readonly source: string; readonly job_id: string }[],
): Promise<void> {
  if (jobs.length === 0) return;
  const columns = [jobs.map(({ source }) => source), jobs.map(({ job_id }) => job_id)];
  await db.executeQuery(CompiledQuery.raw(RELEASE_JOBS.text, columns));
}

/**
 * The intake of other replicas waits for jobs that a transaction has locked, 2 s with the default of `ANSWER_DEADLINE_MS`. A
 * replica that freezes while it has them locked loses the locks before.
 */
const IDLE_IN_TRANSACTION_MS = 1_000;

/** Postgres rolls the transaction back if this replica freezes. */
export async function limitIdleTime(db: Kysely<Database>): Promise<void> {
  await sql`select set_config('idle_in_transaction_session_timeout', ${`${IDLE_IN_TRANSACTION_MS}ms`}, true)`.execute(
    db,
  );
}
