// Sees to it that replays go on: moves their events into the outbox, bit by bit, while this replica leads the relay.
// Promises each replay's rate, a bounded number of its copies in the outbox, and turns among several, whatever becomes
// of one of them. That no copy is put there twice is the statement's promise (feed.ts), not the lease's.

import { sql } from 'kysely';
import { describeError } from '../../errors.ts';
import { parseJson } from '../../json.ts';
import { type DatabaseConnection, isTimeout } from '../../ledger/index.ts';
import type { Logger } from '../../log.ts';
import { feedReplay, finishReplay, giveUpOnParked, type RunningReplay, SLICE } from './feed.ts';
import { createRateCap, type RateCap } from './rate-cap.ts';
import { pauseReplay } from './replays.ts';
import type { Selection } from './selection.ts';

export type Feeder = {
  /** One turn of every replay that runs. Returns how many copies are new in the outbox. */
  readonly runOnce: () => Promise<number>;
  /** Takes turns for ever, until `stop`. */
  readonly start: () => void;
  /** Ends after the statement that is under way. Safe to call twice or before start. */
  readonly stop: () => Promise<void>;
};

/** Events in one statement: their jobs' rows are locked as long as it runs. */
const BATCH = 100;
/** A replay's copies that are in the outbox at one time; at a slow rate no more than go in a second. */
const OUTSTANDING = 500;
/** Slices without a single event that one turn looks through. */
const EMPTY_SLICES = 10;
/** From turn to turn while replays run: what may go in a second goes in twenty parts. */
const TURN_MS = 50;
/** As long as there are none. */
const IDLE_MS = 500;
const ERROR_PAUSE_MS = 1_000;
/** A replay that fails again and again waits twice as long each time, so that twenty of them do not flood the log. */
const FAILED_PAUSE_MAX_MS = 60_000;
/** Sequences in one look, at first and at most. */
const LOOK = Number(SLICE);
/** A look at so few that takes too long will not get better by itself. */
const LOOK_MIN = 10;
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
  /** Sequences in one look. Less after one that took too long. */
  look: number;
  /** Turns that failed since something was fed, and until when there is none. */
  failures: number;
  restsUntilMs: number;
};

const TOO_SLOW = 'the database takes too long to find its events';

/** Ids have one look-up each, however far they are apart. */
function lookEnd({ selection, cursor, upTo }: RunningReplay, look: number): string {
  const end = BigInt(cursor) + BigInt(look);
  return 'sequences' in selection || end > BigInt(upTo) ? upTo : String(end);
}

export function createFeeder(options: {
  connection: Pick<DatabaseConnection, 'db' | 'execute'>;
  /** Whether this replica leads the relay. */
  isHeld: () => boolean;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
  /** Called when there are new copies in the outbox. */
  onFed: () => void;
}): Feeder {
  const { connection, isHeld, now, log, onFed } = options;
  const progress = new Map<string, Progress>();
  let running: Promise<void> | undefined;
  let stopping = false;
  let wake: (() => void) | undefined;

  async function runOnce(): Promise<number> {
    const replays = isHeld() ? await findRunning() : [];
    for (const id of progress.keys()) if (!replays.some((replay) => replay.id === id)) progress.delete(id);
    let copies = 0;
    for (const replay of replays) {
      if (stopping || !isHeld()) break;
      if (now() < progressOf(replay).restsUntilMs) continue;
      copies += await turnOrRest(replay);
    }
    if (copies > 0) onFed();
    return copies;
  }

  /** By index replays_state; how many copies each has out, by index outbox_replay. */
  async function findRunning(): Promise<Row[]> {
    const { rows } = await sql<Row>`
      select id, selection, sources, cursor_sequence as cursor, up_to_sequence as "upTo",
             rate_per_second as "ratePerSecond",
             (select count(*) from outbox o where o.replay_id = r.id)::int as outstanding
      from replays r where state in ('running', 'paused') and state = 'running'
      order by created_at, id`.execute(connection.db);
    return rows;
  }

  /** What one replay fails at is no reason for the others to wait. */
  async function turnOrRest(row: Row): Promise<number> {
    const state = progressOf(row);
    try {
      return await turn(row, state);
    } catch (error) {
      log.warn({ replay: row.id, err: describeError(error) }, 'a replay could not go on');
      state.restsUntilMs = now() + Math.min(FAILED_PAUSE_MAX_MS, ERROR_PAUSE_MS * 2 ** state.failures);
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
      if (stopping || !isHeld()) return 0;
      const fed = await look({ ...replay, cursor }, limit, state);
      if (fed === undefined) return 0;
      if (fed.copies > 0) return fed.copies;
      ({ cursor } = fed);
    }
    return 0;
  }

  /** One step of the feed. One that the server ended for its length is tried again with half of it, in a later turn. */
  async function look(replay: RunningReplay, limit: number, state: Progress) {
    try {
      const fed = await feedReplay(connection, { ...replay, upTo: lookEnd(replay, state.look) }, limit);
      // Here and not after any turn: in one that the rate left nothing to do, nothing was tried.
      state.failures = 0;
      // Slowly, so that a filter which stays expensive does not waste every other turn.
      state.look = Math.min(LOOK, state.look + Math.ceil(state.look / 8));
      return fed;
    } catch (error) {
      if (!isTimeout(error)) throw error;
      if (state.look > LOOK_MIN) {
        state.look = Math.max(LOOK_MIN, Math.floor(state.look / 2));
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
      look: LOOK,
      failures: 0,
      restsUntilMs: 0,
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
      if (!stopping) await rest(pauseMs);
    }
  }

  function rest(ms: number): Promise<void> {
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
