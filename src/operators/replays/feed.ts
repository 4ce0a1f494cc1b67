// One step of a replay: copies its next events into the outbox and moves its cursor past them, in one statement. The cursor
// guards the statement, so a copy is made once, also when two replicas feed the same replay or one is killed meanwhile.

import { type DatabaseConnection, type Statement, textArray } from '../../ledger/index.ts';
import { type Candidate, nextEvents, prepareCopies, type RunningReplay } from './next-events.ts';

/** Bodies in memory at one time. The first event is taken whatever its size. */
const STEP_BYTES = 4 * 1024 * 1024;
/** Skipped events that are recorded by name, for each replay. All are counted. */
const SKIPS_KEPT = 1_000;

/**
 * Makes the copies of one step. Each part by an example: replay R has fed its events up to 100, and the next ones are 101 and
 * 102 of job a, 103 of job b. 101 has its data; the body of 102 is no longer kept; job b has a parked event.
 *
 * - `replay` locks R's row, if it still runs and its cursor is still 100. If not, `replay` is empty, and the other parts
 *   write nothing.
 * - `given` joins the parameters (sequence; data or reason) with the rows of 101, 102 and 103 in `events`.
 * - `checked` adds why an event is skipped: null for 101, 'its body is no longer kept' for 102 (from the parameters), 'an
 *   event of its job is parked' for 103 (from the outbox).
 * - `job` locks the row of job a, which has an event to copy. All writers lock jobs in this order, so none deadlock.
 * - `copy` inserts 101 into the outbox as 9001, say, with `replay_of` 101. The number is drawn under the lock of the job, so
 *   the copy stands behind every live entry that job a has by then.
 * - `skip` records 102 and 103 with their reasons.
 * - The last part sets R's cursor to 103 and adds 1 to `queued` and 2 to `skipped`.
 */
const FEED: Statement = {
  name: 'replay-feed',
  text: `
with replay as (
  select id, created_by, queue, skipped from replays
  where id = $1::uuid and state = 'running' and cursor_sequence = $2::bigint for update
),
given as (
  select e.sequence, e.source, e.job_id, e.status, e.progress_percentage, e.late, e.recorded_at,
         t.occurred_at, t.data, t.reason
  from unnest($4::bigint[], $5::text[], $6::text[], $7::text[]) as t (sequence, occurred_at, data, reason)
  join events e on e.sequence = t.sequence
),
checked as (
  select g.*, case
    when o.state = 'pending' then 'it is still to be published'
    when o.state = 'parked' then 'it is parked'
    -- By index outbox_troubled: its condition (attempts, state) is repeated so that the planner uses it.
    when exists (
      select from outbox t
      where t.source = g.source and t.job_id = g.job_id and t.replay_id is null
        and t.attempts > 0 and t.state <> 'returned' and t.state = 'parked'
    ) then 'an event of its job is parked'
    when not exists (select from jobs j where j.source = g.source and j.job_id = g.job_id)
      then 'its job is not in the ledger'
    else g.reason
  end as skip_reason
  from given g left join outbox o on o.sequence = g.sequence
),
job as materialized (
  select j.source, j.job_id from jobs j
  where (select count(*) from replay) = 1
    and (j.source, j.job_id) in (select source, job_id from checked where skip_reason is null)
  order by j.source, j.job_id for update of j
),
copy as (
  insert into outbox (
    sequence, source, job_id, status, progress_percentage, late, occurred_at, recorded_at, data,
    replay_id, replay_of, replayed_by, queue
  )
  select nextval('events_sequence_seq'), c.source, c.job_id, c.status, c.progress_percentage, c.late, c.occurred_at,
         c.recorded_at, c.data, replay.id, c.sequence, replay.created_by, replay.queue
  from (
    select checked.* from checked join job using (source, job_id) where skip_reason is null order by sequence offset 0
  ) as c cross join replay
  returning sequence
),
skip as (
  insert into replay_skips (replay_id, event_sequence, reason)
  select replay.id, checked.sequence, checked.skip_reason from checked cross join replay
  where checked.skip_reason is not null
  order by checked.sequence limit greatest(0, ${SKIPS_KEPT} - coalesce((select skipped from replay), 0))
  on conflict do nothing
)
update replays r set
  cursor_sequence = $3::bigint,
  queued = r.queued + (select count(*) from copy),
  skipped = r.skipped + (select count(*) from checked where skip_reason is not null),
  updated_at = now()
from replay where r.id = replay.id
returning (select count(*) from copy)::int as copies`,
};

/**
 * Deletes copies that stand behind an event which was parked since, and counts them as skipped: they would wait for an
 * operator's decision, and the replay with them. Locks the replay's row first (indexes outbox_replay, outbox_troubled).
 */
const GIVE_UP_ON_PARKED: Statement = {
  name: 'replay-give-up-on-parked',
  text: `
with replay as (
  select id, skipped from replays where id = $1::uuid and state = 'running' for update
),
gone as (
  delete from outbox c using replay
  where c.replay_id = replay.id and exists (
    select from outbox t
    where t.source = c.source and t.job_id = c.job_id and t.sequence < c.sequence and t.replay_id is null
      and t.attempts > 0 and t.state <> 'returned' and t.state = 'parked'
  )
  returning c.replay_of
),
skip as (
  insert into replay_skips (replay_id, event_sequence, reason)
  select replay.id, gone.replay_of, 'an event of its job is parked' from gone cross join replay
  order by gone.replay_of limit greatest(0, ${SKIPS_KEPT} - coalesce((select skipped from replay), 0))
  on conflict do nothing
)
update replays r set
  queued = r.queued - (select count(*) from gone),
  skipped = r.skipped + (select count(*) from gone),
  updated_at = now()
from replay where r.id = replay.id and exists (select from gone)`,
};

/** Only if nothing is left to feed and nothing to publish. */
const FINISH: Statement = {
  name: 'replay-finish',
  text: `
update replays r set state = 'finished', finished_at = now(), updated_at = now()
where r.id = $1::uuid and r.state = 'running' and r.cursor_sequence >= r.up_to_sequence
  and not exists (select from outbox o where o.replay_id = r.id)
returning id`,
};

/**
 * Feeds at most `limit` of the replay's next events, up to the sequence `end`.
 * @returns the number of new copies and the new cursor; undefined if the replay does not run any more, or somebody else has
 *   moved its cursor.
 */
export async function feedReplay(
  connection: Pick<DatabaseConnection, 'db' | 'execute'>,
  replay: RunningReplay,
  { end, limit }: { end: string; limit: number },
): Promise<{ copies: number; cursor: string } | undefined> {
  const found = await nextEvents(connection.db, replay, { end, limit });
  const taken = found.filter((_, index) => index === 0 || bytesBefore(found, index) < STEP_BYTES);
  const prepared = await prepareCopies(connection.db, taken);
  const isAtEnd = found.length < limit && taken.length === found.length;
  const cursor = isAtEnd ? end : (taken.at(-1)?.sequence ?? end);
  const [row] = await connection.execute<{ copies: number }>(FEED, [
    replay.id,
    replay.cursor,
    cursor,
    prepared.map(({ sequence }) => sequence),
    textArray(prepared.map(({ occurredAt }) => occurredAt)),
    textArray(prepared.map(({ data }) => data)),
    textArray(prepared.map(({ reason }) => reason)),
  ]);
  return row === undefined ? undefined : { copies: row.copies, cursor };
}

export async function giveUpOnParked(
  connection: Pick<DatabaseConnection, 'execute'>,
  replayId: string,
): Promise<void> {
  await connection.execute(GIVE_UP_ON_PARKED, [replayId]);
}

/** Returns whether this call finished it. */
export async function finishReplay(
  connection: Pick<DatabaseConnection, 'execute'>,
  replayId: string,
): Promise<boolean> {
  return (await connection.execute(FINISH, [replayId])).length === 1;
}

function bytesBefore(found: readonly Candidate[], index: number): number {
  return found.slice(0, index).reduce((sum, { bytes }) => sum + bytes, 0);
}
