// One step of a replay: copies its next events into the outbox and moves its cursor past them, in one statement. The cursor
// guards the statement, so a copy is made once, also when two replicas feed the same replay or one is killed meanwhile.

import { type DatabaseConnection, joinEvent, type Statement, textArray } from '../../../ledger/index.ts';
import {
  BEHIND_PARKED,
  type Candidate,
  nextEvents,
  prepareCopies,
  type RunningReplay,
} from '../next-events.queries.ts';

/** Bodies in memory at one time. The first event is taken whatever its size. */
const STEP_BYTES = 4 * 1024 * 1024;
/** Skipped events that are recorded by name, for each replay. All are counted. */
const SKIPS_KEPT = 1_000;

/**
 * Makes the copies of one step. An example: replay R has fed its events up to 100. The next ones are 101 of job a, which has
 * its data, and 102 of job b, which has a reason to be skipped.
 *
 * - `replay` locks R's row, if it still runs and its cursor is still 100. If not, it is empty, and so are the other parts.
 * - `given` joins the parameters (sequence; data or reason) with the rows of 101 and 102 in `events`, by their primary key.
 * - `allowed` is 101. It locks the row of job a, in the order of the primary key (R46).
 * - `copy` inserts the copy of 101 at position 9001, say. The number is drawn under the lock of the job (R45).
 * - `skip` records 102 with its reason.
 * - The last part sets R's cursor to 102 and adds 1 to `queued` and 1 to `skipped`.
 */
const FEED: Statement = {
  name: 'replay-feed',
  text: `
with replay as (
  select id, created_by, queue, skipped from replays
  where id = $1::uuid and state = 'running' and cursor_sequence = $2::bigint for update
),
given as (
  select e.*, t.data, t.event_time, t.reason
  from replay
  cross join unnest($4::bigint[], $5::text[], $6::text[], $7::text[]) as t (sequence, event_time, data, reason)
  ${joinEvent('t.sequence')}
),
allowed as (
  select given.* from given join jobs j on j.source = given.source and j.job_id = given.job_id
  where given.reason is null order by j.source, j.job_id for update of j
),
copy as (
  insert into replay_copies (
    position, replay_id, replay_of, replayed_by, queue,
    source, job_id, status, progress_percentage, late, occurred_at, recorded_at, data
  )
  select nextval('events_sequence_seq'), replay.id, g.sequence, replay.created_by, replay.queue,
         g.source, g.job_id, g.status, g.progress_percentage, g.late, g.event_time, g.recorded_at, g.data
  -- OFFSET keeps the sort, and with it all locks, before the first number is drawn.
  from (select * from allowed order by sequence offset 0) as g cross join replay
  returning replay_of
),
skip as (
  ${recordSkips(`
    select sequence, coalesce(reason, 'its job is not in the ledger') as reason
    from given where sequence not in (select replay_of from copy)`)}
)
update replays r set
  cursor_sequence = $3::bigint,
  queued = r.queued + (select count(*) from copy),
  skipped = r.skipped + (select count(*) from given) - (select count(*) from copy),
  updated_at = now()
from replay where r.id = replay.id
returning (select count(*) from copy)::int as copies`,
};

/**
 * Deletes copies that stand behind an event which was parked since, and counts them as skipped: they would wait for an
 * operator's decision, and the replay with them. Locks the replay's row first (indexes replay_copies_order, outbox_held_job).
 */
const GIVE_UP_ON_PARKED: Statement = {
  name: 'replay-give-up-on-parked',
  text: `
with replay as (
  select id, skipped from replays where id = $1::uuid and state = 'running' for update
),
gone as (
  delete from replay_copies c using replay
  where c.replay_id = replay.id and (
    select h.sequence from outbox_held h
    where h.source = c.source and h.job_id = c.job_id and h.sequence < c.position and h.state = 'parked' limit 1
  ) is not null
  returning c.replay_of
),
skip as (
  ${recordSkips(`select replay_of as sequence, '${BEHIND_PARKED}' as reason from gone`)}
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
  and not exists (select from replay_copies c where c.replay_id = r.id)
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

/** `skipped`: a query for sequences and reasons. The statement has the replay's locked row in `replay`. */
function recordSkips(skipped: string): string {
  return `insert into replay_skips (replay_id, event_sequence, reason)
  select replay.id, s.sequence, s.reason from (${skipped}) as s cross join replay
  order by s.sequence limit greatest(0, ${SKIPS_KEPT} - coalesce((select skipped from replay), 0))
  on conflict do nothing`;
}
