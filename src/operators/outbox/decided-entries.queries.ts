// Which entries of the outbox an order takes: those that are named, or those of a filter, as the list shows them, oldest first.

import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import { type Database, hasEvent } from '../../ledger/index.ts';
import { findEvents } from '../events/by-id.queries.ts';
import type { Position } from '../kernel/list/cursor.ts';
import type { Order } from '../kernel/order/order.ts';
import type { Entry } from './contract.ts';
import { columns, type EntryRow, held, ofSources, readEntriesNamed, toEntry } from './entries.queries.ts';
import type { EntriesFilter } from './orders.contract.ts';
import { INSPECT, outbox } from './queries.ts';

/** Entries of the state that one call looks at, as many as the outbox's count. */
const LOOKED_AT_MAX = 100_000;

type Sources = Order<EntriesFilter>['sources'];

export type Picked = {
  /** Locked, oldest first. Some may be in a state that does not allow the decision. */
  readonly entries: readonly Entry[];
  /** By ids: each once as it was given, with its entry, as far as this call came. */
  readonly named?: readonly (readonly [id: string, entry: Entry | undefined])[];
  /** Where the next call goes on; undefined if none are left. */
  readonly next: Position | undefined;
};

/** `batches`: whether events that stand in batches are locked, too. Others are decided on in any case. */
type Locking = { readonly batches: boolean };

export function pickEntries(
  trx: Transaction<Database>,
  { which, ...order }: Order<EntriesFilter>,
  locking: Locking,
): Promise<Picked> {
  return which.filter === undefined
    ? pickNamed(trx, { ...order, ids: which.ids }, locking)
    : pickMatching(trx, { ...order, filter: which.filter }, locking);
}

type Page = Pick<Order<EntriesFilter>, 'sources' | 'after' | 'limit'>;

/** Waits for those that another transaction has locked. */
async function pickNamed(
  trx: Transaction<Database>,
  { ids, sources, after, limit }: Page & { ids: readonly string[] },
  { batches }: Locking,
): Promise<Picked> {
  const numbers = await numbersOf(trx, ids);
  const found = await lockEntries(trx, numbersIn(numbers), { batches, sources, lock: sql`for update` });
  const left = [...found.values()].filter(
    ({ id }) => after === undefined || BigInt(id) > BigInt(after[0] ?? 0),
  );
  const entries = left.slice(0, limit);
  const taken = new Set(entries.map(({ id }) => id));
  const named = [...new Set(ids)].flatMap((id): [string, Entry | undefined][] => {
    const entry = found.get(numbers.get(id) ?? '');
    // What is not there is said once, by the first call.
    const isTold = entry === undefined ? after === undefined : taken.has(entry.id);
    return isTold ? [[id, entry]] : [];
  });
  const last = left.length > entries.length ? entries.at(-1)?.id : undefined;
  return { entries, named, next: last === undefined ? undefined : [last, last, last] };
}

/**
 * Skips those that another transaction has locked. Each entry is taken once, even if it was returned again meanwhile, and the
 * calls come to an end, even if others are returned all the time: a call goes on behind the one before, up to the newest entry
 * of the first call.
 */
async function pickMatching(
  trx: Transaction<Database>,
  { filter, sources, ...page }: Page & { filter: EntriesFilter },
  { batches }: Locking,
): Promise<Picked> {
  const { found, next } = await findMatching(trx, { filter, sources, ...page });
  const numbers = found.map(({ id }) => id);
  const locked = await lockEntries(trx, numbers, { batches, sources, lock: sql`for update skip locked` });
  const { state, reason } = filter;
  // They may have changed since they were found.
  const entries = [...locked.values()].filter(
    (entry) => entry.state === state && (reason === undefined || entry.last_error === reason),
  );
  return { entries, next };
}

/**
 * Entries that match, at most `limit`: a page of the outbox's list. Changes nothing, and locks nothing.
 * @param page.after the bound, and a place in the list
 */
async function findMatching(
  db: Kysely<Database>,
  { filter, sources, after, limit }: Page & { filter: EntriesFilter },
): Promise<{ found: Entry[]; upTo: string; next: Position | undefined }> {
  const { source: _source, up_to: bound, ...others } = filter;
  const [upTo = '0', ...place] = after ?? [await newestEntry(db, bound)];
  const isBefore = (number = '0') => BigInt(number) < BigInt(upTo);
  const found: Entry[] = [];
  let from: Position | null = after === undefined ? null : place;
  for (let looked = 0; looked < LOOKED_AT_MAX && found.length < limit; looked += INSPECT) {
    const options = { after: from, limit: limit - found.length };
    const { items, next } = await outbox.read(db, { ...others, sources, copies: false }, options);
    found.push(...items.filter(({ id }) => id === upTo || isBefore(id)));
    from = next;
    if (from === null || !isBefore(from[0])) return { found, upTo, next: undefined };
  }
  return { found, upTo, next: [upTo, ...(from ?? [])] };
}

/** The oldest entries that are named or match. Changes nothing, and locks nothing. `isAll`: there are no others. */
export async function findEntries(
  db: Kysely<Database>,
  { which, sources }: Pick<Order<EntriesFilter>, 'which' | 'sources'>,
  limit: number,
): Promise<{ found: readonly Entry[]; upTo: string; isAll: boolean }> {
  if (which.filter !== undefined) {
    const { next, ...rest } = await findMatching(db, {
      filter: which.filter,
      sources,
      after: undefined,
      limit,
    });
    return { ...rest, isAll: next === undefined };
  }
  const entries = await readEntriesNamed(db, numbersIn(await numbersOf(db, which.ids)));
  return { found: entries.filter(isOf(sources)), upTo: await newestEntry(db), isAll: true };
}

/** The number of the newest entry, or `bound` if that is lower: calls that go no further come to an end. */
async function newestEntry(db: Kysely<Database>, bound?: string): Promise<string> {
  // By the primary keys. Of batches that overlap, the last one may not have the highest number of all.
  const { rows } = await sql<{ upTo: string | null }>`
    select least(
      greatest(
        (select max(sequence) from outbox_held), (select max(position) from replay_copies),
        (select b.sequences[cardinality(b.sequences)] from outbox_batches b order by b.first desc limit 1)
      ), ${bound ?? null}::bigint
    ) as "upTo"`.execute(db);
  return rows[0]?.upTo ?? '0';
}

/**
 * Numbers of entries by the ids as they were given: numbers, or ids of events, which have the number of their entry. An id that
 * no entry can have is not among them.
 */
async function numbersOf(db: Kysely<Database>, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const events = await findEvents(db, ids);
  const numbers = new Map(events.map(({ id, sequence }) => [id, sequence]));
  for (const id of ids) {
    if (/^\d{1,19}$/.test(id) && BigInt(id) < 2n ** 63n) numbers.set(id, BigInt(id).toString());
  }
  return numbers;
}

const numbersIn = (byId: ReadonlyMap<string, string>): string[] => [...new Set(byId.values())];

const isOf = (sources: Sources) => (entry: Entry) => sources === null || sources.includes(entry.source);

/**
 * The entries with these numbers, in their order. Locks batches first, then held ones, each in the order of their numbers: an
 * event may go from a batch into outbox_held, and never back, so it is not missed. Copies are not decided on, and not locked, and
 * neither is what stands in batches where it stays.
 */
async function lockEntries(
  trx: Transaction<Database>,
  numbers: readonly string[],
  { batches, sources, lock }: Locking & { sources: Sources; lock: RawBuilder<unknown> },
): Promise<ReadonlyMap<string, Entry>> {
  const batched = batches ? await lockBatches(trx, numbers, { sources, lock }) : undefined;
  const all = (await readEntriesNamed(trx, numbers)).filter(isOf(sources));
  const { rows } = await sql<EntryRow>`
    select ${columns} from (
      ${held} from (select * from outbox_held o where o.sequence = any(${numbers}::bigint[]) and ${ofSources(sources)}) h
      order by h.sequence ${lock}
    ) o`.execute(trx);
  const others = all.filter(
    ({ id, replay_id: replay, state }) =>
      replay !== null || (batched === undefined ? state === 'pending' : batched.has(id)),
  );
  const entries = new Map([...others, ...rows.map(toEntry)].map((entry) => [entry.id, entry]));
  return new Map([...entries].toSorted(([a], [b]) => (BigInt(a) < BigInt(b) ? -1 : 1)));
}

/** By outbox_batches_time. @returns the numbers of all events in the batches, as they are after a wait for the relay */
async function lockBatches(
  trx: Transaction<Database>,
  numbers: readonly string[],
  { sources, lock }: { sources: Sources; lock: RawBuilder<unknown> },
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ sequences: string[] }>`
    select b.sequences::text[] from outbox_batches b where b.first in (
      select b.first from events o join outbox_batches b on ${hasEvent('o')}
      where o.sequence = any(${numbers}::bigint[]) and ${ofSources(sources)}
    ) order by b.first ${lock}`.execute(trx);
  return new Set(rows.flatMap(({ sequences }) => sequences));
}
