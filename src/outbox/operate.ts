// What an operator may do with the outbox: look at what waits, and have returned or parked events published
// again. Both are plain reads and writes of the ledger; the relay picks up what is pending.

import { type Kysely, sql } from 'kysely';
import { eventId, parseEventId, type Status } from '../ledger/event.ts';
import type { Database, OutboxState } from '../ledger/tables.ts';

export type WaitingEntry = {
  readonly id: string;
  readonly state: OutboxState;
  readonly attempts: number;
  readonly recordedAt: Date;
  readonly lastError: string | null;
};

const STATES: readonly string[] = ['pending', 'returned', 'parked'] satisfies OutboxState[];

export function isOutboxState(text: string): text is OutboxState {
  return STATES.includes(text);
}

/** Oldest first. */
export async function listEntries(
  db: Kysely<Database>,
  { states, limit }: { states: readonly OutboxState[]; limit: number },
): Promise<WaitingEntry[]> {
  const rows = await db
    .selectFrom('outbox')
    .select([
      'source',
      'job_id',
      'status',
      'progress_percentage',
      'state',
      'attempts',
      'recorded_at',
      'last_error',
    ])
    .where('state', 'in', states)
    .orderBy('sequence')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    id: eventId(row.source, {
      jobId: row.job_id,
      status: row.status as Status,
      progress: row.progress_percentage,
    }),
    state: row.state,
    attempts: row.attempts,
    recordedAt: row.recorded_at,
    lastError: row.last_error,
  }));
}

/**
 * Makes returned or parked entries pending again, with all their attempts before them. Idempotent: pending
 * ones are left alone. The relay sends them under the ids they always had.
 * @param which one event's id, or a state for all that are in it.
 * @returns how many were put back, or undefined if the id is none.
 */
export async function retryEntries(
  db: Kysely<Database>,
  which: 'returned' | 'parked' | { readonly id: string },
): Promise<number | undefined> {
  const update = db
    .updateTable('outbox')
    .set({ state: 'pending', attempts: 0, due_at: sql<Date>`now()` })
    .where('state', '<>', 'pending');
  if (typeof which === 'string') {
    const { numUpdatedRows } = await update.where('state', '=', which).executeTakeFirstOrThrow();
    return Number(numUpdatedRows);
  }
  const key = parseEventId(which.id);
  if (key === undefined) return undefined;
  const { numUpdatedRows } = await update
    .where('source', '=', key.source)
    .where('job_id', '=', key.jobId)
    .where('status', '=', key.status)
    .where('progress_percentage', 'is not distinct from', key.progress)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}
