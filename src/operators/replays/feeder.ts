// Feeds the outbox with the copies of running replays, some at a time, while this replica leads the relay. Keeps each
// replay's rate, bounds its copies in the outbox, and gives every replay its turn, also when one of them fails. That no copy
// is made twice does not depend on the lease: the statement in feed.ts guarantees it.

import { sql } from 'kysely';
import { describeError } from '../../errors.ts';
import { parseJson } from '../../json.ts';
import { type DatabaseConnection, isTimeout } from '../../ledger/index.ts';
import type { Logger } from '../../log.ts';
import { feedReplay, finishReplay, giveUpOnParked } from './feed.ts';
import type { RunningReplay } from './next-events.ts';
import { createRateCap, type RateCap } from './rate-cap.ts';
import { pauseReplay } from './replays.ts';
import type { Selection } from './selection.ts';

export type Feeder = {
  /** One turn of every running replay. Returns how many copies were put into the outbox. */
  readonly runOnce: () => Promise<number>;
  /** Repeats `runOnce` until `stop`. */
  readonly start: () => void;
  /** Ends after the statement that is under way. Safe to call twice or before start. */
  readonly stop: () => Promise<void>;
};

/** Events in one statement: it locks the rows of their jobs while it runs. */
const BATCH = 100;
/** Copies of one replay in the outbox at one time; at a slow rate as many as are published in a second. */
const OUTSTANDING = 500;
/** Slices without a matching event that one turn scans. */
const EMPTY_SLICES = 10;
/** From turn to turn while replays run: a second's copies go in twenty parts. */
const TURN_MS = 50;
/** From turn to turn while no replay runs. */
const IDLE_MS = 500;
const ERROR_PAUSE_MS = 1_000;
/** The pause of a failing replay doubles up to this, so that twenty of them do not flood the log. */
const FAILED_PAUSE_MAX_MS = 60_000;
/** Sequences that one statement scans, at first and at most: a few milliseconds, also if none of them matches. */
const SLICE_MAX = 20_000;
/** If so small a slice takes too long, a smaller one would not help: the replay is paused. */
const SLICE_MIN = 10;
/** How often a replay's copies that wait behind a parked event are looked for. */
const GIVE_UP_MS = 1_000;

type Row = {
  id: string;
  selection: string;
  sources: string[] | null;
  cursor: string;
  upTo: string;
  ratePerSecond: number;
  outstanding: number;
};

type Progress = {
  readonly cap: RateCap;
  gaveUpAtMs: number;
  /** Sequences in the next slice: fewer after one that took too long. */
  sliceSize: number;
  /** Failed turns since the last successful slice, and the end of the pause after them. */
  failures: number;
  pausedUntilMs: number;
};

const TOO_SLOW = 'the database takes too long to find its events';

/** Without slices for a selection by ids: each id is one look-up, however far they are apart. */
function sliceEnd({ selection, cursor, upTo }: RunningReplay, size: number): string {
  const end = BigInt(cursor) + BigInt(size);
  return 'sequences' in selection || end > BigInt(upTo) ? upTo : String(end);
}

export function createFeeder(options: {
  connection: Pick<DatabaseConnection, 'db' | 'execute'>;
  /** Whether this replica leads the relay. */
  isLeading: () => boolean;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
  /** Called when there are new copies in the outbox. */
  onFed: () => void;
}): Feeder {
  const { connection, isLeading, now, log, onFed } = options;
  const progress = new Map<string, Progress>();
  let running: Promise<void> | undefined;
  let stopping = false;
  let wake: (() => void) | undefined;

  async function runOnce(): Promise<number> {
    const replays = isLeading() ? await findRunning() : [];
    for (const id of progress.keys()) if (!replays.some((replay) => replay.id === id)) progress.delete(id);
    let copies = 0;
    for (const replay of replays) {
      if (stopping || !isLeading()) break;
      if (now() < progressOf(replay).pausedUntilMs) continue;
      copies += await turnOrPause(replay);
    }
    if (copies > 0) onFed();
    return copies;
  }

  /** By index replays_state, whose condition is repeated for the planner; counts the copies of each by index outbox_replay. */
  async function findRunning(): Promise<Row[]> {
    const { rows } = await sql<Row>`
      select id, selection, sources, cursor_sequence as cursor, up_to_sequence as "upTo",
             rate_per_second as "ratePerSecond",
             (select count(*) from outbox o where o.replay_id = r.id)::int as outstanding
      from replays r where state in ('running', 'paused') and state = 'running'
      order by created_at, id`.execute(connection.db);
    return rows;
  }

  /** If the turn of one replay fails, the others still get theirs. */
  async function turnOrPause(row: Row): Promise<number> {
    const state = progressOf(row);
    try {
      return await turn(row, state);
    } catch (error) {
      log.warn({ replay: row.id, err: describeError(error) }, 'a replay could not go on');
      state.pausedUntilMs = now() + Math.min(FAILED_PAUSE_MAX_MS, ERROR_PAUSE_MS * 2 ** state.failures);
      state.failures += 1;
      return 0;
    }
  }

  async function turn(row: Row, state: Progress): Promise<number> {
    const { cap } = state;
    if (row.outstanding > 0 && now() - state.gaveUpAtMs >= GIVE_UP_MS) {
      state.gaveUpAtMs = now();
      await giveUpOnParked(connection, row.id);
    }
    const room = Math.min(OUTSTANDING, Math.max(1, row.ratePerSecond)) - row.outstanding;
    const limit = Math.min(BATCH, cap.available(), room);
    const replay = { ...row, selection: parseJson(row.selection) as Selection };
    const copies = limit > 0 ? await feed(replay, limit, state) : 0;
    cap.take(copies);
    if (copies === 0 && row.outstanding === 0 && (await finishReplay(connection, row.id))) {
      log.info({ replay: row.id }, 'replay finished');
    }
    return copies;
  }

  async function feed(replay: RunningReplay, limit: number, state: Progress): Promise<number> {
    let { cursor } = replay;
    for (let slice = 0; slice < EMPTY_SLICES && BigInt(cursor) < BigInt(replay.upTo); slice++) {
      if (stopping || !isLeading()) return 0;
      const fed = await feedSlice({ ...replay, cursor }, limit, state);
      if (fed === undefined) return 0;
      if (fed.copies > 0) return fed.copies;
      ({ cursor } = fed);
    }
    return 0;
  }

  /** If the statement times out, a later turn tries half the slice. If the smallest one does, the replay is paused. */
  async function feedSlice(replay: RunningReplay, limit: number, state: Progress) {
    try {
      const fed = await feedReplay(connection, replay, { end: sliceEnd(replay, state.sliceSize), limit });
      // Not after every turn: a turn in which the rate allowed no copy has run no statement.
      state.failures = 0;
      // Grows slowly, so that a filter that stays expensive does not time out in every other turn.
      state.sliceSize = Math.min(SLICE_MAX, state.sliceSize + Math.ceil(state.sliceSize / 8));
      return fed;
    } catch (error) {
      if (!isTimeout(error)) throw error;
      if (state.sliceSize > SLICE_MIN) {
        state.sliceSize = Math.max(SLICE_MIN, Math.floor(state.sliceSize / 2));
        throw error;
      }
      await pauseReplay(connection.db, replay.id, TOO_SLOW);
      log.warn(
        { replay: replay.id, err: describeError(error) },
        'replay paused: its events take too long to find',
      );
      return undefined;
    }
  }

  function progressOf({ id, ratePerSecond }: Row): Progress {
    const known = progress.get(id);
    if (known !== undefined) return known;
    const fresh: Progress = {
      cap: createRateCap({ perSecond: ratePerSecond, now }),
      gaveUpAtMs: now(),
      sliceSize: SLICE_MAX,
      failures: 0,
      pausedUntilMs: 0,
    };
    progress.set(id, fresh);
    return fresh;
  }

  async function run(): Promise<void> {
    while (!stopping) {
      let pauseMs = IDLE_MS;
      try {
        await runOnce();
        if (progress.size > 0) pauseMs = TURN_MS;
      } catch (error) {
        log.warn({ err: describeError(error) }, 'replays could not go on');
        pauseMs = ERROR_PAUSE_MS;
      }
      if (!stopping) await pause(pauseMs);
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  return {
    runOnce,
    start: () => {
      if (!stopping) running ??= run();
    },
    stop: async () => {
      stopping = true;
      wake?.();
      await running;
    },
  };
}
