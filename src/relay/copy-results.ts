// What publish attempts change: the replays' copies, their replays' counts, and the publications. Each statement may be repeated:
// a result is written with the change that it makes, and one that changes nothing only if it is not written yet. The replay's row
// is locked before its copies (R46).

import type { DatabaseConnection, Statement } from '../ledger/index.ts';
import type { Attempt } from './entry.ts';
import { attemptColumns } from './publications.ts';

/**
 * The results `result` of publish attempts, each with its replay, whose row it locks. Postgres locks before it changes a copy,
 * since each statement below joins its changes with `result`.
 */
const RESULTS = `
replay as (
  select id, state from replays where id in (select unnest($1::uuid[])) order by id for update
),
result as (
  select t.*, replay.state as replay_state
  from replay join unnest(
    $1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::int[], $6::text[], $7::text[], $8::int[], $9::bigint[],
    $10::text[], $11::bigint[], $12::text[]
  ) as t (
    replay_id, position, attempts, next, retry_in_ms, result, detail, duration_ms, relay_attempt, source, event_sequence, queue
  ) on t.replay_id = replay.id
)`;

/**
 * The publication of `r` if it is written already. Its repeat comes within minutes. Found by index publications_event: with
 * "replay_id =" a planner without statistics of the day prefers the index of the replay, which may have sent millions.
 */
const published = (more: string) => `(
    select p.id from publications p
    where p.event_sequence = r.event_sequence and p.replay_id is not distinct from r.replay_id
      and p.attempt = r.attempts + 1 and p.result = r.result and p.published_at > now() - interval '1 hour' ${more}
    limit 1)`;
const BY_THIS_RELAY = 'and p.relay_id = $13::uuid and p.relay_attempt = r.relay_attempt';

const PUBLISH = `
insert into publications (
  published_at, event_sequence, attempt, result, detail, duration_ms, relay_attempt, relay_id, source, replay_id, queue
)
select now(), event_sequence, attempts + 1, result, detail, duration_ms, relay_attempt, $13::uuid, source, replay_id, queue`;

/**
 * Copies that leave the outbox:
 * - `ended`: those that this statement deletes;
 * - `news`: their results, and those of copies that are gone already, unless this relay has written them. Such a copy was
 *   settled by another relay; or it was in flight when its replay was cancelled, or when the feeder gave up on it: both delete
 *   the copies;
 * - `counted`: the replays, with the news added. Another relay and the feeder have counted theirs.
 */
const END_COPIES: Statement = {
  name: 'copies-end',
  text: `
with ${RESULTS},
ended as (
  delete from replay_copies c using result r where c.position = r.position returning c.position
),
news as (
  select r.*, e.position is not null or (r.replay_state = 'cancelled' and ${published('')} is null) as counts
  from result r left join ended e using (position)
  where e.position is not null or ${published(BY_THIS_RELAY)} is null
),
counted as (
  update replays r set
    confirmed = r.confirmed + n.confirmed,
    returned = r.returned + n.returned,
    failed = r.failed + n.failed,
    updated_at = now()
  from (
    select replay_id,
           count(*) filter (where result = 'confirmed') as confirmed,
           count(*) filter (where result = 'returned') as returned,
           count(*) filter (where result in ('nacked', 'failed')) as failed
    from news where counts group by replay_id
  ) n where r.id = n.replay_id
)
${PUBLISH} from news order by position`,
};

/**
 * Copies that stay in the outbox:
 * - `moved`: those that wait for their next attempt, or for their queue. One that was settled or cancelled meanwhile is not
 *   among them. An attempt that does not count (`keep`) moves nothing;
 * - `paused`: the replays of those that wait for their queue.
 */
const KEEP_COPIES: Statement = {
  name: 'copies-keep',
  text: `
with ${RESULTS},
moved as (
  update replay_copies c set
    state = case r.next when 'return' then 'returned' else 'pending' end,
    attempts = c.attempts + 1,
    due_at = now() + make_interval(secs => r.retry_in_ms / 1000.0),
    last_error = r.detail
  from result r
  where r.next in ('return', 'retry') and c.position = r.position
    and c.state = 'pending' and c.attempts = r.attempts
  returning c.position
),
paused as (
  update replays r set state = 'paused', paused_because = m.because, updated_at = now()
  from (
    select replay_id, max(case result when 'returned' then 'there is no queue ' || queue else detail end) as because
    from result join moved using (position) where next = 'return' group by replay_id
  ) m where r.id = m.replay_id and r.state = 'running'
)
${PUBLISH} from result r
where position in (select position from moved)
  or ${published(BY_THIS_RELAY)} is null
order by position`,
};

/**
 * The own entries of events that were returned once. A copy has now reached the queues of the exchange, so the event has. They
 * block nothing, so their jobs are not released. Locked in order (R46).
 */
const END_RETURNED: Statement = {
  name: 'copies-end-returned',
  text: `
delete from outbox_held where sequence in (
  select sequence from outbox_held
  where sequence = any($1::bigint[]) and state = 'returned' order by sequence for update
)`,
};

/**
 * Records the publications of copies, moves these on, and counts them in their replays. Waits for the locks of these replays.
 * May be repeated, as a whole, after an error: what is written already is not written again.
 */
export async function settleCopies(
  connection: Pick<DatabaseConnection, 'execute'>,
  attempts: readonly Attempt[],
  relayId: string,
): Promise<void> {
  const arrived = attempts.filter(
    ({ entry, publication }) => publication.result === 'confirmed' && entry.replay?.queue === null,
  );
  const ended = attempts.filter(({ next }) => next === 'delete');
  const kept = attempts.filter(({ next }) => next !== 'delete');
  // First, since it is true whether or not the copies' own results can be written.
  if (arrived.length > 0) {
    await connection.execute(END_RETURNED, [arrived.map(({ entry }) => entry.sequence)]);
  }
  if (ended.length > 0) await connection.execute(END_COPIES, columnsOf(ended, relayId));
  if (kept.length > 0) await connection.execute(KEEP_COPIES, columnsOf(kept, relayId));
}

function columnsOf(attempts: readonly Attempt[], relayId: string): unknown[] {
  return [
    attempts.map(({ entry }) => entry.replay?.id),
    attempts.map(({ entry }) => entry.position),
    attempts.map(({ entry }) => entry.attempts),
    ...attemptColumns(attempts),
    attempts.map(({ entry }) => entry.source),
    attempts.map(({ entry }) => entry.sequence),
    attempts.map(({ entry }) => entry.replay?.queue),
    relayId,
  ];
}
