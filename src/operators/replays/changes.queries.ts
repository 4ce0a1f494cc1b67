// The life of a replay. A replay is a row that says which events to publish again: the feeder copies them into the outbox,
// and the relay publishes the copies. Every change of state expects a certain state, under the row's lock.
//
//   running ◀──resume──▶ paused      by an operator, because its queue does not exist, or because it takes too long
//      │ ╲                │
//      │  ╲────cancel─────┴──▶ cancelled     its copies that are still in the outbox are deleted
//      └──all fed, none left in the outbox──▶ finished

import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql, type Transaction } from 'kysely';
import { type Database, type ReplayState, tellLeader } from '../../ledger/index.ts';
import type { Event } from '../events/contract.ts';
import { untilText } from '../kernel/list/range.queries.ts';
import { measureSelected, sampleSelected } from './extent.queries.ts';
import { findReplay, type Replay } from './queries.ts';
import type { Selection } from './selection.queries.ts';

/** Which events to publish again. */
export type ReplayRequest = {
  readonly selection: Selection;
  /** The sources it may touch; null for all. */
  readonly sources: readonly string[] | null;
  /** How many events are read to count the matching ones, if fewer than usual. */
  readonly lookMax?: number;
};

/** Running and paused replays together: each has copies in the outbox and takes turns of the feeder. */
export const MAX_OPEN_REPLAYS = 20;

/**
 * The key of an advisory lock, unique in this project. Replays are created one after the other, or MAX_OPEN_REPLAYS could be
 * exceeded.
 */
const CREATE_LOCK = 7_461_194;

/**
 * Begins a replay of the events that match now, and not of those that are accepted later.
 * @returns 'too many' if MAX_OPEN_REPLAYS are open.
 */
export async function createReplay(
  trx: Transaction<Database>,
  request: ReplayRequest & {
    queue: string | null;
    ratePerSecond: number;
    note: string | null;
    createdBy: string;
  },
): Promise<Replay | 'too many'> {
  const { matched, isExact, after, upTo } = await measureSelected(trx, request.selection, request);
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
      created_by: request.createdBy,
      note: request.note,
      sources: request.sources === null ? null : [...request.sources],
      selection: JSON.stringify(request.selection),
      cursor_sequence: after,
      up_to_sequence: upTo,
      queue: request.queue,
      rate_per_second: request.ratePerSecond,
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

/**
 * What a replay of these events would begin with. Changes nothing.
 * @returns `matched_before`: the end of the filter's time, now at the latest. An order with it as `to` in its filter is for the same events.
 */
export async function previewReplay(
  db: Kysely<Database>,
  request: ReplayRequest,
  sampled: number,
): Promise<{ matched: number; matched_exactly: boolean; matched_before: string | null; sample: Event[] }> {
  const { selection, to } = await untilNow(db, request.selection);
  const { matched, isExact } = await measureSelected(db, selection, request);
  return {
    matched,
    matched_exactly: isExact,
    matched_before: to,
    sample: await sampleSelected(db, selection, { ...request, limit: sampled }),
  };
}

async function untilNow(
  db: Kysely<Database>,
  selection: Selection,
): Promise<{ selection: Selection; to: string | null }> {
  if ('sequences' in selection) return { selection, to: null };
  const { filter } = selection;
  const { rows } = await sql<{ to: string }>`select ${untilText(filter.to)} as to`.execute(db);
  const to = rows[0]?.to;
  if (to === undefined) throw new Error('a select without a table has one row');
  return { selection: { filter: { ...filter, to } }, to };
}

export type Change = 'pause' | 'resume' | 'cancel';

const CHANGES: Readonly<Record<Change, { from: readonly ReplayState[]; to: ReplayState }>> = {
  pause: { from: ['running'], to: 'paused' },
  resume: { from: ['paused'], to: 'running' },
  cancel: { from: ['running', 'paused'], to: 'cancelled' },
};

/**
 * Idempotent: `changed` is false if the replay has the new state already. A copy that is being published at a pause or a
 * cancel may still arrive. A copy that a cancel deletes from the outbox stays counted as queued.
 * @returns undefined if there is no such replay, its state if that does not allow the change.
 */
export async function changeReplay(
  trx: Transaction<Database>,
  id: string,
  change: Change,
): Promise<{ changed: boolean; replay: Replay } | ReplayState | undefined> {
  const row = await trx
    .selectFrom('replays')
    .select('state')
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const changed = CHANGES[change].from.includes(row.state);
  if (!changed && row.state !== CHANGES[change].to) return row.state;
  if (changed) await apply(trx, id, change);
  return { changed, replay: (await findReplay(trx, id)) as Replay };
}

/** Finds the copies by index replay_copies_order: at most as many as the feeder lets into the outbox. */
async function apply(trx: Transaction<Database>, id: string, change: Change): Promise<void> {
  await trx
    .updateTable('replays')
    .set({
      state: CHANGES[change].to,
      paused_because: change === 'pause' ? 'by an operator' : null,
      updated_at: sql<Date>`now()`,
      ...(change === 'cancel' ? { finished_at: sql<Date>`now()` } : {}),
    })
    .where('id', '=', id)
    .execute();
  if (change === 'cancel') await trx.deleteFrom('replay_copies').where('replay_id', '=', id).execute();
  if (change === 'resume') {
    await trx
      .updateTable('replay_copies')
      .set({ state: 'pending', attempts: 0, due_at: sql<Date>`now()` })
      .where('replay_id', '=', id)
      .where('state', '=', 'returned')
      .execute();
    return;
  }
  await tellLeader(trx); // copies wait in its memory
}

/** Does nothing to a replay that does not run any more. */
export async function pauseReplay(db: Kysely<Database>, id: string, because: string): Promise<void> {
  await db
    .updateTable('replays')
    .set({ state: 'paused', paused_because: because, updated_at: sql<Date>`now()` })
    .where('id', '=', id)
    .where('state', '=', 'running')
    .execute();
}
