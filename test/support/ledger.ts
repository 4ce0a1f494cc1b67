// Reads the ledger from outside, as an operator would with psql, and keeps the relay from emptying the outbox where a test
// reads it.

import { BODY_SHA256 } from '../../src/ledger/understanding/body-hash.ts';
import type { TestDatabase } from './database.ts';
import { OUTBOX } from './outbox.ts';

export type DeliveryRow = {
  id: string;
  received_at: Date;
  source: string;
  outcome: string;
  http_status: number;
  reason: string | null;
  job_id: string | null;
  status: string | null;
  progress_percentage: number | null;
  event_sequence: string | null;
  path: string;
  remote_address: string | null;
  peer_address: string | null;
  headers: string;
  secret_fingerprint: string | null;
  signed_by: string | null;
  body_bytes: number | null;
  body_sha256: Buffer | null;
  body: Buffer | null;
};
type EventRow = {
  sequence: string;
  source: string;
  job_id: string;
  status: string;
  progress_percentage: number | null;
  late: boolean;
  occurred_at: Date | null;
  recorded_at: Date;
  delivery_id: string;
  content_hash: Buffer;
  repeats: number;
};
type JobRow = {
  source: string;
  job_id: string;
  first_seen_at: Date;
  last_seen_at: Date;
  highest_progress: number | null;
  completed_at: Date | null;
  failed_at: Date | null;
  terminal_at: Date | null;
  last_status: string;
};
type OutboxRow = {
  sequence: string;
  source: string;
  job_id: string;
  status: string;
  late: boolean;
  state: string;
};
type RefusalRow = { minute: Date; source: string; unauthorized: string; refused: string };

/** Without a job, or with `undefined`: of all jobs. */
const OF_JOB = '($1::text is null or job_id = $1)';

/** With the hash of each body, also of those that are kept. */
export const deliveries = (database: TestDatabase, jobId?: string): Promise<DeliveryRow[]> =>
  database.query<DeliveryRow>(
    `select d.*, ${BODY_SHA256} as body_sha256 from deliveries d where ${OF_JOB} order by id`,
    [jobId],
  );
export const events = (database: TestDatabase, jobId?: string): Promise<EventRow[]> =>
  database.query<EventRow>(`select * from events where ${OF_JOB} order by sequence`, [jobId]);
export const jobs = (database: TestDatabase, jobId?: string): Promise<JobRow[]> =>
  database.query<JobRow>(
    `select *, least(completed_at, failed_at) as terminal_at from jobs where ${OF_JOB} order by source, job_id`,
    [jobId],
  );
export const outbox = (database: TestDatabase, jobId?: string): Promise<OutboxRow[]> =>
  database.query<OutboxRow>(`select * from ${OUTBOX} where ${OF_JOB} order by sequence`, [jobId]);
export const refusals = (database: TestDatabase): Promise<RefusalRow[]> =>
  database.query<RefusalRow>('select * from refusals order by source, minute');

/**
 * The statements that wait for a lock, in this database only: the server runs statements of other tests too, and in pg_locks
 * their tables have the same oids, since all databases are copies of one.
 */
export const lockWaits = (database: TestDatabase): Promise<{ kind: string }[]> =>
  database.query(
    `select wait_event as kind from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  );

/** The statements that record deliveries and wait for a lock. */
export const waitingRecords = (database: TestDatabase): Promise<unknown[]> =>
  database.query(
    `select from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into jobs%'`,
  );

/** The names of the partitions of a table, in the order of their days. */
export async function partitionsOf(database: TestDatabase, parent: string): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    'select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1',
    [parent],
  );
  return rows.map(({ name }) => name);
}

/** Gives the lease to a holder that does not exist, so that no relay publishes until `letGo`. */
export async function holdOutbox(database: TestDatabase): Promise<{ letGo: () => Promise<void> }> {
  await database.query(
    `insert into relay_lease (name, holder, epoch, expires_at)
     values ('outbox', gen_random_uuid(), 1, now() + interval '1 hour')`,
  );
  return { letGo: async () => void (await database.query('delete from relay_lease')) };
}

/** The bodies of a source's deliveries, as if the schemas had not known them when they came. */
export const makeUnderstood = (database: TestDatabase, source: string) =>
  database.query(
    `update deliveries set body = convert_to(
       json_build_object('job_id', job_id, 'status', 'processing', 'progress_percentage', 1)::text, 'utf8')
     where source = $1`,
    [source],
  );
