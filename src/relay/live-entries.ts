// The statements for live entries, which deliveries made: which of them may be published now, and what a
// publish attempt changes. Replays' copies have their own statements (copies.ts). Both use the conditions below, or a copy
// could be published before a live event that it must follow.

import type { Statement } from '../ledger/index.ts';

/**
 * No earlier live entry of the job of `o` is parked, or has failed and is not due yet. The index outbox_troubled has the
 * only parked and failed entries.
 *
 * Example: progress 10 % of job A was nacked and is due again in 3 seconds. Until then, progress 20 % of job A is not
 * loaded. Job B is not affected.
 *
 * It compares a subquery with null, since Postgres then looks it up in the index row by row. With NOT EXISTS it compares
 * every pair of rows: 20 ms instead of 2 ms for 1,900 rows, 900 in memory and 300 failed ones.
 */
export const NO_EARLIER_FAILURE = `(
      select t.sequence from outbox t
      where t.source = o.source and t.job_id = o.job_id and t.sequence < o.sequence and t.replay_id is null
        and t.attempts > 0 and t.state <> 'returned' and (t.state = 'parked' or t.due_at > now())
      limit 1
    ) is null`;

/**
 * `o` is a live entry that may be published now (index outbox_pending). `$1` are the positions that the relay has in memory:
 * NOT IN, since Postgres puts these into a hash table.
 */
export const LIVE_PUBLISHABLE = `o.state = 'pending' and o.replay_id is null and o.due_at <= now()
    and o.sequence not in (select unnest($1::bigint[]))
    and ${NO_EARLIER_FAILURE}`;

/** The columns of an `Entry` besides its position and its event's sequence. */
export const ENTRY_COLUMNS = `source, job_id as "jobId", status, progress_percentage as progress, late,
       occurred_at as "occurredAt", recorded_at as "recordedAt", data, attempts`;

/**
 * The oldest publishable entries: at most `$2`, and no more once those before have `$3` bytes.
 *
 * They are found by their state and never by "sequence greater than the last one": an entry with a lower sequence may
 * commit later, become due again, or be retried by an operator.
 */
export const LOAD: Statement = {
  name: 'outbox-load',
  text: `
with next as (
  select o.* from outbox o
  where ${LIVE_PUBLISHABLE}
  order by o.sequence limit $2
),
sized as (
  select next.*, sum(octet_length(data)) over (order by sequence) - octet_length(data) as bytes_before from next
)
select sequence as position, sequence, ${ENTRY_COLUMNS}
from sized where bytes_before < $3 order by sequence`,
};

/**
 * Records the publications and moves their entries on. An entry is changed only while it has the state and the attempts
 * with which it was loaded: an operator or another relay may have changed it since.
 */
export const SETTLE: Statement = {
  name: 'outbox-settle',
  text: `
with settled as (
  select * from unnest(
    $1::bigint[], $2::int[], $3::text[], $4::int[], $5::text[], $6::text[], $7::int[], $8::text[]
  ) as t (sequence, attempts, next, retry_in_ms, result, detail, duration_ms, source)
),
deleted as (
  delete from outbox o using settled s where s.next = 'delete' and o.sequence = s.sequence
),
moved as (
  update outbox o set
    state = case s.next when 'return' then 'returned' when 'park' then 'parked' else 'pending' end,
    attempts = o.attempts + 1,
    due_at = now() + make_interval(secs => s.retry_in_ms / 1000.0),
    last_error = s.detail
  from settled s
  where s.next in ('return', 'retry', 'park') and o.sequence = s.sequence
    and o.state = 'pending' and o.attempts = s.attempts
)
insert into publications (published_at, event_sequence, attempt, result, detail, duration_ms, relay_id, source)
select now(), sequence, attempts + 1, result, detail, duration_ms, $9::uuid, source from settled`,
};
