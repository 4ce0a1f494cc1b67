// How decisions end the hold of jobs (ledger/recording/hold.ts), and how long they may keep them locked.

import { CompiledQuery, type Kysely, sql } from 'kysely';
import { type Database, RELEASE_JOBS } from '../../../ledger/index.ts';

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
