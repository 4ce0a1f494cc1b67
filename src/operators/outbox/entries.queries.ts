// Entries of the outbox as the API shows them. They stand in three tables, which are read here as one: events in batches, held
// events, and replays' copies.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { eventId, type Status } from '../../event/index.ts';
import { batchedEvents, type Database, hasEvent, type OutboxState } from '../../ledger/index.ts';
import { sourcesIn } from '../kernel/list/filters.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { Entry } from './contract.ts';

type Ahead = Pick<Event, 'status'> & { sequence: string; progress: number | null; state: OutboxState };
type Event = { readonly status: Status; readonly progress_percentage: number | null };
export type EntryRow = Omit<Entry, 'event_id' | 'waits_behind'> & Event & { readonly ahead: Ahead | null };

/**
 * Of a pending event `o`: the first one of its job that is held before it (index outbox_held_job). Copies wait for their replay, and a
 * returned event keeps none back.
 */
const AHEAD = sql`
  case when o.state = 'pending' and o.replay_id is null then (
    select jsonb_build_object(
      'sequence', a.sequence::text, 'status', a.status, 'progress', a.progress_percentage, 'state', a.state)
    from outbox_held a
    where a.source = o.source and a.job_id = o.job_id and a.sequence < o.number and a.state <> 'returned'
    order by a.sequence limit 1
  ) end`;

/** Of a row `o` of any of the queries below. */
export const columns = shownColumns<EntryRow>(
  {
    id: sql`o.number`,
    source: 'column',
    job_id: 'column',
    status: 'column',
    progress_percentage: 'column',
    state: 'column',
    attempts: 'column',
    due_at: 'time',
    recorded_at: 'time',
    last_error: 'column',
    ahead: AHEAD,
    replay_id: 'column',
    queue: 'column',
  },
  'o',
);

export function toEntry({ status, progress_percentage: progress, ahead, ...row }: EntryRow): Entry {
  const idOf = (event: { status: Status; progress: number | null }) =>
    eventId(row.source, { jobId: row.job_id, ...event });
  return {
    ...row,
    event_id: idOf({ status, progress }),
    waits_behind: ahead && { id: ahead.sequence, event_id: idOf(ahead), state: ahead.state },
  };
}

/** Of an event `e` in a batch. `place` is its place in the list, beside its number. */
const batched = (place: RawBuilder<unknown>) => sql`
  select ${place} as place, e.sequence as number, e.source, e.job_id, e.status, e.progress_percentage,
    'pending'::text as state, 0 as attempts, e.recorded_at as due_at, e.recorded_at, null::text as last_error,
    null::uuid as replay_id, null::text as queue`;

/** Of a row `h` of outbox_held. */
export const held = sql`
  select h.sequence as place, h.sequence as number, h.source, h.job_id, h.status, h.progress_percentage, h.state, h.attempts,
    h.due_at, h.recorded_at, h.last_error, null::uuid as replay_id, null::text as queue`;

/** Of a row `c` of replay_copies. */
const copied = sql`
  select c.position as place, c.position as number, c.source, c.job_id, c.status, c.progress_percentage, c.state, c.attempts,
    c.due_at, c.recorded_at, c.last_error, c.replay_id, c.queue`;

/**
 * Where an entry stands in the list: for an event in a batch, the batch's `first`, then its number; for others both are the
 * number. Batches that were written at the same time interleave: one has the numbers 1 and 3, the other 2 and 4. By its number
 * alone an event in a batch could not be found at a bounded cost.
 */
export type Place = { readonly first: string; readonly number: string };

export const START: Place = { first: '0', number: '0' };

/** Of each table: the next `limit` entries behind a place, the oldest first. */
type PartOptions = { readonly after: Place; readonly limit: number };

/** Pending ones. They have never been tried. The events of the first batch may all stand before the place. */
export const inBatches = ({ after: { first, number }, limit }: PartOptions): RawBuilder<unknown> => sql`
  ${batched(sql`b.first`)} from ${batchedEvents({ from: first, limit: limit + 1 })}
  where (b.first, e.sequence) > (${first}::bigint, ${number}::bigint) order by b.first, e.sequence limit ${limit}`;

/** By outbox_held_pending, outbox_held_waiting, or the primary key. */
export const inHeld = (
  state: OutboxState | undefined,
  { after, limit }: PartOptions,
): RawBuilder<unknown> => sql`
  ${held} from outbox_held h where ${inState('h', state)} and h.sequence > ${after.first}::bigint
  order by h.sequence limit ${limit}`;

/** By the primary key: the feeder keeps few copies in the outbox. */
export const inCopies = (
  state: OutboxState | undefined,
  { after, limit }: PartOptions,
): RawBuilder<unknown> => sql`
  ${copied} from replay_copies c
  where ${state === undefined ? sql`true` : sql`c.state = ${state}`} and c.position > ${after.first}::bigint
  order by c.position limit ${limit}`;

/** As the predicates of the partial indexes of outbox_held are written. Undefined is any state. */
export function inState(table: string, state: OutboxState | undefined): RawBuilder<unknown> {
  const column = sql.ref(`${table}.state`);
  if (state === 'pending') return sql`${column} = 'pending'`;
  return state === undefined ? sql`true` : sql`${column} = ${sql.lit(state)} and ${column} <> 'pending'`;
}

export function ofSources(sources: readonly string[] | null): RawBuilder<unknown> {
  return sources === null ? sql`true` : sql`o.source = any(${sources}::text[])`;
}

/** No index serves it. Undefined is any value. */
export function has(column: 'last_error' | 'queue', value: string | undefined): RawBuilder<unknown> {
  return value === undefined ? sql`true` : sql`${sql.ref(`o.${column}`)} = ${value}`;
}

/** The CTE `of_job`: the events of a job (events_dedup_key). */
export const ofJobCte = (jobId: string, sources: readonly string[] | null): RawBuilder<unknown> => sql`
  s (source) as materialized (${sourcesIn('events', sources)}),
  of_job as materialized (
    select e.* from s cross join lateral (
      select * from events e where e.source = s.source and e.job_id = ${jobId}) e)`;

/** The entries of the events of `of_job`, and of replays' copies of these, which are few. By number alone. */
export const ofJob: RawBuilder<unknown> = sql`
  ${batched(sql`e.sequence`)} from of_job e where exists (select from outbox_batches b where ${hasEvent('e')})
  union all
  ${held} from outbox_held h where h.sequence in (select sequence from of_job)
  union all
  ${copied} from replay_copies c where c.replay_of in (select sequence from of_job)`;

/** The entries with these numbers, the lowest first. By the primary keys, and outbox_batches_time. */
export async function readEntriesNamed(db: Kysely<Database>, ids: readonly string[]): Promise<Entry[]> {
  const named = sql`any(${ids}::bigint[])`;
  const { rows } = await sql<EntryRow>`
    select ${columns} from (
      ${batched(sql`e.sequence`)} from events e
      where e.sequence = ${named} and exists (select from outbox_batches b where ${hasEvent('e')})
      union all
      ${held} from outbox_held h where h.sequence = ${named}
      union all
      ${copied} from replay_copies c where c.position = ${named}
    ) o order by o.number`.execute(db);
  return rows.map(toEntry);
}
