// An operator's decisions on live entries of the outbox: send one again, give it up, or hold it. Each is guarded by
// the state it expects. Replays' copies are not decided on one by one: their replay is paused, resumed or cancelled.

import { type Kysely, sql, type Transaction } from 'kysely';
import { type EntryItem, findEntry } from '../audit/outbox.ts';
import { eventId, type Status } from '../ledger/event.ts';
import type { Database, OutboxState } from '../ledger/tables.ts';
import { findEvents } from './selection.ts';

export type Decision = 'retry' | 'discard' | 'park';

export const RETRIED_AT_ONCE = 1_000;

const FROM: Readonly<Record<Decision, readonly OutboxState[]>> = {
  retry: ['returned', 'parked'],
  discard: ['returned', 'parked'],
  park: ['pending', 'returned'],
};

/** Where each leads. Who decides the same at the same time finds it done. */
const TO: Readonly<Partial<Record<Decision, OutboxState>>> = { retry: 'pending', park: 'parked' };

/** The entry with this number, or the live one of the event with this id. Locks it. */
export async function lockEntry(trx: Transaction<Database>, id: string): Promise<EntryItem | undefined> {
  const sequence = /^\d{1,19}$/.test(id) ? id : await sequenceOf(trx, id);
  if (sequence === undefined || BigInt(sequence) >= 2n ** 63n) return undefined;
  const row = await trx
    .selectFrom('outbox')
    .select('sequence')
    .where('sequence', '=', sequence)
    .forUpdate()
    .executeTakeFirst();
  return row && findEntry(trx, row.sequence);
}

/** By the key of the ledger, since the outbox has none of its own for that. A live entry has its event's number. */
async function sequenceOf(trx: Transaction<Database>, id: string): Promise<string | undefined> {
  const [event] = await findEvents(trx, [id]);
  return event?.sequence;
}

/**
 * Retry: pending, with all its attempts before it. Discard: out of the outbox, never to be published. Park: it and the
 * later events of its job wait, though one that is on its way may still arrive.
 * @param entry locked by `lockEntry`
 * @returns how it stands now, or as it was before it was discarded; undefined if its state does not allow it. Not
 *   changed if it stood so already.
 */
export async function decide(
  trx: Transaction<Database>,
  { entry, decision, by }: { entry: EntryItem; decision: Decision; by: string },
): Promise<{ entry: EntryItem; isChanged: boolean } | undefined> {
  if (entry.replay_id !== null) return undefined;
  if (entry.state === TO[decision]) return { entry, isChanged: false };
  if (!FROM[decision].includes(entry.state)) return undefined;
  if (decision === 'discard') {
    await trx.deleteFrom('outbox').where('sequence', '=', entry.id).execute();
    return { entry, isChanged: true };
  }
  await trx
    .updateTable('outbox')
    .set(
      decision === 'retry'
        ? RETRIED
        : // Parked entries are found among those that failed at least once.
          { state: 'parked', attempts: sql<number>`greatest(attempts, 1)`, last_error: `parked by ${by}` },
    )
    .where('sequence', '=', entry.id)
    .execute();
  const changed = await findEntry(trx, entry.id);
  return changed && { entry: changed, isChanged: true };
}

export type RetriedEntry = Pick<EntryItem, 'id' | 'event_id' | 'source' | 'last_error'>;

const RETRIED = { state: 'pending', attempts: 0, due_at: sql<Date>`now()` } as const;

/**
 * Retries the oldest live entries of a state, at most `RETRIED_AT_ONCE` (index outbox_waiting). Those that somebody
 * else decides on at this moment are left to him.
 * @returns those that are pending again, the oldest first
 */
export async function retryEntries(
  db: Kysely<Database>,
  { state, sources }: { state: 'returned' | 'parked'; sources: readonly string[] | null },
): Promise<{ retried: readonly RetriedEntry[]; remaining: boolean }> {
  let waiting = db
    .selectFrom('outbox')
    .select('sequence')
    .where('state', '=', state)
    .where('replay_id', 'is', null);
  if (sources !== null) waiting = waiting.where(sql<boolean>`source = any(${[...sources]}::text[])`);
  const rows = await db
    .updateTable('outbox')
    .set(RETRIED)
    .where('sequence', 'in', waiting.orderBy('sequence').limit(RETRIED_AT_ONCE).forUpdate().skipLocked())
    .returning(['sequence', 'source', 'job_id', 'status', 'progress_percentage', 'last_error'])
    .execute();
  const left = await waiting.limit(1).executeTakeFirst();
  const retried = rows
    .map(({ sequence, source, job_id: jobId, status, progress_percentage: progress, last_error }) => ({
      id: sequence,
      source,
      event_id: eventId(source, { jobId, status: status as Status, progress }),
      last_error,
    }))
    .toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
  return { retried, remaining: left !== undefined };
}
