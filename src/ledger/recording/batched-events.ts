// The events that are still to be published and stand in batches (outbox_batches): how they are read, how the batch of an event
// is found, and how it leaves it.

import { type RawBuilder, sql } from 'kysely';

/** The oldest `limit` batches from the one with this `first` on. None is empty, so they have as many events at least. */
export const batches = ({ from = '0', limit }: { from?: string; limit: number }): RawBuilder<unknown> => sql`(
  select t.first, t.sequences, t.recorded_at from outbox_batches t
  where t.first >= ${from}::bigint order by t.first limit ${limit}
)`;

/**
 * These batches `b`, each with its events `e` (columns of `events`), read one batch after the other. Offset 0 keeps the planner
 * from a join that reads all events there are; so a limit on this bounds how many are read.
 */
export const batchedEvents = (which: { from?: string; limit: number }): RawBuilder<unknown> => sql`
  ${batches(which)} b cross join lateral (select * from events t where t.sequence = any(b.sequences) offset 0) e`;

/**
 * Whether the batch `b` has the event of `row`, which has `sequence` and `recorded_at`. A batch has the time of its events, so
 * that it is found by index outbox_batches_time.
 */
export const hasEvent = (row: string): RawBuilder<boolean> =>
  sql`(b.recorded_at = ${sql.ref(`${row}.recorded_at`)} and ${sql.ref(`${row}.sequence`)} = any(b.sequences))`;

/**
 * CTEs by which events leave their batches. `rest` has `first` of each of these batches, and the `sequences` that stay. A batch
 * without any goes.
 */
export const KEEP_REST = `emptied as (
  delete from outbox_batches b using rest where b.first = rest.first and cardinality(rest.sequences) = 0
),
shrunk as (
  update outbox_batches b set sequences = rest.sequences
  from rest where b.first = rest.first and cardinality(rest.sequences) > 0
)`;
