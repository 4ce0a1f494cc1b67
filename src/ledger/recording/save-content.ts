// Before a day of deliveries is dropped, the content of its events that are still in the outbox moves to outbox_held. Events leave
// their batches for that, and their jobs are held until they are published.
//
// A body that is not understood any more is saved as it is, and its event is parked: a later program may understand it.

import { type RawBuilder, sql, type Transaction } from 'kysely';
import { byteaArray, textArray } from './arrays.ts';
import { hasEvent } from './batched-events.ts';
import { JOIN_DELIVERY, joinEvent } from './by-key.ts';
import { type Content, contentOf } from '../understanding/content.ts';
import type { BeforeDrop } from '../upkeep/drops.ts';
import { holdJobs } from './hold.ts';
import { tellLeader } from './outbox-version.ts';
import type { Database } from '../schema/tables.ts';
import type { AuthenticBody } from '../understanding/understand.ts';

/** Some 50 ms of work for the database. */
const SLICE_ROWS = 500;
/** Bodies in memory at one time. The first one is taken whatever its size. */
const SLICE_BYTES = 4 * 1024 * 1024;
/** Jobs are locked at the end. A replica that freezes then loses the locks after this time, and intake goes on. */
const IDLE_IN_TRANSACTION = '1s';

/** An event in a batch, or a held one, and the body of its delivery. */
type Needed = { readonly sequence: string; readonly isInBatch: boolean; readonly body: AuthenticBody };
type Saved = Needed & { readonly content: Content };

/**
 * Saves one slice of a day. Locks batches, then held events, then jobs (R46). What
 * somebody else has published, moved or decided meanwhile is left to the next slice.
 * @returns how many events of that day were found without content of their own
 */
export const saveContent: BeforeDrop = async (trx, day) => {
  const needed = await findNeeded(trx, day);
  if (needed.length === 0) return 0;
  const saved = needed.map((each) => ({ ...each, content: contentOf(each.body) }));
  await sql`set local idle_in_transaction_session_timeout = ${sql.lit(IDLE_IN_TRANSACTION)}`.execute(trx);
  const moved = await moveFromBatches(trx, sequencesOf(needed.filter(({ isInBatch }) => isInBatch)));
  const parked = await fillHeld(trx, saved);
  await holdJobsOf(trx, [...moved, ...parked]);
  return needed.length;
};

/**
 * A delivery was received when its event was recorded, except for one that was released from quarantine later. So the first
 * two parts go by the time of the outbox's entry (indexes outbox_batches_time, outbox_held_bodiless), and the other two by the
 * day's released deliveries. It is one statement: an event that moves from its batch to outbox_held meanwhile is found once.
 */
async function findNeeded(trx: Transaction<Database>, day: string): Promise<readonly Needed[]> {
  const ofDay = (column: RawBuilder<unknown>) =>
    sql`${column} >= ${day}::date and ${column} < ${day}::date + 1`;
  const hasBody = sql`${ofDay(sql`d.received_at`)} and d.body is not null`;
  const isBodiless = sql`h.data is null and h.body is null`;
  const received = sql`${sql.raw(joinEvent('s.sequence'))} ${sql.raw(JOIN_DELIVERY)} where ${hasBody}`;
  const released = sql`from deliveries d ${sql.raw(joinEvent('d.event_sequence'))}`;
  const isReleased = sql`d.released_at is not null and e.delivery_id = d.id`;
  const { rows } = await sql<Needed>`
    with needed as materialized (
      (
        select e.sequence, true as "isInBatch", d.body from outbox_batches b cross join unnest(b.sequences) as s (sequence) ${received}
          and ${ofDay(sql`b.recorded_at`)}
        order by b.recorded_at limit ${SLICE_ROWS}
      ) union all (
        select e.sequence, false, d.body from outbox_held h cross join lateral (select h.sequence) as s ${received}
          and ${ofDay(sql`h.recorded_at`)} and ${isBodiless}
        order by h.recorded_at limit ${SLICE_ROWS}
      ) union all (
        select e.sequence, true, d.body ${released}
          join outbox_batches b on ${hasEvent('e')}
        where ${hasBody} and ${isReleased} limit ${SLICE_ROWS}
      ) union all (
        select e.sequence, false, d.body ${released} join outbox_held h on h.sequence = e.sequence
        where ${hasBody} and ${isReleased} and ${isBodiless} limit ${SLICE_ROWS}
      )
    ),
    sized as (
      select needed.*, sum(octet_length(body)) over (order by sequence rows between unbounded preceding and 1 preceding) as bytes
      from needed
    )
    select sequence, "isInBatch", body from sized where coalesce(bytes, 0) < ${SLICE_BYTES} order by sequence limit ${SLICE_ROWS}`.execute(
    trx,
  );
  return rows;
}

/**
 * Without their content. Earlier events of their jobs go with them, from whatever batch (R43).
 * @returns the sequences of all that were moved
 */
async function moveFromBatches(trx: Transaction<Database>, sequences: readonly string[]): Promise<string[]> {
  if (sequences.length === 0) return [];
  const { rows } = await sql<{ first: string; sequence: string }>`
    with job as materialized (
      select source, job_id, max(sequence) as last from events where sequence = any(${sequences}::bigint[])
      group by source, job_id
    )
    select b.first, e.sequence
    from job join events e on e.source = job.source and e.job_id = job.job_id and e.sequence <= job.last
    join outbox_batches b on ${hasEvent('e')}
    order by b.first for update of b`.execute(trx);
  const moved = sequencesOf(rows);
  const firsts = [...new Set(rows.map(({ first }) => first))];
  await sql`
    insert into outbox_held (sequence, source, job_id, status, progress_percentage, late, recorded_at)
    select sequence, source, job_id, status, progress_percentage, late, recorded_at
    from events where sequence = any(${moved}::bigint[]) order by sequence`.execute(trx);
  await sql`
    update outbox_batches set sequences = array(
      select s from unnest(sequences) as s where s <> all(${moved}::bigint[]) order by s
    )
    where first = any(${firsts}::bigint[])`.execute(trx);
  await sql`
    delete from outbox_batches where first = any(${firsts}::bigint[]) and cardinality(sequences) = 0`.execute(
    trx,
  );
  return moved;
}

/** @returns the sequences of those that are parked, since they are not understood */
async function fillHeld(trx: Transaction<Database>, saved: readonly Saved[]): Promise<string[]> {
  const sequences = sequencesOf(saved);
  const column = (pick: (content: Content) => string | null | undefined) =>
    textArray(saved.map(({ content }) => pick(content) ?? null));
  const bodies = byteaArray(
    saved.map(({ content, body }) => (content.unreadable === undefined ? null : body)),
  );
  await sql`
    select from outbox_held where sequence = any(${sequences}::bigint[]) order by sequence for update`.execute(
    trx,
  );
  const { rows } = await sql<{ sequence: string }>`
    with filled as (
      update outbox_held h set
        data = t.data, occurred_at = t.occurred_at, body = t.body, last_error = coalesce(t.unreadable, h.last_error),
        state = case when h.state = 'pending' and t.unreadable is not null then 'parked' else h.state end
      from unnest(
        ${sequences}::bigint[], ${column(({ data }) => data)}::text[], ${column(({ occurredAt }) => occurredAt)}::text[],
        ${column(({ unreadable }) => unreadable)}::text[], ${bodies}::bytea[]
      ) as t (sequence, data, occurred_at, unreadable, body)
      where h.sequence = t.sequence and h.data is null and h.body is null
      returning h.sequence, h.state, h.body
    )
    select sequence from filled where state = 'parked' and body is not null`.execute(trx);
  return sequencesOf(rows);
}

/** From now on the ledger holds new events of these jobs. */
async function holdJobsOf(trx: Transaction<Database>, sequences: readonly string[]): Promise<void> {
  if (sequences.length === 0) return;
  await sql`
    with moved as (select source, job_id from outbox_held where sequence = any(${sequences}::bigint[])),
    ${sql.raw(holdJobs('select source, job_id from moved'))}
    select`.execute(trx);
  await tellLeader(trx);
}

const sequencesOf = (rows: readonly { readonly sequence: string }[]): string[] =>
  rows.map(({ sequence }) => sequence);
