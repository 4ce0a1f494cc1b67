// An operator's decision on one entry of the outbox. Retry: a returned or parked event is sent again (retry.ts). Discard: it
// is never published. Park: it is held back. Replays' copies are not decided on singly: their replay is paused, resumed or
// cancelled.

import { sql, type Transaction } from 'kysely';
import { findEntry } from '../audit/outbox.ts';
import type { Entry } from '../contract/outbox.ts';
import type { Database, OutboxState } from '../../ledger/index.ts';
import { findEvents } from '../replays/selection.ts';
import { retryEntry } from './retry.ts';

export type Decision = 'retry' | 'discard' | 'park';

/** The states that allow a decision, and the state after it; none after a discard. */
const DECISIONS: Readonly<Record<Decision, { from: readonly OutboxState[]; to?: OutboxState }>> = {
  retry: { from: ['returned', 'parked'], to: 'pending' },
  discard: { from: ['returned', 'parked'] },
  park: { from: ['pending', 'returned'], to: 'parked' },
};

/** Locks the entry with this number, or the event's own entry by the event's id. */
export async function lockEntry(trx: Transaction<Database>, id: string): Promise<Entry | undefined> {
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

/** By the key of `events`, since the outbox has no index on it. An event and its entry have the same number. */
async function sequenceOf(trx: Transaction<Database>, id: string): Promise<string | undefined> {
  const [event] = await findEvents(trx, [id]);
  return event?.sequence;
}

/**
 * A retried entry has all its attempts again. Park makes the later events of the job wait as well; an event that is being
 * published may still arrive.
 * @param options.entry locked by `lockEntry`
 * @param options.by who decides
 * @returns the entry as it is now, or as it was before it was discarded; `isChanged` is false if it was in the new state
 *   already. Undefined if its state does not allow the decision.
 */
export async function decide(
  trx: Transaction<Database>,
  { entry, decision, by }: { entry: Entry; decision: Decision; by: string },
): Promise<{ entry: Entry; isChanged: boolean } | undefined> {
  const { from, to } = DECISIONS[decision];
  if (entry.replay_id !== null) return undefined;
  if (entry.state === to) return { entry, isChanged: false };
  if (!from.includes(entry.state)) return undefined;
  if (decision === 'discard') {
    await trx.deleteFrom('outbox').where('sequence', '=', entry.id).execute();
    return { entry, isChanged: true };
  }
  await (decision === 'retry' ? retryEntry(trx, entry.id) : parkEntry(trx, entry.id, by));
  const changed = await findEntry(trx, entry.id);
  return changed && { entry: changed, isChanged: true };
}

async function parkEntry(trx: Transaction<Database>, sequence: string, by: string): Promise<void> {
  await trx
    .updateTable('outbox')
    .set({
      state: 'parked',
      attempts: sql<number>`greatest(attempts, 1)`, // index outbox_troubled has entries with attempts alone
      last_error: `parked by ${by}`,
    })
    .where('sequence', '=', sequence)
    .execute();
}
