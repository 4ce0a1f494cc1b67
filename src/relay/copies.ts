// The statements for replays' copies: which of them may be published now, and what a publish attempt changes. A copy is an
// outbox entry of its own, with a position behind all entries that its job had when the copy was made. It is never published
// before a live entry that it must follow, and a live entry waits only for a copy that is in flight. Each copy is counted in
// its replay by the statement that deletes its entry, so exactly once.
//
//   pending ──confirmed; returned by the exchange; attempts used up──▶ (deleted, counted)
//      │ ▲ ╲──no such queue──▶ returned   its replay is paused; resuming the replay makes it pending again
//      └─ nacked, failed: due again after a while, attempts + 1

import type { Statement } from '../ledger/index.ts';
import { ENTRY_COLUMNS, LIVE_PUBLISHABLE, NO_EARLIER_FAILURE } from './live-entries.ts';

/**
 * The next copies of all running replays, at most `$2`, and no more once those before have `$3` bytes. `$1` are the
 * positions that the relay has in memory. A copy waits
 * - for every publishable live entry with a lower position that is not in memory yet (`first_live`). Once it is in memory,
 *   the copy is put behind it in its job's lane;
 * - while an earlier live entry of its job is parked, or has failed and is not due yet (index outbox_troubled);
 * - while an earlier copy of its job in the same replay has failed and is not due yet (index outbox_troubled_copies).
 *
 * `turn` is a copy's place within its replay. The order by `turn` is fair: all first copies, then all second ones. Example:
 * replays R and S have the positions 1, 2, 3 and 4, 5. The order is 1, 4, 2, 5, 3, so a long replay does not delay a short one.
 */
export const LOAD_COPIES: Statement = {
  name: 'outbox-load-copies',
  text: `
with first_live as (
  select o.sequence from outbox o
  where ${LIVE_PUBLISHABLE}
  order by o.sequence limit 1
),
next as (
  select c.*, row_number() over (partition by c.replay_id order by c.sequence) as turn
  from replays r cross join lateral (
    select o.* from outbox o -- by index outbox_replay
    where o.replay_id = r.id and o.state = 'pending' and o.due_at <= now()
      and o.sequence < coalesce((select sequence from first_live), ${2n ** 63n - 1n})
      and o.sequence not in (select unnest($1::bigint[]))
      and ${NO_EARLIER_FAILURE}
      and (
        select t.sequence from outbox t
        where t.replay_id = o.replay_id and t.source = o.source and t.job_id = o.job_id
          and t.sequence < o.sequence and t.attempts > 0 and t.due_at > now()
        limit 1
      ) is null
    order by o.sequence limit $2
  ) c
  where r.state = 'running'
  order by turn, c.sequence limit $2
),
sized as (
  select next.*, sum(octet_length(data)) over (order by turn, sequence) - octet_length(data) as bytes_before
  from next
)
select sequence as position, replay_of as sequence, ${ENTRY_COLUMNS},
       replay_id as "replayId", replayed_by as "replayedBy", queue
from sized where bytes_before < $3 order by turn, sequence`,
};

/**
 * Records the publications of copies, moves these on, and counts them in their replays:
 * - `locked`: the replays' rows, in order and before anything else, as the feeder and the operators' actions lock them;
 * - `settled`: the publish attempts, one row each;
 * - `deleted`, `moved`: the copies that leave the outbox or stay in it. One that another relay has settled already is in
 *   neither, and is counted nowhere;
 * - `sent`: the live entry of an event that was returned once. A copy of it has now reached the exchange's queues, so the
 *   event has, and its own entry is deleted;
 * - `ended`: one row for each copy to count, or to pause its replay for;
 * - `change`, `counted`: the sums, and the replays with these added.
 */
export const SETTLE_COPIES: Statement = {
  name: 'outbox-settle-copies',
  text: `
with locked as (
  select id, state from replays where id in (select unnest($11::uuid[])) order by id for update
),
settled as (
  select t.* from unnest(
    $1::bigint[], $2::int[], $3::text[], $4::int[], $5::text[], $6::text[], $7::int[], $8::text[],
    $10::bigint[], $11::uuid[], $12::text[]
  ) as t (
    position, attempts, next, retry_in_ms, result, detail, duration_ms, source, event_sequence, replay_id, queue
  )
  where (select count(*) from locked) >= 0 -- always true: it makes Postgres take the locks first
),
deleted as (
  delete from outbox o using settled s where s.next = 'delete' and o.sequence = s.position
  returning s.position, s.replay_id, s.result
),
moved as (
  update outbox o set
    state = case s.next when 'return' then 'returned' else 'pending' end,
    attempts = o.attempts + 1,
    due_at = now() + make_interval(secs => s.retry_in_ms / 1000.0),
    last_error = s.detail
  from settled s
  where s.next in ('return', 'retry') and o.sequence = s.position
    and o.state = 'pending' and o.attempts = s.attempts
  returning s.replay_id, s.next, s.result, s.detail, s.queue
),
sent as (
  delete from outbox o using settled s
  where s.result = 'confirmed' and s.queue is null
    and o.sequence = s.event_sequence and o.state = 'returned' and o.replay_id is null
),
ended as (
  select replay_id, result, null as pause_reason from deleted
  union all
  -- It was in flight when its replay was cancelled, which deleted its entry.
  select s.replay_id, s.result, null from settled s join locked l on l.id = s.replay_id
  where l.state = 'cancelled' and s.next = 'delete' and s.position not in (select position from deleted)
  union all
  -- It keeps its entry and is not counted yet: its replay is paused.
  select replay_id, null, case result when 'returned' then 'there is no queue ' || queue else detail end
  from moved where next = 'return'
),
change as (
  select replay_id,
         count(*) filter (where result = 'confirmed') as confirmed,
         count(*) filter (where result = 'returned') as returned,
         count(*) filter (where result in ('nacked', 'failed')) as failed,
         max(pause_reason) as pause_reason
  from ended group by replay_id
),
counted as (
  update replays r set
    confirmed = r.confirmed + c.confirmed,
    returned = r.returned + c.returned,
    failed = r.failed + c.failed,
    state = case when c.pause_reason is not null and r.state = 'running' then 'paused' else r.state end,
    paused_because = case when c.pause_reason is not null and r.state = 'running' then c.pause_reason else r.paused_because end,
    updated_at = now()
  from change c where r.id = c.replay_id
)
insert into publications (
  published_at, event_sequence, attempt, result, detail, duration_ms, relay_id, source, replay_id, queue
)
select now(), event_sequence, attempts + 1, result, detail, duration_ms, $9::uuid, source, replay_id, queue
from settled`,
};
