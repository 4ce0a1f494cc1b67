// What must be true after any run: checks of the ledger and of what a subscriber received.

import type { BusMessage } from './bus.ts';
import type { TestDatabase } from './database.ts';
import { OUTBOX } from './outbox.ts';
import { waitFor } from './waits.ts';

export type Received = Pick<BusMessage, 'id' | 'event'>;

/** The first copy of each event, in the order of arrival. */
function firstCopies<T extends { readonly id: string }>(messages: readonly T[]): T[] {
  const seen = new Set<string>();
  return messages.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** How often each id arrived. */
export function copies(messages: readonly { readonly id: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of messages) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** Ids of first copies that arrived after a later event of their job. Empty if guarantee 5 was kept. */
export function outOfOrder(messages: readonly Received[]): string[] {
  const last = new Map<unknown, string>();
  return firstCopies(messages)
    .filter(({ event }) => {
      const job = `${String(event['source'])} ${String(event['subject'])}`;
      const sequence = String(event['sequence']);
      const isLate = sequence < (last.get(job) ?? '');
      if (!isLate) last.set(job, sequence);
      return isLate;
    })
    .map(({ id }) => id);
}

/** Ids of copies whose bytes differ from the first copy. Empty if guarantee 4 was kept. */
export function altered(messages: readonly { readonly id: string; readonly text: string }[]): string[] {
  const first = new Map<string, string>();
  return messages
    .filter(({ id, text }) => {
      if (!first.has(id)) first.set(id, text);
      return first.get(id) !== text;
    })
    .map(({ id }) => id);
}

type Queryable = Pick<TestDatabase, 'query'>;

const EVENT_ID = `source || ':' || job_id || ':' || status || coalesce(':' || progress_percentage, '')`;

/** The ids of all events in the ledger, in the order of acceptance. */
export async function eventIds(database: Queryable): Promise<string[]> {
  const rows = await database.query<{ id: string }>(`select ${EVENT_ID} as id from events order by sequence`);
  return rows.map(({ id }) => id);
}

/** Our sessions as the server counts them: all, or those of one pool. */
export async function sessionsOf(
  { query, name }: Pick<TestDatabase, 'query' | 'name'>,
  pool = '%',
): Promise<number> {
  const [row] = await query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity where datname = $1 and application_name like 'tallyhook ' || $2`,
    [name, pool],
  );
  return row?.count ?? Number.NaN;
}

/** `state`: of its entries in this state alone. */
export async function outboxCount(database: Queryable, state = '%'): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    `select count(*)::int as count from ${OUTBOX} where state like $1`,
    [state],
  );
  return row?.count ?? Number.NaN;
}

/** Waits until no event is on its way: each was confirmed and recorded, or waits for somebody. A replay leaves others out. */
export async function untilNonePending(database: Queryable): Promise<void> {
  await waitFor(async () => {
    const count = await outboxCount(database, 'pending');
    if (count !== 0) throw new Error(`${count} events are still on their way`);
  });
}

/** Waits until nothing is left to publish. */
export function untilOutboxEmpty(database: Queryable, timeoutMs = 20_000): Promise<void> {
  return waitFor(
    async () => {
      const count = await outboxCount(database);
      if (count > 0) throw new Error(`${count} entries are still in the outbox`);
    },
    { timeout: timeoutMs, interval: 50 },
  );
}
