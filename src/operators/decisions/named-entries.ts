// Retries or discards entries of the outbox that are named one by one. An id that names nothing, or an entry whose state does
// not allow the decision, keeps back none of the others: each id gets its own result.

import { type RawBuilder, sql, type Transaction } from 'kysely';
import { columns, type EntryRow, held, ofSources, readEntriesNamed, toEntry } from '../audit/entries.ts';
import { SAMPLE_MAX } from '../contract/orders.ts';
import type { EntryItem, OutboxPreview } from '../contract/outbox-orders.ts';
import type { Entry } from '../contract/outbox.ts';
import type { Database } from '../../ledger/index.ts';
import { findEvents } from '../replays/selection.ts';
import { entryNumber, judge } from './decide.ts';
import { wholeOutbox } from './entries.ts';
import { decideLocked, type ManyDecision } from './retry.ts';

type Named = {
  /** Numbers of entries, or ids of events. */
  readonly ids: readonly string[];
  /** Null for all. Entries of other sources count as not there. */
  readonly sources: readonly string[] | null;
};

type NamedRequest = Named & {
  /** The number of the last entry of the call before. */
  readonly after: string | undefined;
  readonly limit: number;
};

const PAST = { retry: 'retried', discard: 'discarded' } as const satisfies Record<ManyDecision, string>;

/**
 * In the order of the entries' numbers. Waits for those that another transaction has locked.
 * @returns `decided`: the entries as they were before. `next`: the `after` of the next call; undefined if none are left
 */
export async function decideNamed(
  trx: Transaction<Database>,
  decision: ManyDecision,
  { after, limit, ...named }: NamedRequest,
): Promise<{ items: EntryItem[]; decided: Entry[]; next: string | undefined }> {
  const entries = await readNamed(trx, named, sql`for update`);
  const left = inOrder(entries).filter(({ id }) => after === undefined || BigInt(id) > BigInt(after));
  const page = left.slice(0, limit);
  const decided = page.filter((entry) => judge(entry, decision).is === 'allowed');
  await decideLocked(
    trx,
    decision,
    decided.map(({ id }) => id),
  );
  const pageIds = new Set(page.map(({ id }) => id));
  const items = [...new Set(named.ids)].flatMap((id) => {
    const entry = entries.get(id);
    // Said once, by the first call.
    if (entry === undefined) return after === undefined ? [notFound(id)] : [];
    return pageIds.has(entry.id) ? [itemOf(id, entry, decision)] : [];
  });
  return { items, decided, next: left.length > page.length ? page.at(-1)?.id : undefined };
}

/** Changes nothing, and locks nothing. */
export async function previewNamed(
  trx: Transaction<Database>,
  decision: ManyDecision,
  named: Named,
): Promise<OutboxPreview> {
  const entries = inOrder(await readNamed(trx, named, sql``));
  const allowed = entries.filter((entry) => judge(entry, decision).is === 'allowed');
  const { upTo } = await wholeOutbox(trx);
  return {
    matched: allowed.length,
    matched_exactly: true,
    up_to: upTo,
    sample: allowed.slice(0, SAMPLE_MAX),
  };
}

/**
 * By the ids as they were given. Locks held ones in the order of their numbers, so that two orders do not deadlock. Others are not
 * decided on, and not locked. They are read before: an event may go from a batch into outbox_held meanwhile, but never back.
 */
async function readNamed(
  trx: Transaction<Database>,
  { ids, sources }: Named,
  lock: RawBuilder<unknown>,
): Promise<ReadonlyMap<string, Entry>> {
  const events = await findEvents(trx, ids);
  const sequences = new Map(events.map(({ id, sequence }) => [id, sequence]));
  for (const id of ids) {
    const number = entryNumber(id);
    if (number !== undefined) sequences.set(id, number);
  }
  const numbers = [...sequences.values()];
  const all = await readEntriesNamed(trx, numbers);
  const { rows } = await sql<EntryRow>`
    select ${columns} from (
      ${held} from (select * from outbox_held o where o.sequence = any(${numbers}::bigint[]) and ${ofSources(sources)}) h
      order by h.sequence ${lock}
    ) o`.execute(trx);
  const isSeen = ({ source }: Entry) => sources === null || sources.includes(source);
  const unlocked = all.filter(
    (entry) => isSeen(entry) && (entry.replay_id !== null || entry.state === 'pending'),
  );
  const entries = new Map([...unlocked, ...rows.map(toEntry)].map((entry) => [entry.id, entry]));
  return new Map(
    Array.from(sequences).flatMap(([id, sequence]): [string, Entry][] => {
      const entry = entries.get(sequence);
      return entry === undefined ? [] : [[id, entry]];
    }),
  );
}

/** Each once: an entry may be named by its number and by its event's id. */
const inOrder = (entries: ReadonlyMap<string, Entry>): Entry[] =>
  [...new Set(entries.values())].toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));

const notFound = (id: string): EntryItem => ({ id, event_id: null, result: 'not_found', reason: null });

function itemOf(id: string, entry: Entry, decision: ManyDecision): EntryItem {
  const verdict = judge(entry, decision);
  const told = { id, event_id: entry.event_id, reason: null };
  if (verdict.is === 'refused') return { ...told, result: 'wrong_state', reason: verdict.reason };
  return { ...told, result: verdict.is === 'unchanged' ? 'unchanged' : PAST[decision] };
}
