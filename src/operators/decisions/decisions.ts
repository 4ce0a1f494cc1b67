// An operator's decisions on live entries of the outbox: send one again, give it up, or hold it. Each is guarded by
// the state it expects. Replays' copies are not decided on one by one: their replay is paused, resumed or cancelled.

import { type Kysely, sql, type Transaction } from 'kysely';
import { findEntry } from '../audit/outbox.ts';
import type { Entry } from '../contract/items.ts';
import { eventId, type Status, type Database, type OutboxState } from '../../ledger/index.ts';
import { findEvents } from '../replays/selection.ts';

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
  { entry, decision, by }: { entry: Entry; decision: Decision; by: string },
): Promise<{ entry: Entry; isChanged: boolean } | undefined> {
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

export type RetriedEntry = Pick<Entry, 'id' | 'event_id' | 'source' | 'last_error'>;

const RETRIED = { state: 'pending', attempts: 0, due_at: sql<Date>`now()` } as const;

/** Where a call ended, as numbers of entries: the next one begins behind it and goes no further than the first one did. */
export type RetryPlace = { readonly after: string; readonly upTo: string };

/**
 * Retries the oldest live entries of a state, at most `RETRIED_AT_ONCE` (index outbox_waiting). Those that somebody
 * else decides on at this moment are left to him.
 * @param place where the call before ended. With it each entry gets one turn, though the relay may have returned it again
 *   meanwhile, and the calls come to an end, though others are returned all the time.
 * @returns those that are pending again, the oldest first; `next` is undefined if none are left
 */
export async function retryEntries(
  db: Kysely<Database>,
  wanted: {
    readonly state: 'returned' | 'parked';
    readonly sources: readonly string[] | null;
    readonly place?: RetryPlace | undefined;
  },
): Promise<{ retried: readonly RetriedEntry[]; next: RetryPlace | undefined }> {
  const { after, upTo } = wanted.place ?? { after: '0', upTo: await newestEntry(db) };
  // Materialized, so that it is read once: as the inner side of a join it would be read again for each row of the other,
  // each time without the rows that it locked and changed before, and lock further ones beyond its limit.
  const rows = await db
    .with(
      (cte) => cte('picked').materialized(),
      () =>
        waiting(db, wanted, { after, upTo })
          .orderBy('sequence')
          .limit(RETRIED_AT_ONCE)
          .forUpdate()
          .skipLocked(),
    )
    .updateTable('outbox as o')
    .from('picked')
    .set(RETRIED)
    .whereRef('o.sequence', '=', 'picked.sequence')
    .returning(['o.sequence', 'o.source', 'o.job_id', 'o.status', 'o.progress_percentage', 'o.last_error'])
    .execute();
  const retried = rows
    .map(({ sequence, source, job_id: jobId, status, progress_percentage: progress, last_error }) => ({
      id: sequence,
      source,
      event_id: eventId(source, { jobId, status: status as Status, progress }),
      last_error,
    }))
    .toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
  const last = retried.at(-1);
  if (last === undefined) return { retried, next: undefined };
  const place = { after: last.id, upTo };
  const left = await waiting(db, wanted, place).orderBy('sequence').limit(1).executeTakeFirst();
  return { retried, next: left && place };
}

function waiting(
  db: Kysely<Database>,
  { state, sources }: { state: 'returned' | 'parked'; sources: readonly string[] | null },
  { after, upTo }: RetryPlace,
) {
  const found = db
    .selectFrom('outbox')
    .select('sequence')
    .where('state', '=', sql.lit(state))
    .where('replay_id', 'is', null)
    .where('sequence', '>', after)
    .where('sequence', '<=', upTo);
  return sources === null ? found : found.where(sql<boolean>`source = any(${[...sources]}::text[])`);
}

/** By the primary key. Digits, 0 if there is none. */
async function newestEntry(db: Kysely<Database>): Promise<string> {
  const row = await db
    .selectFrom('outbox')
    .select('sequence')
    .orderBy('sequence', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.sequence ?? '0';
}
