// What an operator asked to be published again: a replay is a row that the feeder and the relay work through. Every
// change of its state is guarded by the state it expects, under the row's lock.
//
//   running ◀──resume──▶ paused      by an operator, because its queue is not there, or because it takes too long
//      │ ╲                │
//      │  ╲────cancel─────┴──▶ cancelled     its copies that are still in the outbox go
//      └──all fed, none left in the outbox──▶ finished

import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Event } from '../contract/items.ts';
import type { Database, ReplayState } from '../../ledger/index.ts';
import { findReplay, type Replay } from './read-replays.ts';
import { measureSelected, type Selection, sampleSelected } from './selection.ts';

export type Wish = {
  readonly selection: Selection;
  /** The sources it may touch; null for all. */
  readonly sources: readonly string[] | null;
  /** Events that are looked at to count them, where it is to be less than usual. */
  readonly lookMax?: number;
};

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
): Promise<{ matched: number; matched_exactly: boolean; sample: Event[] }> {
  const { matched, isExact } = await measureSelected(db, wish.selection, wish);
  return {
    matched,
    matched_exactly: isExact,
    sample: await sampleSelected(db, wish.selection, { ...wish, limit: sampled }),
  };
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
