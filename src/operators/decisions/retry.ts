// Sends returned and parked events again: sets their outbox entries to pending and due now, and the relay publishes them as
// any other entry. `retryEntry` does so for one entry (decide.ts), `retryEntries` for all of a state.

import { type Kysely, sql, type Transaction } from 'kysely';
import type { Entry } from '../contract/outbox.ts';
import { type Database, eventId, type Status } from '../../ledger/index.ts';

/** Entries that one transaction locks. */
export const RETRIED_AT_ONCE = 1_000;

const PENDING_NOW = { state: 'pending', attempts: 0, due_at: sql<Date>`now()` } as const;

/** The entry is locked by the caller. */
export async function retryEntry(trx: Transaction<Database>, sequence: string): Promise<void> {
  await trx.updateTable('outbox').set(PENDING_NOW).where('sequence', '=', sequence).execute();
}

export type RetriedEntry = Pick<Entry, 'id' | 'event_id' | 'source' | 'last_error'>;

/** Which part of the outbox is still to be retried, by the numbers of its entries. */
export type RetryPlace = { readonly after: string; readonly upTo: string };

type Wanted = { readonly state: 'returned' | 'parked'; readonly sources: readonly string[] | null };

/**
 * Retries the oldest entries of a state, at most `RETRIED_AT_ONCE` (index outbox_waiting). Skips replays' copies, and entries
 * that another transaction has locked.
 * @param wanted.place where the call before ended. So each entry is retried once, even if it was returned again meanwhile,
 *   and the calls come to an end, even if other events are returned all the time.
 * @returns the retried entries, oldest first; `next` is undefined if none are left
 */
export async function retryEntries(
  db: Kysely<Database>,
  wanted: Wanted & { readonly place?: RetryPlace | undefined },
): Promise<{ retried: readonly RetriedEntry[]; next: RetryPlace | undefined }> {
  const { after, upTo } = wanted.place ?? { after: '0', upTo: await newestEntry(db) };
  // Materialized, so that it runs once. As the inner side of a join it could run again for each outer row: it would then miss
  // the rows that it has changed, and lock further ones beyond its limit.
  const rows = await db
    .with(
      (cte) => cte('picked').materialized(),
      () =>
        entriesIn(db, wanted, { after, upTo })
          .orderBy('sequence')
          .limit(RETRIED_AT_ONCE)
          .forUpdate()
          .skipLocked(),
    )
    .updateTable('outbox as o')
    .from('picked')
    .set(PENDING_NOW)
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
  const left = await entriesIn(db, wanted, place).orderBy('sequence').limit(1).executeTakeFirst();
  return { retried, next: left && place };
}

function entriesIn(db: Kysely<Database>, { state, sources }: Wanted, { after, upTo }: RetryPlace) {
  const entries = db
    .selectFrom('outbox')
    .select('sequence')
    .where('state', '=', sql.lit(state))
    .where('replay_id', 'is', null)
    .where('sequence', '>', after)
    .where('sequence', '<=', upTo);
  return sources === null ? entries : entries.where(sql<boolean>`source = any(${[...sources]}::text[])`);
}

/** By the primary key. '0' if the outbox is empty. */
async function newestEntry(db: Kysely<Database>): Promise<string> {
  const row = await db
    .selectFrom('outbox')
    .select('sequence')
    .orderBy('sequence', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.sequence ?? '0';
}
