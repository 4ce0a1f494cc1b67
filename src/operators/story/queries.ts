// One job's story: all that is recorded of it, oldest first, a page at a time. All parts are read in one snapshot of the
// database, so that they fit together.

import { type Kysely, sql, type Transaction } from 'kysely';
import { parseJson } from '../../base/json/json.ts';
import { type Database, readSnapshot, timeText } from '../../ledger/index.ts';
import { readDeliveriesOfJob } from '../deliveries/queries.ts';
import { readEventsOfJob } from '../events/queries.ts';
import type { Job } from '../jobs/contract.ts';
import { findJob } from '../jobs/queries.ts';
import type { Position, ValueType } from '../kernel/list/cursor.ts';
import { readEntriesOfJob } from '../outbox/queries.ts';
import { readPublicationsOf } from '../publications/queries.ts';
import { IS_WAITING } from '../quarantine/queries.ts';
import { HELD_BACK_MAX, type HeldBack, type StoryItem } from './contract.ts';

type WithoutTime<Item> = Item extends StoryItem ? Omit<Item, 'at' | 'after_ms'> : never;
type StoryPart = WithoutTime<StoryItem>;
type ReplayOfJob = Extract<StoryItem, { what: 'replay' }>['replay'];

export type Story = {
  /** Null for a job without an event: all its deliveries are in quarantine. */
  readonly job: Job | null;
  readonly heldBack: HeldBack;
  readonly items: readonly StoryItem[];
  readonly next: Position | null;
};

/** The types of a place in a story: the item's time, its rank among items of the same time, and its id. */
export const storyTypes: readonly ValueType[] = ['time', 'rank', 'text'];

/** At equal times a cause comes before its effect. */
const RANKS = {
  delivery: 0,
  event: 1,
  operator: 2,
  replay: 3,
  replay_skip: 4,
  publication: 5,
  waiting: 6,
} as const;

/** The most deliveries whose lines in the operator log are read, the oldest ones, and the most lines and skips. */
const ACTED_ON_MAX = 1_000;
/** A job has at most 103 events, and few replays have copies of them in the outbox at a time. */
const WAITING_MAX = 1_000;

type Moment = StoryPart & { readonly at: string; readonly key: string };
type WaitingMoment = Extract<Moment, { what: 'waiting' }>;
type Place = { readonly at: string; readonly rank: number; readonly key: string };

const START: Place = { at: '-infinity', rank: -1, key: '' };

/** Oldest first, at most `limit` items. Undefined if nothing was ever recorded of the job. */
export function readStory(
  db: Kysely<Database>,
  job: { source: string; jobId: string },
  options: { after: Position | null; limit: number },
): Promise<Story | undefined> {
  return readSnapshot(db, (trx) => readStoryIn(trx, job, options));
}

async function readStoryIn(
  trx: Transaction<Database>,
  job: { source: string; jobId: string },
  { after, limit }: { after: Position | null; limit: number },
): Promise<Story | undefined> {
  const place = after === null ? START : placeOf(after);
  const found = await findJob(trx, job);
  const events = await readEventsOfJob(trx, job);
  const ids = new Map(events.map(({ sequence, id }) => [sequence, id]));
  const sequences = [...ids.keys()];
  const skips = await skipMoments(trx, ids);
  const waiting = await waitingMoments(trx, job);
  const heldBack = {
    entries: waiting
      .map(({ entry }) => entry)
      .filter(({ replay_id: replay }) => replay === null)
      .slice(0, HELD_BACK_MAX),
    quarantined: await readQuarantined(trx, job),
  };
  const moments = [
    ...(await deliveryMoments(trx, job, { place, limit: limit + 1 })),
    ...events.map(
      (event): Moment => ({ what: 'event', event, at: event.recorded_at, key: padded(event.sequence) }),
    ),
    ...(await publicationMoments(trx, sequences, { place, limit: limit + 1 })),
    ...(await operatorMoments(trx, job, [...ids.values()])),
    ...(await replayMoments(
      trx,
      { sequences, named: [...skips, ...waiting].map(replayOf) },
      { place, limit: limit + 1 },
    )),
    ...skips,
    ...waiting,
  ]
    .filter((moment) => isBehind(moment, place))
    .toSorted((a, b) => comparePlaces(toPlace(a), toPlace(b)));
  if (found === undefined && moments.length === 0 && after === null) return undefined;
  const shown = moments.slice(0, limit);
  const last = shown.at(-1);
  return {
    job: found ?? null,
    heldBack,
    items: withDurations(shown, after === null ? undefined : place.at),
    next: moments.length > limit && last !== undefined ? toPosition(toPlace(last)) : null,
  };
}

type Where = { readonly place: Place; readonly limit: number };

/**
 * The place from which items of one rank are read. Example: the last item shown is an event of 10:30. Deliveries of 10:30
 * stand before it, so they are read from behind the highest id of that time; publications of 10:30 stand behind it, so they
 * are read from the lowest id. Events are read from behind its id.
 */
function from(what: keyof typeof RANKS, { place }: Where, [first, last]: [string, string]) {
  if (place === START) return { at: place.at, id: first };
  if (RANKS[what] === place.rank) return { at: place.at, id: place.key };
  return { at: place.at, id: RANKS[what] > place.rank ? first : last };
}

const UUIDS: [string, string] = [
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
];
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const DIGITS = /^\d{1,19}$/;
const BIGINTS: [string, string] = ['0', '9223372036854775807'];

async function deliveryMoments(
  trx: Transaction<Database>,
  job: { source: string; jobId: string },
  where: Where,
): Promise<Moment[]> {
  const after = from('delivery', where, UUIDS);
  const deliveries = await readDeliveriesOfJob(trx, job, { after, limit: where.limit });
  return deliveries.map((delivery) => ({
    what: 'delivery',
    delivery,
    at: delivery.received_at,
    key: delivery.id,
  }));
}

async function publicationMoments(
  trx: Transaction<Database>,
  sequences: readonly string[],
  where: Where,
): Promise<Moment[]> {
  const after = from('publication', where, BIGINTS);
  const publications = await readPublicationsOf(trx, sequences, { after, limit: where.limit });
  return publications.map((publication) => ({
    what: 'publication',
    publication,
    at: publication.published_at,
    key: padded(publication.id),
  }));
}

/**
 * By index operator_log_subject. Without the operators' addresses, and without reads, which change nothing: or each look at a
 * story that reads a body would add a line to it.
 */
async function operatorMoments(
  trx: Transaction<Database>,
  { source, jobId }: { source: string; jobId: string },
  eventIds: readonly string[],
): Promise<Moment[]> {
  const { rows } = await sql<{
    id: string;
    at: string;
    action: string;
    actor: string;
    subject: string;
    detail: string | null;
  }>`
    with acted_on as materialized (
      select d.id::text as subject from deliveries d
      where d.source = ${source} and d.job_id = ${jobId} and d.outcome <> 'duplicate'
      order by d.source, d.job_id, d.received_at limit ${ACTED_ON_MAX})
    select l.id, ${timeText('l.at')} as at, l.action, l.actor, l.subject, l.detail from operator_log l
    where l.subject = any(array(select subject from acted_on) || ${eventIds}::text[]) and l.action <> 'body.read'
    order by l.id limit ${ACTED_ON_MAX}`.execute(trx);
  return rows.map(({ id, at, detail, ...operator }) => ({
    what: 'operator',
    operator: { ...operator, ...shownDetail(detail) },
    at,
    key: padded(id),
  }));
}

/** Of a line's detail: what came of the action, and why it was done. */
function shownDetail(detail: string | null): { result?: string; note?: string } {
  const { result, note } = detail === null ? {} : (parseJson(detail) as Record<string, unknown>);
  return {
    ...(typeof result === 'string' && { result }),
    ...(typeof note === 'string' && { note }),
  };
}

/**
 * The replays that published events of the job, by their publications (index publications_event), and the replays `named` by
 * skips and waiting copies. A replay's publications are younger than the replay: only those behind the place are read.
 */
async function replayMoments(
  trx: Transaction<Database>,
  { sequences, named }: { sequences: readonly string[]; named: readonly (string | null)[] },
  where: Where,
): Promise<Moment[]> {
  const after = from('replay', where, UUIDS);
  const { rows: published } = await sql<{ id: string }>`
    select distinct p.replay_id as id from publications p
    where p.event_sequence = any(${sequences}::bigint[]) and p.published_at >= ${after.at}::timestamptz
      and p.replay_id is not null`.execute(trx);
  const ids = [...new Set([...published.map(({ id }) => id), ...named.filter((id) => id !== null)])];
  if (ids.length === 0) return [];
  const { rows } = await sql<ReplayOfJob>`
    select r.id, r.state, r.created_by, r.note, r.queue, ${timeText('r.created_at')} as created_at,
      ${timeText('r.finished_at')} as finished_at,
      round(extract(epoch from r.finished_at - r.created_at) * 1000)::float8 as duration_ms
    from replays r
    where r.id = any(${ids}::uuid[]) and (r.created_at, r.id) > (${after.at}::timestamptz, ${after.id}::uuid)
    order by r.created_at, r.id limit ${where.limit}`.execute(trx);
  return rows.map((replay) => ({ what: 'replay', replay, at: replay.created_at, key: replay.id }));
}

function replayOf(moment: Moment): string | null {
  if (moment.what === 'replay_skip') return moment.skip.replay_id;
  return moment.what === 'waiting' ? moment.entry.replay_id : null;
}

/** Index replay_skips_event. A replay skips an event once. */
async function skipMoments(trx: Transaction<Database>, ids: ReadonlyMap<string, string>): Promise<Moment[]> {
  const { rows } = await sql<{ replay_id: string; event_sequence: string; reason: string; at: string }>`
    select k.replay_id, k.event_sequence, k.reason, ${timeText('k.at')} as at from replay_skips k
    where k.event_sequence = any(${[...ids.keys()]}::bigint[])
    order by k.at limit ${ACTED_ON_MAX}`.execute(trx);
  return rows.map(({ replay_id, event_sequence, reason, at }) => ({
    what: 'replay_skip',
    skip: { replay_id, event_id: ids.get(event_sequence) ?? '', reason },
    at,
    key: `${replay_id}:${padded(event_sequence)}`,
  }));
}

/** Entries in the outbox have the time of this read, so they stand at the end of the story. */
async function waitingMoments(
  trx: Transaction<Database>,
  job: { source: string; jobId: string },
): Promise<WaitingMoment[]> {
  const entries = await readEntriesOfJob(trx, job, WAITING_MAX);
  if (entries.length === 0) return [];
  // clock_timestamp, since now() is the begin of the transaction, which may be before rows of its snapshot.
  const { rows } = await sql<{ at: string }>`
    select ${timeText('c.at')} as at from (select clock_timestamp() as at) c`.execute(trx);
  return entries.map((entry) => ({ what: 'waiting', entry, at: rows[0]?.at ?? '', key: padded(entry.id) }));
}

/** By index deliveries_job. */
async function readQuarantined(
  trx: Transaction<Database>,
  { source, jobId }: { source: string; jobId: string },
): Promise<HeldBack['quarantined']> {
  const { rows } = await sql<HeldBack['quarantined'][number]>`
    select t.id as delivery_id, ${timeText('t.received_at')} as received_at, t.status, t.reason from deliveries t
    where t.source = ${source} and t.job_id = ${jobId} and ${IS_WAITING}
    order by t.source, t.job_id, t.received_at limit ${HELD_BACK_MAX}`.execute(trx);
  return rows;
}

function withDurations(moments: readonly Moment[], before: string | undefined): StoryItem[] {
  return moments.map(({ key: _key, ...moment }, index) => {
    const previous = index === 0 ? before : moments[index - 1]?.at;
    const afterMs = previous === undefined ? null : Date.parse(moment.at) - Date.parse(previous);
    return { ...moment, after_ms: afterMs };
  });
}

/** So that text sorts as the number does. */
const padded = (digits: string) => digits.padStart(19, '0');

const toPlace = ({ at, what, key }: Moment): Place => ({ at, rank: RANKS[what], key });
const toPosition = ({ at, rank, key }: Place): Position => [at, String(rank), key];
const placeOf = ([at = '', rank = '', key = '']: Position): Place => ({ at, rank: Number(rank), key });

/** False for a place that no story has given: its id would be no valid parameter of the statements. */
export function isStoryPlace(position: Position): boolean {
  const { rank, key } = placeOf(position);
  if (rank === RANKS.delivery || rank === RANKS.replay) return UUID.test(key);
  if (rank === RANKS.publication) return DIGITS.test(key);
  return rank <= RANKS.waiting;
}

function isBehind(moment: Moment, place: Place): boolean {
  // Waiting entries have the time of the read, which differs from page to page: their ids alone count.
  if (moment.what === 'waiting' && place.rank === RANKS.waiting) return moment.key > place.key;
  return comparePlaces(toPlace(moment), place) > 0;
}

function comparePlaces(a: Place, b: Place): number {
  if (b === START) return 1;
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  if (a.rank !== b.rank) return a.rank - b.rank;
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1;
}
