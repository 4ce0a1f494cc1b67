// How many entries the outbox has, for the relay's metrics and for operators. Bounded: its cost does not grow with the backlog.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database, OutboxState } from './tables.ts';
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

/** Of each state; some 50 ms for each that has so many. */
export const OUTBOX_COUNT_MAX = 100_000;

/**
 * Each state is counted by the index of its entries (outbox_pending, outbox_waiting, outbox_replay), so that many entries of
 * one hide none of another. The conditions are written as the predicates of these partial indexes are.
 * @param sources only entries of these; null is all
 */
export async function readOutboxDepth(
  db: Kysely<Database>,
  sources: readonly string[] | null,
): Promise<OutboxDepth> {
  const wanted = sources === null ? sql`true` : sql`o.source = any(${sources}::text[])`;
  const live = sql`o.replay_id is null`;
  const counted = (scan: RawBuilder<unknown>, kind: RawBuilder<unknown> = sql`true`) => sql`
    (select count(*)::int as entries_read, count(*) filter (where ${wanted} and ${kind})::int as found,
       min(o.sequence) filter (where ${wanted}) as first
     from (select o.sequence, o.source, o.replay_id from outbox o where ${scan} limit ${OUTBOX_COUNT_MAX + 1}) o)`;
  // outbox_waiting has copies, too, which are filtered out here; outbox_pending has none.
  const statement = sql<{
    pending: number;
    returned: number;
    parked: number;
    copies: number;
    entries_read: number;
    oldest: string | null;
    age: number | null;
  }>`
    select pending.found as pending, returned.found as returned, parked.found as parked, copies.found as copies,
      greatest(pending.entries_read, returned.entries_read, parked.entries_read, copies.entries_read) as entries_read,
      ${timeText('oldest.recorded_at')} as oldest, extract(epoch from now() - oldest.recorded_at)::float8 as age
    from ${counted(sql`o.state = 'pending' and ${live} order by o.sequence`)} pending
    cross join ${counted(sql`o.state = 'returned' and o.state <> 'pending' order by o.sequence`, live)} returned
    cross join ${counted(sql`o.state = 'parked' and o.state <> 'pending' order by o.sequence`, live)} parked
    cross join ${counted(sql`o.replay_id is not null order by o.replay_id, o.sequence`)} copies
    left join outbox oldest on oldest.sequence = pending.first`;
  const { rows } = await statement.execute(db);
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

/** One entry more than OUTBOX_COUNT_MAX is read, to tell whether there are more. */
const capped = (found: number) => Math.min(found, OUTBOX_COUNT_MAX);
