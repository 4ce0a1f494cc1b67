// The events that are still to be published and stand in batches (outbox_batches): which they are, and where one of them is.

import { type RawBuilder, sql } from 'kysely';

/** A place among the events in batches: the batch by its `first`, and the event's number. */
export type BatchedPlace = { readonly batch: string; readonly sequence: string };

const START: BatchedPlace = { batch: '0', sequence: '0' };

/**
 * A query for these events (`place`, the `first` of their batch; `sequence`; `recorded_at`), batch by batch, the oldest first.
 * Batches that were written at the same time interleave: one has the numbers 1 and 3, the other 2 and 4. By `place` an event is
 * found at a bounded cost behind any other, which by its number alone it is not.
 *
 * Reads at most `limit` + 1 batches, since none is empty, and the events of the first one may be before `after`.
 */
export const batchedEvents = ({
  after = START,
  limit,
}: {
  after?: BatchedPlace | undefined;
  limit: number;
}): RawBuilder<unknown> => sql`
  select b.first as place, s.sequence, b.recorded_at
  from (
    select t.first, t.sequences, t.recorded_at from outbox_batches t
    where t.first >= ${after.batch}::bigint order by t.first limit ${limit + 1}
  ) b cross join lateral unnest(b.sequences) as s (sequence)
  where (b.first, s.sequence) > (${after.batch}::bigint, ${after.sequence}::bigint)
  order by b.first, s.sequence limit ${limit}`;

/**
 * The event (columns of `events`) of a row with a `sequence`, one look-up by the primary key each. Offset 0 keeps the planner from
 * a join that reads the whole table.
 */
export const eventOf = (row: string): RawBuilder<unknown> =>
  sql`lateral (select * from events t where t.sequence = ${sql.ref(`${row}.sequence`)} offset 0)`;

/**
 * Whether the batch `b` has the event of `row`, which has `sequence` and `recorded_at`. A batch has the time of its events, so
 * that it is found by index outbox_batches_time.
 */
export const hasEvent = (row: string): RawBuilder<boolean> =>
  sql`(b.recorded_at = ${sql.ref(`${row}.recorded_at`)} and ${sql.ref(`${row}.sequence`)} = any(b.sequences))`;
