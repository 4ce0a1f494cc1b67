// Joins with rows that are found by their keys, each by one step in an index. Written as usual joins they depend on what the
// planner knows of a table's size: that is what the last VACUUM or ANALYZE saw. Beside a table that was empty then, such as a new
// day's partition, it read the whole table for each row: 2 s for 36 events on a ledger of 30,000, and more with each event. A
// subquery with OFFSET 0 or a limit is planned by itself, so that nothing but the condition on the key leads to its rows. Where
// another index has a part of the key, a range of one value and an order by it lead to the right one: by the other, it would have
// to be sorted. Inside, a row is called `by_key`, so no row that it is joined with may have this name.

const bySequence =
  (table: string, alias: string) =>
  (sequence: string): string =>
    `cross join lateral (select * from ${table} by_key where by_key.sequence = ${sequence} offset 0) ${alias}`;

/** The event `e` with this sequence: a number of the rows before it, such as `s.sequence`. */
export const joinEvent = bySequence('events', 'e');

/** The entry `o` of outbox_held with this sequence. */
export const joinHeld = bySequence('outbox_held', 'o');

/** The job `j` of the event `e`. */
export const JOIN_JOB = `cross join lateral (
    select * from jobs by_key where by_key.source = e.source and by_key.job_id between e.job_id and e.job_id
    order by by_key.job_id limit 1) j`;

/**
 * The delivery `d` of the event `e`, or a row of nulls. It was received when its event was recorded, except for a released one
 * (index deliveries_released).
 */
export const JOIN_DELIVERY = `left join lateral (
    select * from deliveries by_key
    where by_key.id between e.delivery_id and e.delivery_id and by_key.received_at = e.recorded_at
    order by by_key.id limit 1) d on true`;
