// How many entries the outbox has, for the relay's metrics and for operators. Bounded: its cost does not grow with the backlog.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { batchedEvents, batches } from './batched-events.ts';
import type { Database, OutboxState } from '../schema/tables.ts';
import { timeText } from './time-text.ts';

export type OutboxDepth = {
  /** Live entries by state, each at most OUTBOX_COUNT_MAX. */
  readonly counts: Readonly<Record<OutboxState, number>>;
  /** Replays' copies, whatever their state, at most OUTBOX_COUNT_MAX. */
  readonly copies: number;
  /** False if there are more than were read: the counts are lower bounds then. */
  readonly isComplete: boolean;
  /**
   * When the oldest pending event was accepted, as text, and how many seconds ago. Null if there is none, or if all that were
   * read are of other sources.
   */
  readonly oldestPendingAt: string | null;
  readonly oldestPendingS: number | null;
};

/** Of each state; some 50 ms for each that has so many, and 200 ms if the events of so many batches are looked at. */
export const OUTBOX_COUNT_MAX = 100_000;

/** One entry more than OUTBOX_COUNT_MAX is read, to tell whether there are more. */
const limit = OUTBOX_COUNT_MAX + 1;

/**
 * Each state is counted by the index of its entries, so that many entries of one hide none of another. Pending events stand in
 * batches, or are held.
 * @param sources only entries of these; null is all
 */
export async function readOutboxDepth(
  db: Kysely<Database>,
  sources: readonly string[] | null,
): Promise<OutboxDepth> {
  const wanted = sources === null ? sql`true` : sql`o.source = any(${sources}::text[])`;
  const counted = (entries: RawBuilder<unknown>) => sql`
    (select count(*)::int as entries_read, count(*) filter (where ${wanted})::int as found,
       min(o.recorded_at) filter (where ${wanted}) as oldest
     from (${entries}) o)`;
  const batched = sources === null ? ALL_BATCHED : counted(BATCHED_WITH_SOURCES);
  const { rows } = await sql<Counted>`
    select batched.found + held.found as pending, returned.found as returned, parked.found as parked,
      copies.found as copies,
      greatest(batched.entries_read + held.entries_read, returned.entries_read, parked.entries_read, copies.entries_read)
        as entries_read,
      ${timeText('pending.oldest')} as oldest, extract(epoch from now() - pending.oldest)::float8 as age
    from ${batched} batched
    cross join ${counted(heldIn('pending'))} held
    cross join ${counted(heldIn('returned'))} returned
    cross join ${counted(heldIn('parked'))} parked
    cross join ${counted(COPIES)} copies
    cross join lateral (select least(batched.oldest, held.oldest) as oldest) pending`.execute(db);
  const [row] = rows;
  // Aggregates without groups give one row, whatever they find.
  if (row === undefined) throw new Error('nothing was counted');
  const { pending, returned, parked, copies } = row;
  return {
    counts: { pending: capped(pending), returned: capped(returned), parked: capped(parked) },
    copies: capped(copies),
    isComplete: row.entries_read <= OUTBOX_COUNT_MAX,
    oldestPendingAt: row.oldest,
    oldestPendingS: row.age === null ? null : Math.max(0, row.age),
  };
}

type Counted = Readonly<Record<'pending' | 'returned' | 'parked' | 'copies' | 'entries_read', number>> & {
  readonly oldest: string | null;
  readonly age: number | null;
};

/** Without a look at their events. If there are more batches than are read, there are more events, too. */
const ALL_BATCHED = sql`
  (select n.entries as entries_read, n.entries as found, n.oldest
   from (
     select least(coalesce(sum(cardinality(b.sequences)), 0), ${limit})::int as entries, min(b.recorded_at) as oldest
     from ${batches({ limit })} b
   ) n)`;

const BATCHED_WITH_SOURCES = sql`select e.source, e.recorded_at from ${batchedEvents({ limit })} limit ${limit}`;

const COPIES = sql`
  select o.source, o.recorded_at from replay_copies o order by o.position limit ${limit}`;

/** By outbox_held_pending or outbox_held_waiting: the conditions are written as the predicates of these are. */
const heldIn = (state: OutboxState): RawBuilder<unknown> => sql`
  select o.source, o.recorded_at from outbox_held o
  where ${state === 'pending' ? sql`o.state = 'pending'` : sql`o.state = ${sql.lit(state)} and o.state <> 'pending'`}
  order by o.sequence limit ${limit}`;

const capped = (found: number) => Math.min(found, OUTBOX_COUNT_MAX);
