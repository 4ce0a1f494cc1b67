// What an operator asked to be published again: a replay is a row that the feeder and the relay work through. Every
// change of its state is guarded by the state it expects, under the row's lock.
//
//   running ◀──resume──▶ paused      by an operator, because its queue is not there, or because it takes too long
//      │ ╲                │
//      │  ╲────cancel─────┴──▶ cancelled     its copies that are still in the outbox go
//      └──all fed, none left in the outbox──▶ finished

import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { EventItem } from '../audit/events.ts';
import { parseJson } from '../../json.ts';
import { type Database, type ReplayState, timeText } from '../../ledger/index.ts';
import { type EventFilter, measureSelected, type Selection, sampleSelected } from './selection.ts';

export type Replay = {
  readonly id: string;
  readonly state: ReplayState;
  readonly paused_because: string | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly note: string | null;
  readonly event_ids: readonly string[] | null;
  readonly filter: EventFilter | null;
  readonly queue: string | null;
  readonly rate_per_second: number;
  readonly counts: Readonly<Record<Count, number>>;
  /** False as long as there may be more events than `counts.matched`: so many were not counted. */
  readonly matched_exactly: boolean;
  readonly updated_at: string;
  readonly finished_at: string | null;
  /** The sources it may touch; null for all. Not shown. */
  readonly sources: readonly string[] | null;
};

type Count = 'matched' | 'queued' | 'confirmed' | 'returned' | 'failed' | 'skipped';

export type Wish = {
  readonly selection: Selection;
  /** The sources it may touch; null for all. */
  readonly sources: readonly string[] | null;
  /** Events that are looked at to count them, where it is to be less than usual. */
  readonly lookMax?: number;
};

export type Skip = { readonly event_id: string; readonly reason: string };

/** Running and paused ones together: each has copies in the outbox, and takes its turn. */
export const MAX_OPEN_REPLAYS = 20;

/** Any constant of ours will do: who counts the open ones must not count at once. */
const CREATE_LOCK = 7_461_194;

/**
 * Begins a replay of the events that match now. Those that are accepted later are not meant.
 * @returns 'too many' while as many others are open.
 */
export async function createReplay(
  trx: Transaction<Database>,
  wish: Wish & { queue: string | null; ratePerSecond: number; note: string | null; createdBy: string },
): Promise<Replay | 'too many'> {
  const { matched, isExact, after, upTo } = await measureSelected(trx, wish.selection, wish);
  await sql`select pg_advisory_xact_lock(${CREATE_LOCK})`.execute(trx);
  const { open } = await trx
    .selectFrom('replays')
    .select(({ fn }) => fn.countAll<string>().as('open'))
    .where('state', 'in', ['running', 'paused'])
    .executeTakeFirstOrThrow();
  if (Number(open) >= MAX_OPEN_REPLAYS) return 'too many';
  const { id } = await trx
    .insertInto('replays')
    .values({
      id: randomUUIDv7(),
      created_at: sql<Date>`now()`,
      updated_at: sql<Date>`now()`,
      created_by: wish.createdBy,
      note: wish.note,
      sources: wish.sources === null ? null : [...wish.sources],
      selection: JSON.stringify(wish.selection),
      cursor_sequence: after,
      up_to_sequence: upTo,
      queue: wish.queue,
      rate_per_second: wish.ratePerSecond,
      state: 'running',
      paused_because: null,
      matched: String(matched),
      matched_exactly: isExact,
      finished_at: null,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return (await findReplay(trx, id)) as Replay;
}

/** What a replay would begin with. Changes nothing. */
export async function previewReplay(
  db: Kysely<Database>,
  wish: Wish,
  sampled: number,
): Promise<{ matched: number; matched_exactly: boolean; sample: EventItem[] }> {
  const { matched, isExact } = await measureSelected(db, wish.selection, wish);
  return {
    matched,
    matched_exactly: isExact,
    sample: await sampleSelected(db, wish.selection, { ...wish, limit: sampled }),
  };
}

const shown = (db: Kysely<Database>) =>
  db
    .selectFrom('replays')
    .selectAll()
    .select([
      timeText('replays.created_at').as('created'),
      timeText('replays.updated_at').as('updated'),
      timeText('replays.finished_at').as('finished'),
    ]);

export async function findReplay(db: Kysely<Database>, id: string): Promise<Replay | undefined> {
  const row = await shown(db).where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : toReplay(row);
}

/** Newest first, from behind `after`. `within`: only those that may touch none but these sources. */
export async function listReplays(
  db: Kysely<Database>,
  options: {
    state: ReplayState | undefined;
    within: readonly string[] | null;
    after: { at: string; id: string } | undefined;
    limit: number;
  },
): Promise<Replay[]> {
  const { state, within, after, limit } = options;
  let query = shown(db).orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit);
  if (state !== undefined) query = query.where('state', '=', state);
  if (within !== null) query = query.where(sql<boolean>`sources <@ ${[...within]}::text[]`);
  if (after !== undefined)
    query = query.where(sql<boolean>`(created_at, id) < (${after.at}::timestamptz, ${after.id}::uuid)`);
  return (await query.execute()).map(toReplay);
}

/** The first ones that it left out, in the order of their acceptance. */
export async function listSkips(db: Kysely<Database>, id: string, limit: number): Promise<Skip[]> {
  return db
    .selectFrom('replay_skips as s')
    .innerJoin('events as e', 'e.sequence', 's.event_sequence')
    .select([
      sql<string>`concat_ws(':', e.source, e.job_id, e.status, e.progress_percentage)`.as('event_id'),
      's.reason',
    ])
    .where('s.replay_id', '=', id)
    .orderBy('s.event_sequence')
    .limit(limit)
    .execute();
}

export type Change = 'pause' | 'resume' | 'cancel';

const FROM: Readonly<Record<Change, readonly ReplayState[]>> = {
  pause: ['running'],
  resume: ['paused'],
  cancel: ['running', 'paused'],
};
const TO: Readonly<Record<Change, ReplayState>> = { pause: 'paused', resume: 'running', cancel: 'cancelled' };

/**
 * Changes its state, once: `changed` is false where it has that state already. A copy that is on its way at a pause or
 * a cancel may still arrive; one that a cancel takes out of the outbox counts as queued and as nothing else.
 * @returns undefined if there is none, 'wrong state' if its state does not lead there.
 */
export async function changeReplay(
  trx: Transaction<Database>,
  id: string,
  change: Change,
): Promise<{ changed: boolean; replay: Replay } | 'wrong state' | undefined> {
  const row = await trx
    .selectFrom('replays')
    .select('state')
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const changed = FROM[change].includes(row.state);
  if (!changed && row.state !== TO[change]) return 'wrong state';
  if (changed) await apply(trx, id, change);
  return { changed, replay: (await findReplay(trx, id)) as Replay };
}

/** Its copies by index outbox_replay, at most as many as the feeder keeps out. */
async function apply(trx: Transaction<Database>, id: string, change: Change): Promise<void> {
  await trx
    .updateTable('replays')
    .set({
      state: TO[change],
      paused_because: change === 'pause' ? 'by an operator' : null,
      updated_at: sql<Date>`now()`,
      ...(change === 'cancel' ? { finished_at: sql<Date>`now()` } : {}),
    })
    .where('id', '=', id)
    .execute();
  if (change === 'cancel') await trx.deleteFrom('outbox').where('replay_id', '=', id).execute();
  if (change === 'resume') {
    await trx
      .updateTable('outbox')
      .set({ state: 'pending', attempts: 0, due_at: sql<Date>`now()` })
      .where('replay_id', '=', id)
      .where('state', '=', 'returned')
      .execute();
  }
}

/** Guarded by the state it expects: does nothing to one that does not run any more. */
export async function pauseReplay(db: Kysely<Database>, id: string, because: string): Promise<void> {
  await db
    .updateTable('replays')
    .set({ state: 'paused', paused_because: because, updated_at: sql<Date>`now()` })
    .where('id', '=', id)
    .where('state', '=', 'running')
    .execute();
}

type Row = Awaited<ReturnType<ReturnType<typeof shown>['executeTakeFirstOrThrow']>>;

function toReplay(row: Row): Replay {
  const selection = parseJson(row.selection) as Selection;
  return {
    id: row.id,
    state: row.state,
    paused_because: row.paused_because,
    created_at: row.created,
    created_by: row.created_by,
    note: row.note,
    event_ids: 'event_ids' in selection ? selection.event_ids : null,
    filter: 'filter' in selection ? selection.filter : null,
    queue: row.queue,
    rate_per_second: row.rate_per_second,
    counts: countsOf(row),
    matched_exactly: row.matched_exactly || row.state === 'finished',
    updated_at: row.updated,
    finished_at: row.finished,
    sources: row.sources,
  };
}

function countsOf(row: Row): Record<Count, number> {
  const names = ['matched', 'queued', 'confirmed', 'returned', 'failed', 'skipped'] as const;
  const counts = Object.fromEntries(names.map((name) => [name, Number(row[name])])) as Record<Count, number>;
  if (row.matched_exactly) return counts;
  // What was not counted to its end is known by what was fed, and in the end it is that.
  const fed = counts.queued + counts.skipped;
  return { ...counts, matched: row.state === 'finished' ? fed : Math.max(counts.matched, fed) };
}
