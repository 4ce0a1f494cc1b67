// Parks an event: it is held back, and the later ones of its job wait behind it. If it stands in a batch, it is taken out of it.

import { sql, type Transaction } from 'kysely';
import { type Database, tellLeader } from '../../ledger/index.ts';
import { holding, limitIdleTime } from './job-holds.ts';

/** The batch `b` of an event (outbox_batches_time): both have the same time. */
const isBatchOf = (sequence: string) => sql`
  b.recorded_at = (select e.recorded_at from events e where e.sequence = ${sequence}::bigint)
  and ${sequence}::bigint = any(b.sequences)`;

/**
 * Locks the batch that has the event. Postgres looks at the batch again after a wait for the relay.
 * @returns false if no batch has it, or not any more
 */
export async function lockBatchOf(trx: Transaction<Database>, sequence: string): Promise<boolean> {
  const { rows } = await sql`
    select b.first from outbox_batches b where ${isBatchOf(sequence)} for update`.execute(trx);
  return rows.length > 0;
}

/** @param sequence of an event in a batch or in outbox_held, which the caller has locked */
export async function park(trx: Transaction<Database>, sequence: string, by: string): Promise<void> {
  await takeOutOfBatch(trx, sequence);
  await limitIdleTime(trx);
  await sql`
    with parked as (
      insert into outbox_held as h (
        sequence, source, job_id, status, progress_percentage, late, recorded_at, due_at, state, attempts, last_error
      )
      select e.sequence, e.source, e.job_id, e.status, e.progress_percentage, e.late, e.recorded_at, e.recorded_at,
             'parked', 1, ${`parked by ${by}`}
      from events e where e.sequence = ${sequence}::bigint
      on conflict (sequence) do update set
        state = 'parked', attempts = greatest(h.attempts, 1), last_error = excluded.last_error
      returning h.sequence, h.source, h.job_id
    ), ${holding('parked')}
    select from parked`.execute(trx);
  await tellLeader(trx);
}

async function takeOutOfBatch(trx: Transaction<Database>, sequence: string): Promise<void> {
  await sql`
    delete from outbox_batches b where ${isBatchOf(sequence)} and cardinality(b.sequences) = 1`.execute(trx);
  await sql`
    update outbox_batches b set sequences = array_remove(b.sequences, ${sequence}::bigint)
    where ${isBatchOf(sequence)}`.execute(trx);
}
