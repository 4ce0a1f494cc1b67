// One step of a replay: the next of its events become copies in the outbox, and its cursor moves past them, in one
// statement. Whatever happens, a copy is put there once: two that feed the same replay at once, and one that is killed
// on the way, change nothing or everything.

import { type Kysely, sql } from 'kysely';
import {
  type AuthenticBody,
  understand,
  textArray,
  type DatabaseConnection,
  type Statement,
  type Status,
  type Database,
} from '../../ledger/index.ts';
import { type Selection, selected } from './selection.ts';

export type RunningReplay = {
  readonly id: string;
  readonly selection: Selection;
  readonly sources: readonly string[] | null;
  readonly cursor: string;
  readonly upTo: string;
};

/** `data` and `occurredAt` of a copy, or why there is none. */
type Fed = {
  readonly sequence: string;
  readonly data: string | null;
  readonly occurredAt: string | null;
  readonly reason: string | null;
};

type Candidate = {
  sequence: string;
  job_id: string;
  status: Status;
  progress_percentage: number | null;
  bytes: number;
};

/** So many sequences are looked through in one statement: a few milliseconds, however few of them are meant. */
export const SLICE = 20_000n;
/** Bodies that are in memory at one time. One is always taken. */
const STEP_BYTES = 4 * 1024 * 1024;
/** The first of each replay are kept by name. */
const SKIPS_KEPT = 1_000;

/**
 * Locks: the replay's row, then its jobs in the order that all share. A position is drawn only under the job's lock, so
 * a copy stands behind every live entry that its job has by then.
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
judged as (
  select g.*, case
    when o.state = 'pending' then 'it is still to be published'
    when o.state = 'parked' then 'it is parked'
    -- By index outbox_troubled, whose condition is said again so that the planner sees it.
    when exists (
      select from outbox t
      where t.source = g.source and t.job_id = g.job_id and t.replay_id is null
        and t.attempts > 0 and t.state <> 'returned' and t.state = 'parked'
    ) then 'an event of its job is parked'
    when not exists (select from jobs j where j.source = g.source and j.job_id = g.job_id)
      then 'its job is not in the ledger'
    else g.reason
  end as verdict
  from given g left join outbox o on o.sequence = g.sequence
),
job as materialized (
  select j.source, j.job_id from jobs j
  where (select count(*) from replay) = 1
    and (j.source, j.job_id) in (select source, job_id from judged where verdict is null)
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
    select judged.* from judged join job using (source, job_id) where verdict is null order by sequence offset 0
  ) as c cross join replay
  returning sequence
),
skip as (
  insert into replay_skips (replay_id, event_sequence, reason)
  select replay.id, judged.sequence, judged.verdict from judged cross join replay
  where judged.verdict is not null
  order by judged.sequence limit greatest(0, ${SKIPS_KEPT} - coalesce((select skipped from replay), 0))
  on conflict do nothing
)
update replays r set
  cursor_sequence = $3::bigint,
  queued = r.queued + (select count(*) from copy),
  skipped = r.skipped + (select count(*) from judged where verdict is not null),
  updated_at = now()
from replay where r.id = replay.id
returning (select count(*) from copy)::int as copies`,
};

/**
 * Copies that wait behind an event which was parked since: they would wait until an operator decides, and the replay
 * with them. Locks the replay's row first (indexes outbox_replay, outbox_troubled).
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

/** Guarded by what it says: nothing left to feed, and nothing left to publish. */
const FINISH: Statement = {
  name: 'replay-finish',
  text: `
update replays r set state = 'finished', finished_at = now(), updated_at = now()
where r.id = $1::uuid and r.state = 'running' and r.cursor_sequence >= r.up_to_sequence
  and not exists (select from outbox o where o.replay_id = r.id)
returning id`,
};

/**
 * Feeds at most `limit` of the replay's next events.
 * @returns how many copies there are now that were not before, and where its cursor stands; undefined if somebody
 *   else moved the replay on.
 */
export async function feedReplay(
  connection: Pick<DatabaseConnection, 'db' | 'execute'>,
  replay: RunningReplay,
  limit: number,
): Promise<{ copies: number; cursor: string } | undefined> {
  const sliceEnd = BigInt(replay.cursor) + SLICE;
  // Ids have one look-up each, however far they are apart.
  const isWide = 'sequences' in replay.selection || sliceEnd >= BigInt(replay.upTo);
  const end = isWide ? replay.upTo : String(sliceEnd);
  const found = await nextEvents(connection.db, replay, { end, limit });
  const taken = found.filter((_, index) => index === 0 || bytesBefore(found, index) < STEP_BYTES);
  const fed = await toFeed(connection.db, taken);
  const isSliceDone = found.length < limit && taken.length === found.length;
  const cursor = isSliceDone ? end : (taken.at(-1)?.sequence ?? end);
  const [row] = await connection.execute<{ copies: number }>(FEED, [
    replay.id,
    replay.cursor,
    cursor,
    fed.map(({ sequence }) => sequence),
    textArray(fed.map(({ occurredAt }) => occurredAt)),
    textArray(fed.map(({ data }) => data)),
    textArray(fed.map(({ reason }) => reason)),
  ]);
  return row === undefined ? undefined : { copies: row.copies, cursor };
}

export async function giveUpOnParked(
  connection: Pick<DatabaseConnection, 'execute'>,
  replayId: string,
): Promise<void> {
  await connection.execute(GIVE_UP_ON_PARKED, [replayId]);
}

/** Returns whether it is finished now and was not before. */
export async function finishReplay(
  connection: Pick<DatabaseConnection, 'execute'>,
  replayId: string,
): Promise<boolean> {
  return (await connection.execute(FINISH, [replayId])).length === 1;
}

function bytesBefore(found: readonly Candidate[], index: number): number {
  return found.slice(0, index).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** By the primary key of `events`, and one look-up of a delivery's size each. */
async function nextEvents(
  db: Kysely<Database>,
  { selection, sources, cursor }: RunningReplay,
  { end, limit }: { end: string; limit: number },
): Promise<Candidate[]> {
  const { rows } = await sql<Candidate>`
    select n.sequence, n.job_id, n.status, n.progress_percentage, coalesce(d.body_bytes, 0) as bytes
    from (
      select t.* from events t
      where t.sequence > ${cursor}::bigint and t.sequence <= ${end}::bigint and ${selected(selection, sources)}
      order by t.sequence limit ${limit}
    ) as n
    left join deliveries d on d.id = n.delivery_id and d.received_at = n.recorded_at
    order by n.sequence`.execute(db);
  return rows;
}

type Source = {
  sequence: string;
  body: AuthenticBody | null;
  data: string | null;
  occurredAt: string | null;
};

/**
 * What the copies are made of: the entry in the outbox where the event was returned, or the body of its delivery. That
 * one was received when the event was recorded, but for released ones (index deliveries_released).
 */
async function toFeed(db: Kysely<Database>, candidates: readonly Candidate[]): Promise<Fed[]> {
  if (candidates.length === 0) return [];
  const sequences = candidates.map(({ sequence }) => sequence);
  const { rows } = await sql<Source>`
    select e.sequence, o.data, o.occurred_at as "occurredAt", coalesce(
      d.body,
      (select r.body from deliveries r
       where d.id is null and r.released_at is not null and r.event_sequence = e.sequence and r.id = e.delivery_id)
    ) as body
    from events e
    left join outbox o on o.sequence = e.sequence and o.state = 'returned'
    left join deliveries d on d.id = e.delivery_id and d.received_at = e.recorded_at
    where e.sequence = any(${sequences}::bigint[])`.execute(db);
  const sources = new Map(rows.map((row) => [row.sequence, row]));
  return candidates.map((candidate) => toCopy(candidate, sources.get(candidate.sequence)));
}

function toCopy(candidate: Candidate, source: Source | undefined): Fed {
  const { sequence } = candidate;
  const skip = (reason: string): Fed => ({ sequence, data: null, occurredAt: null, reason });
  if (source === undefined) return skip('it is not in the ledger any more');
  if (source.data !== null) {
    return { sequence, data: source.data, occurredAt: source.occurredAt, reason: null };
  }
  if (source.body === null) return skip('its body is no longer kept');
  const understood = understand(source.body);
  if (understood.outcome !== 'event') return skip(`it is not understood any more: ${understood.reason}`);
  const { jobId, status, progress, data, occurredAt } = understood.event;
  const isSame =
    jobId === candidate.job_id && status === candidate.status && progress === candidate.progress_percentage;
  return isSame
    ? { sequence, data, occurredAt, reason: null }
    : skip('it is understood as another event now');
}
