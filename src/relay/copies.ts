// Replays' copies in the outbox: which may be published now, and what became of those that were. A copy is an
// entry of its own, behind all that its job had in the outbox when it was put there; it passes no live entry, and holds
// none back but while it is on its way itself. Each copy is counted in its replay in the statement that takes it out of
// the outbox, so once.
//
//   pending ──confirmed; returned by the exchange; attempts used up──▶ (deleted, counted)
//      │ ▲ ╲──no such queue──▶ returned   and its replay is paused; resuming it makes it pending again
//      └─ nacked, failed: due again after a while, attempts + 1

import type { Statement } from '../ledger/index.ts';
import { BEHIND_NO_TROUBLE, LIVE_MAY_GO } from './live-entries.ts';

/**
 * Takes turns among the replays that run, each read in its own order (index outbox_replay). A copy waits
 * - for every live entry before it that could go and is not in the relay's memory (`first_live`; there it stands
 *   in its job's lane, and the copy gets behind it),
 * - while an earlier live entry of its job failed and is not due yet, or is parked (index outbox_troubled),
 * - while an earlier copy of its job in the same replay failed and is not due yet (index outbox_troubled_copies).
 */
export const LOAD_COPIES: Statement = {
  name: 'outbox-load-copies',
  text: `
with first_live as (
  select o.sequence from outbox o
  where ${LIVE_MAY_GO}
  order by o.sequence limit 1
),
next as (
  select c.*, row_number() over (partition by c.replay_id order by c.sequence) as turn
  from replays r cross join lateral (
    select o.* from outbox o
    where o.replay_id = r.id and o.state = 'pending' and o.due_at <= now()
      and o.sequence < coalesce((select sequence from first_live), ${2n ** 63n - 1n})
      and o.sequence not in (select unnest($1::bigint[]))
      and ${BEHIND_NO_TROUBLE}
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
select sequence as position, replay_of as sequence, source, job_id as "jobId", status,
       progress_percentage as progress, late, occurred_at as "occurredAt", recorded_at as "recordedAt", data,
       attempts, replay_id as "replayId", replayed_by as "replayedBy", queue
from sized where bytes_before < $3 order by turn, sequence`,
};

/**
 * The replays' rows are locked first and in order, as the feeder and the operators' actions do before they touch a
 * replay's entries. An entry that is gone already because another relay settled it counts nowhere. When a copy of a
 * returned event has reached the exchange's queues, the event itself has: its own entry goes.
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
  where (select count(*) from locked) >= 0 -- always true: nothing is settled before the locks are taken
),
gone as (
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
change as (
  select replay_id,
         count(*) filter (where result = 'confirmed') as confirmed,
         count(*) filter (where result = 'returned') as returned,
         count(*) filter (where result in ('nacked', 'failed')) as failed,
         max(trouble) as trouble
  from (
    select replay_id, result, null as trouble from gone
    union all
    -- On its way when its replay was cancelled, which took its entry.
    select s.replay_id, s.result, null from settled s join locked l on l.id = s.replay_id
    where l.state = 'cancelled' and s.next = 'delete' and s.position not in (select position from gone)
    union all
    select replay_id, null, case result when 'returned' then 'there is no queue ' || queue else detail end
    from moved where next = 'return'
  ) as ended
  group by replay_id
),
counted as (
  update replays r set
    confirmed = r.confirmed + c.confirmed,
    returned = r.returned + c.returned,
    failed = r.failed + c.failed,
    state = case when c.trouble is not null and r.state = 'running' then 'paused' else r.state end,
    paused_because = case when c.trouble is not null and r.state = 'running' then c.trouble else r.paused_because end,
    updated_at = now()
  from change c where r.id = c.replay_id
)
insert into publications (
  published_at, event_sequence, attempt, result, detail, duration_ms, relay_id, source, replay_id, queue
)
select now(), event_sequence, attempts + 1, result, detail, duration_ms, $9::uuid, source, replay_id, queue
from settled`,
};
