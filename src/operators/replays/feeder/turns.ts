// The turns of one running replay. A turn puts the next copies into the outbox, as many as the replay's rate and its place in
// the outbox allow. A replay that fails pauses its own turns alone.

import { describeError } from '../../../base/errors.ts';
import { parseJson } from '../../../base/json/json.ts';
import type { Logger } from '../../../base/log/log.ts';
import { type DatabaseConnection, isTimeout } from '../../../ledger/index.ts';
import { pauseReplay } from '../changes.queries.ts';
import type { RunningReplay } from '../next-events.queries.ts';
import type { Selection } from '../selection.queries.ts';
import { createFailurePause } from './failure-pause.ts';
import { feedReplay, finishReplay, giveUpOnParked } from './feed.queries.ts';
import { createRateCap } from './rate-cap.ts';
import type { RunningRow } from './running-replays.queries.ts';
import { createSlices } from './slices.ts';

export type Turns = {
  /** Returns how many copies were put into the outbox. Never rejects: a failure is logged, and pauses the turns for a while. */
  readonly take: (row: RunningRow) => Promise<number>;
};

/** Events in one statement: it locks the rows of their jobs while it runs. */
const BATCH = 100;
/** Copies of one replay in the outbox at one time; at a slow rate as many as are published in a second. */
const OUTSTANDING = 500;
/** Slices without a matching event that one turn scans. */
const EMPTY_SLICES = 10;
/** How often a replay's copies that wait behind a parked event are looked for. */
const GIVE_UP_MS = 1_000;

const TOO_SLOW = 'the database takes too long to find its events';

/** `now` is monotonic, in milliseconds. `mayFeed`: whether this replica leads the relay, and is not stopping. */
export function createTurns(options: {
  connection: Pick<DatabaseConnection, 'db' | 'execute'>;
  ratePerSecond: number;
  mayFeed: () => boolean;
  now: () => number;
  log: Logger;
}): Turns {
  const { connection, ratePerSecond, mayFeed, now, log } = options;
  const cap = createRateCap({ perSecond: ratePerSecond, now });
  const pause = createFailurePause(now);
  const slices = createSlices();
  let gaveUpAtMs = now();

  async function take(row: RunningRow): Promise<number> {
    if (!pause.isOver()) return 0;
    try {
      return await turn(row);
    } catch (error) {
      log.warn({ replay: row.id, err: describeError(error) }, 'a replay could not go on');
      pause.failed();
      return 0;
    }
  }

  async function turn(row: RunningRow): Promise<number> {
    if (row.outstanding > 0) await giveUpInTime(row.id);
    const room = Math.min(OUTSTANDING, Math.max(1, ratePerSecond)) - row.outstanding;
    const limit = Math.min(BATCH, cap.available(), room);
    const replay = { ...row, selection: parseJson(row.selection) as Selection };
    const copies = limit > 0 ? await feed(replay, limit) : 0;
    cap.take(copies);
    if (copies === 0 && row.outstanding === 0 && (await finishReplay(connection, row.id))) {
      log.info({ replay: row.id }, 'replay finished');
    }
    return copies;
  }

  async function giveUpInTime(replayId: string): Promise<void> {
    if (now() - gaveUpAtMs < GIVE_UP_MS) return;
    gaveUpAtMs = now();
    await giveUpOnParked(connection, replayId);
  }

  async function feed(replay: RunningReplay, limit: number): Promise<number> {
    let { cursor } = replay;
    for (let slice = 0; slice < EMPTY_SLICES && BigInt(cursor) < BigInt(replay.upTo); slice++) {
      if (!mayFeed()) return 0;
      const fed = await feedSlice({ ...replay, cursor }, limit);
      if (fed === undefined) return 0;
      if (fed.copies > 0) return fed.copies;
      ({ cursor } = fed);
    }
    return 0;
  }

  /** If the statement times out, a later turn tries half the slice. If the smallest one does, the replay is paused. */
  async function feedSlice(replay: RunningReplay, limit: number) {
    try {
      const fed = await feedReplay(connection, replay, { end: slices.end(replay), limit });
      // Not after every turn: a turn in which the rate allowed no copy has run no statement.
      pause.succeeded();
      slices.grow();
      return fed;
    } catch (error) {
      if (!isTimeout(error) || slices.halve()) throw error;
      await pauseReplay(connection.db, replay.id, TOO_SLOW);
      const found = { replay: replay.id, err: describeError(error) };
      log.warn(found, 'replay paused: its events take too long to find');
      return undefined;
    }
  }

  return { take };
}
