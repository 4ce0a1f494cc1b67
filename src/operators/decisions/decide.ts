// An operator's decision on one entry of the outbox. Retry: a returned or parked event is sent again. Discard: it is never
// published. Park: it is held back. Replays' copies are not decided on singly: their replay is paused, resumed or cancelled.

import type { Transaction } from 'kysely';
import { findEntry } from '../audit/entries.ts';
import type { Entry } from '../contract/outbox.ts';
import type { Database, OutboxState } from '../../ledger/index.ts';
import { findEvents } from '../replays/selection.ts';
import { lockBatchOf, park } from './park.ts';
import { decideLocked } from './retry.ts';

export type Decision = 'retry' | 'discard' | 'park';

/** The states that allow a decision, and the state after it; none after a discard. */
const DECISIONS: Readonly<Record<Decision, { from: readonly OutboxState[]; to?: OutboxState }>> = {
  retry: { from: ['returned', 'parked'], to: 'pending' },
  discard: { from: ['returned', 'parked'] },
  park: { from: ['pending', 'returned'], to: 'parked' },
};

const PAST = { retry: 'retried', discard: 'discarded', park: 'parked' } as const satisfies Record<
  Decision,
  string
>;

export type Verdict =
  | { readonly is: 'allowed' | 'unchanged' }
  /** `reason`: for people. */
  | { readonly is: 'refused'; readonly reason: string };

/** Whether the entry's state allows the decision; `unchanged` if it is in the new state already. */
export function judge({ replay_id, state }: Entry, decision: Decision): Verdict {
  const { from, to } = DECISIONS[decision];
  if (replay_id !== null) {
    return { is: 'refused', reason: 'it is a replay’s copy: pause, resume or cancel the replay' };
  }
  if (state === to) return { is: 'unchanged' };
  if (from.includes(state)) return { is: 'allowed' };
  return { is: 'refused', reason: `it is ${state}: a ${state} event cannot be ${PAST[decision]}` };
}

/** An entry's number in the form of the database; undefined for an event's id, and for a number that no entry can have. */
export function entryNumber(id: string): string | undefined {
  if (!/^\d{1,19}$/.test(id) || BigInt(id) >= 2n ** 63n) return undefined;
  return BigInt(id).toString();
}

/**
 * Locks the entry with this number, or the event's own entry by the event's id. Batches first: an event may go from there into
 * outbox_held, and never back, so it is not missed. Nothing is decided about copies, so these are not locked.
 */
export async function lockEntry(trx: Transaction<Database>, id: string): Promise<Entry | undefined> {
  const sequence = entryNumber(id) ?? (await sequenceOf(trx, id));
  if (sequence === undefined) return undefined;
  const isLocked = (await lockBatchOf(trx, sequence)) || (await lockHeld(trx, sequence));
  const entry = await findEntry(trx, sequence);
  return isLocked || entry?.replay_id ? entry : undefined;
}

async function lockHeld(trx: Transaction<Database>, sequence: string): Promise<boolean> {
  const row = await trx
    .selectFrom('outbox_held')
    .select('sequence')
    .where('sequence', '=', sequence)
    .forUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/** By the key of `events`, since the outbox has no index on it. An event and its entry have the same number. */
async function sequenceOf(trx: Transaction<Database>, id: string): Promise<string | undefined> {
  const [event] = await findEvents(trx, [id]);
  return event?.sequence;
}

/**
 * A retried entry has all its attempts again. Park makes the later events of the job wait as well; an event that is being
 * published may still arrive.
 * @param options.entry locked by `lockEntry`; its state allows the decision
 * @param options.by who decides
 * @returns the entry as it is now, or as it was before it was discarded
 */
export async function decide(
  trx: Transaction<Database>,
  { entry, decision, by }: { entry: Entry; decision: Decision; by: string },
): Promise<Entry> {
  if (decision === 'park') await park(trx, entry.id, by);
  else await decideLocked(trx, decision, [entry.id]);
  return (await findEntry(trx, entry.id)) ?? entry;
}
