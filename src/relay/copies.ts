// Replays' copies: which of them may be published now. A copy is an outbox entry of its own, with a position behind all live
// entries that its job had when the copy was made (R45). It is never published before one of these, and a live entry waits only for
// a copy that is in flight. What publish attempts change stands in copy-results.ts. The states of a copy:
//
//   pending ──confirmed; returned by the exchange; attempts used up──▶ (deleted, counted)
//      │ ▲ ╲──no such queue──▶ returned   its replay is paused; resuming the replay makes it pending again
//      └─ nacked, failed: due again after a while, attempts + 1

import type { DatabaseConnection, Statement } from '../ledger/index.ts';
import type { Entry } from './entry.ts';

/**
 * The next copies of all running replays, at most `$2`, and no more once those before have `$3` bytes. `$1` are the
 * positions that the relay has in memory: NOT IN, since Postgres puts these into a hash table. A copy waits
 * - behind `$4`, where events of batches are not in memory yet: a deep outbox goes before replays;
 * - for each earlier live entry of its job that is held and not in memory (index outbox_held_job);
 * - while an earlier copy of its job in the same replay has failed and is not due yet (index replay_copies_troubled).
 *
 * The last two compare a subquery with null, since Postgres then looks it up row by row. With NOT EXISTS it compares every pair
 * of rows: 20 ms instead of 2 ms for 1,900 rows, 900 in memory and 300 failed ones.
 *
 * `turn` is a copy's place within its replay. The order by `turn` is fair: all first copies, then all second ones. Example:
 * replays R and S have the positions 1, 2, 3 and 4, 5. The order is 1, 4, 2, 5, 3, so a long replay does not delay a short one.
 */
export const LOAD_COPIES: Statement = {
  name: 'copies-load',
  text: `
with next as (
  select c.*, row_number() over (partition by c.replay_id order by c.position) as turn
  from replays r cross join lateral (
    select o.* from replay_copies o -- by index replay_copies_order
    where o.replay_id = r.id and o.state = 'pending' and o.due_at <= now()
      and o.position < $4::bigint
      and o.position not in (select unnest($1::bigint[]))
      and (
        select h.sequence from outbox_held h
        where h.source = o.source and h.job_id = o.job_id and h.sequence < o.position and h.state <> 'returned'
          and h.sequence not in (select unnest($1::bigint[]))
        limit 1
      ) is null
      and (
        select t.position from replay_copies t
        where t.replay_id = o.replay_id and t.source = o.source and t.job_id = o.job_id
          and t.position < o.position and t.attempts > 0 and t.due_at > now()
        limit 1
      ) is null
    order by o.position limit $2
  ) c
  where r.state = 'running'
  order by turn, c.position limit $2
),
sized as (
  select next.*, sum(octet_length(data)) over (order by turn, position) - octet_length(data) as bytes_before
  from next
)
select position, replay_of as sequence, source, job_id as "jobId", status, progress_percentage as progress, late,
       occurred_at as "occurredAt", recorded_at as "recordedAt", data, attempts,
       replay_id as "replayId", replayed_by as "replayedBy", queue
from sized where bytes_before < $3 order by turn, position`,
};

type CopyRow = Omit<Entry, 'replay'> & { replayId: string; replayedBy: string; queue: string | null };

/**
 * The next publishable copies of the running replays, which take turns. At most `limit` copies and about `bytes` of data, but
 * always one; none at or behind the position `horizon`, and none of the positions `except`.
 *
 * Batches are not looked at here. So the caller reads copies first and pending events then, and admits the copies last (R45).
 * Meanwhile, live entries of `except` have to stay in memory.
 */
export async function loadCopies(
  connection: Pick<DatabaseConnection, 'execute'>,
  {
    limit,
    bytes,
    except,
    horizon,
  }: { limit: number; bytes: number; except: readonly string[]; horizon: string },
): Promise<Entry[]> {
  const rows = await connection.execute<CopyRow>(LOAD_COPIES, [except, limit, bytes, horizon]);
  return rows.map(({ replayId, replayedBy, queue, ...entry }) => ({
    ...entry,
    replay: { id: replayId, by: replayedBy, queue },
  }));
}
