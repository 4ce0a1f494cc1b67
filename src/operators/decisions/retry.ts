// Retries and discards entries of the outbox. A retried one is pending and due now, with all attempts anew: the relay publishes
// it as any other. A discarded one leaves the outbox. For one entry: decide.ts; for many by their ids: named-entries.ts.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { columns, type EntryRow, held, toEntry } from '../audit/entries.ts';
import type { Entry } from '../contract/outbox.ts';
import { DECIDED_AT_ONCE } from '../contract/outbox-orders.ts';
import type { Database } from '../../ledger/index.ts';
import { entriesIn, type EntryPlace, type Wanted, wholeOutbox } from './entries.ts';
import { holding, limitIdleTime, releaseJobs } from './job-holds.ts';

export type ManyDecision = 'retry' | 'discard';

export type DecidedEntry = Pick<Entry, 'id' | 'event_id' | 'source' | 'last_error'>;

/** Which entries, and where the call before ended: undefined for the first one. */
type EntriesRequest = Wanted & {
  readonly place?: EntryPlace | undefined;
  readonly limit?: number | undefined;
};

export type DecidedEntries = {
  /** Oldest first. */
  readonly decided: readonly DecidedEntry[];
  /** Where the next call goes on; undefined if none are left. */
  readonly next: EntryPlace | undefined;
};

/** The entries are locked by the caller. @returns those that were there, oldest first */
export function decideLocked(
  db: Kysely<Database>,
  decision: ManyDecision,
  ids: readonly string[],
): Promise<DecidedEntry[]> {
  return carryOut(db, decision, sql`select unnest(${ids}::bigint[]) as sequence`);
}

/**
 * Decides on the oldest entries that match. Skips those that another transaction has locked. Each entry is decided on once,
 * even if it was returned again meanwhile, and the calls come to an end, even if others are returned all the time: a call
 * goes on behind the last entry of the one before, up to the newest entry of the first call.
 */
export async function decideEntries(
  db: Kysely<Database>,
  decision: ManyDecision,
  { place: given, limit = DECIDED_AT_ONCE, ...wanted }: EntriesRequest,
): Promise<DecidedEntries> {
  const place = given ?? (await wholeOutbox(db));
  const { from, where } = entriesIn(wanted, place);
  const picked = sql`
    select o.sequence ${from} and ${where} order by o.sequence limit ${limit} for update of o skip locked`;
  const decided = await carryOut(db, decision, picked);
  const last = decided.at(-1);
  if (last === undefined) return { decided, next: undefined };
  const next = { after: last.id, upTo: place.upTo };
  const behind = entriesIn(wanted, next);
  const left = await sql`
    select ${behind.from} and ${behind.where} order by o.sequence limit 1`.execute(db);
  return { decided, next: left.rows.length > 0 ? next : undefined };
}

const CHANGES: Readonly<Record<ManyDecision, RawBuilder<unknown>>> = {
  retry: sql`update outbox_held o set state = 'pending', attempts = 0, due_at = now() from picked p`,
  discard: sql`delete from outbox_held o using picked p`,
};

/**
 * `picked` is materialized, so that it runs once. As the inner side of a join it could run again for each outer row: it would
 * then miss the rows that it has changed, and lock further ones beyond its limit.
 *
 * A retried event holds its job, so that later ones wait for it. A discarded one may have been the last that did.
 */
async function carryOut(
  db: Kysely<Database>,
  decision: ManyDecision,
  picked: RawBuilder<unknown>,
): Promise<DecidedEntry[]> {
  await limitIdleTime(db);
  const { rows } = await sql<EntryRow>`
    with picked as materialized (${picked}),
    decided as (${CHANGES[decision]} where o.sequence = p.sequence returning o.*)
    ${decision === 'retry' ? sql`, ${holding('decided')}` : sql``}
    select ${columns} from (${held} from decided h) o`.execute(db);
  if (decision === 'discard') await releaseJobs(db, rows);
  return rows.map(toEntry).toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}
