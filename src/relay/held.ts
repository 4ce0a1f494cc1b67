// The statements for held events: those that failed, were returned or parked, and the later events of their jobs, which wait
// behind them. They are few. Their states:
//
//   pending ──confirmed──▶ (deleted)
//      │ ▲ ╲──returned───▶ returned   no queue received it; later events of its job go on
//      │ └─ nacked, failed: due again after a while, attempts + 1
//      └──── attempts used up ─────▶ parked     later events of its job wait behind it
//
// An operator's `outbox retry` makes a returned or parked one pending again (operators/outbox/decide.queries.ts).

import {
  type DatabaseConnection,
  JOIN_DELIVERY,
  joinEvent,
  joinHeld,
  RELEASE_JOBS,
  type Statement,
} from '../ledger/index.ts';
import type { Entry, Settlement } from './entry.ts';
import { attemptColumns, recordMissing } from './publications.ts';
import { BODY, EVENT_COLUMNS, type EventRow, toEntry } from './rows.ts';

/**
 * No earlier event of the job of `o` is parked, or waits for its next attempt (R35, index outbox_held_job).
 *
 * Example: progress 10 % of job A was nacked and is due again in 3 seconds. Until then, progress 20 % of job A is not loaded.
 * Job B is not affected.
 *
 * It compares a subquery with null, since Postgres then looks it up in the index row by row. With NOT EXISTS it compares
 * every pair of rows: 20 ms instead of 2 ms for 1,900 rows, 900 in memory and 300 failed ones.
 */
export const NO_EARLIER_HELD = `(
      select t.sequence from outbox_held t
      where t.source = o.source and t.job_id = o.job_id and t.sequence < o.sequence
        and t.state <> 'returned' and (t.state = 'parked' or t.due_at > now())
      limit 1
    ) is null`;

/** What waits behind parked events is passed over, this many rows in a load, however many there are. */
const SLICE = 5_000;

/** `o` is behind no event of its job that is pending before this slice, and is not in memory (R44). */
const NO_EARLIER_SLICE = `(
      select t.sequence from outbox_held t
      where t.source = o.source and t.job_id = o.job_id and t.sequence <= $4::bigint and t.state = 'pending'
        and t.sequence not in (select unnest($1::bigint[]))
      limit 1
    ) is null`;

/**
 * The oldest after `$4` that may be published (index outbox_held_pending), within one slice: at most `$2`, and no more once those
 * before have `$3` bytes. `$1` are those that the relay has in memory: NOT IN, since Postgres puts these into a hash table.
 * `last` is the end of the slice; null if there is nothing after it.
 */
export const LOAD_HELD: Statement = {
  name: 'outbox-load-held',
  text: `
with slice as materialized (
  select sequence, source, job_id, due_at from outbox_held
  where state = 'pending' and sequence > $4::bigint order by sequence limit ${SLICE}
),
next as materialized (
  select o.sequence from slice o
  where o.due_at <= now() and o.sequence not in (select unnest($1::bigint[])) and ${NO_EARLIER_HELD}
    and ($4::bigint = 0 or ${NO_EARLIER_SLICE})
  order by o.sequence limit $2
),
found as (
  select ${EVENT_COLUMNS}, o.attempts, o.data, o.occurred_at as "occurredAt",
         case when o.data is null then coalesce(o.body, ${BODY}) end as body
  from next ${joinHeld('next.sequence')} ${joinEvent('next.sequence')} ${JOIN_DELIVERY}
),
sized as (
  select found.*, sum(size) over (order by sequence rows between unbounded preceding and 1 preceding) as bytes_before
  from (select found.*, coalesce(octet_length(data), octet_length(body), 0) as size from found) as found
)
select (select case count(*) when ${SLICE} then max(sequence) end from slice) as last, sized.*
from (select) as always left join sized on coalesce(bytes_before, 0) < $3::bigint
order by sequence`,
};

type Row = EventRow & {
  readonly last: string | null;
  readonly attempts: number;
  readonly data: string | null;
  readonly occurredAt: string | null;
};

type Execute = Pick<DatabaseConnection, 'execute'>;

type Load = (options: { limit: number; bytes: number; except: readonly string[] }) => Promise<Entry[]>;

/** Each load looks at one slice: at the same one again while it finds something there, then at the next one. */
export function createHeldLoads(connection: Execute): Load {
  let after = '0';
  return async ({ limit, bytes, except }) => {
    const rows = await connection.execute<Row & Extra>(LOAD_HELD, [except, limit, bytes, after]);
    const found = rows.filter(({ sequence }) => sequence !== null);
    if (found.length === 0) after = rows[0]?.last ?? '0';
    return found.map(toHeldEntry);
  };
}

/** What the statement has for itself. */
type Extra = { readonly size: unknown; readonly bytes_before: unknown };

function toHeldEntry({ last: _l, size: _s, bytes_before: _b, ...row }: Row & Extra): Entry {
  const { attempts, data, occurredAt, body, ...event } = row;
  return data === null
    ? toEntry({ ...event, body }, { attempts })
    : { ...event, position: event.sequence, attempts, data, occurredAt };
}

/**
 * Records the publications and moves the events on. One is changed only while it has the state and the attempts with which it was
 * loaded (R38). So a repeat changes nothing, even while the first one still runs: they are locked (R46) before anything is read
 * from them. `moved` asks `settled` for the state: Postgres would read all pending ones by their index for it, and compare each
 * pair.
 */
const SETTLE: Statement = {
  name: 'outbox-settle-held',
  text: `
with settled as (
  select t.*, o.source, o.state from unnest(
    $1::bigint[], $2::int[], $3::text[], $4::int[], $5::text[], $6::text[], $7::int[], $8::bigint[]
  ) as t (sequence, attempts, next, retry_in_ms, result, detail, duration_ms, relay_attempt)
  join outbox_held o on o.sequence = t.sequence and (t.next = 'delete' or o.attempts = t.attempts)
  order by o.sequence for update of o
),
deleted as (
  delete from outbox_held o using settled s where s.next = 'delete' and o.sequence = s.sequence
),
moved as (
  update outbox_held o set
    state = case when s.state <> 'pending' then s.state when s.next = 'return' then 'returned' when s.next = 'park' then 'parked'
      else 'pending' end,
    attempts = o.attempts + 1,
    due_at = now() + make_interval(secs => s.retry_in_ms / 1000.0),
    last_error = case when s.state = 'pending' then s.detail else o.last_error end
  from settled s
  where s.next in ('return', 'retry', 'park') and o.sequence = s.sequence
)
insert into publications (
  published_at, event_sequence, attempt, result, detail, duration_ms, relay_attempt, relay_id, source
)
select now(), sequence, attempts + 1, result, detail, duration_ms, relay_attempt, $9::uuid, source from settled
where result is not null
returning event_sequence`,
};

/**
 * An attempt is on record also if its event was discarded meanwhile. Then the jobs whose last held event has left or was returned
 * are free.
 */
export async function settleHeld(
  connection: Execute,
  settlements: readonly Settlement[],
  relayId: string,
): Promise<void> {
  const recorded = await connection.execute(SETTLE, [
    settlements.map(({ entry }) => entry.sequence),
    settlements.map(({ entry }) => entry.attempts),
    ...attemptColumns(settlements),
    relayId,
  ]);
  const attempts = settlements.filter(({ publication }) => publication !== undefined);
  if (recorded.length < attempts.length) await recordMissing(connection, attempts, relayId);
  const free = settlements.filter(({ next }) => next === 'delete' || next === 'return');
  if (free.length === 0) return;
  await connection.execute(RELEASE_JOBS, [
    free.map(({ entry }) => entry.source),
    free.map(({ entry }) => entry.jobId),
  ]);
}
