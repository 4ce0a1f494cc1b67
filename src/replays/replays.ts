// What an operator asked to be published again: a replay is a row that the feeder and the relay work through. Every
// change of its state is guarded by the state it expects, under the row's lock.
//
//   running ◀──resume──▶ paused      by an operator, or because its queue is not there
//      │ ╲                │
//      │  ╲────cancel─────┴──▶ cancelled     its copies that are still in the outbox go
//      └──all fed, none left in the outbox──▶ finished

import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { EventItem } from '../audit/events.ts';
import type { Database, ReplayState } from '../ledger/tables.ts';
import { timeText } from '../ledger/time-text.ts';
import { countSelected, type EventFilter, type Selection, sampleSelected } from './selection.ts';

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
  const { matched, first, last } = await countSelected(trx, wish.selection, wish.sources);
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
      cursor_sequence: sql<string>`${first}::bigint - 1`,
      up_to_sequence: last,
      queue: wish.queue,
      rate_per_second: wish.ratePerSecond,
      state: 'running',
      paused_because: null,
      matched,
      finished_at: null,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return (await findReplay(trx, id)) as Replay;
}

/** What a replay would begin with. Changes nothing. */
export async function previewReplay(
  db: Kysely<Database>,
  { selection, sources }: Wish,
  sampled: number,
): Promise<{ matched: number; sample: EventItem[] }> {
  const { matched } = await countSelected(db, selection, sources);
  return {
    matched: Number(matched),
    sample: await sampleSelected(db, selection, { sources, limit: sampled }),
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

type Row = Awaited<ReturnType<ReturnType<typeof shown>['executeTakeFirstOrThrow']>>;

function toReplay(row: Row): Replay {
  const selection = JSON.parse(row.selection) as Selection;
  const counts = ['matched', 'queued', 'confirmed', 'returned', 'failed', 'skipped'] as const;
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
    counts: Object.fromEntries(counts.map((name) => [name, Number(row[name])])) as Record<Count, number>,
    updated_at: row.updated,
    finished_at: row.finished,
    sources: row.sources,
  };
}
