// Sees to it that replays go on: moves their events into the outbox, bit by bit, while this replica leads the relay.
// Promises each replay's rate, a bounded number of its copies in the outbox, and turns among several. That no copy is
// put there twice is the statement's promise (feed.ts), not the lease's.

import { sql } from 'kysely';
import { describeError } from '../errors.ts';
import type { DatabaseConnection } from '../ledger/database.ts';
import type { Logger } from '../log.ts';
import { feedReplay, finishReplay, giveUpOnParked, type RunningReplay } from './feed.ts';
import { createRateCap, type RateCap } from './rate-cap.ts';
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

type Progress = { readonly cap: RateCap; gaveUpAtMs: number };

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
      copies += await turn(replay);
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

  async function turn(row: Row): Promise<number> {
    const { cap, gaveUpAtMs } = progressOf(row);
    if (row.outstanding > 0 && now() - gaveUpAtMs >= GIVE_UP_MS) {
      progressOf(row).gaveUpAtMs = now();
      await giveUpOnParked(connection, row.id);
    }
    const room = Math.min(OUTSTANDING, Math.max(1, row.ratePerSecond)) - row.outstanding;
    const limit = Math.min(BATCH, cap.available(), room);
    const replay = { ...row, selection: JSON.parse(row.selection) as Selection };
    const copies = limit > 0 ? await feed(replay, limit) : 0;
    cap.take(copies);
    if (copies === 0 && row.outstanding === 0 && (await finishReplay(connection, row.id))) {
      log.info({ replay: row.id }, 'replay finished');
    }
    return copies;
  }

  async function feed(replay: RunningReplay, limit: number): Promise<number> {
    let { cursor } = replay;
    for (let slice = 0; slice < EMPTY_SLICES && BigInt(cursor) < BigInt(replay.upTo); slice++) {
      if (stopping || !isHeld()) return 0;
      const fed = await feedReplay(connection, { ...replay, cursor }, limit);
      if (fed === undefined) return 0;
      if (fed.copies > 0) return fed.copies;
      ({ cursor } = fed);
    }
    return 0;
  }

  function progressOf({ id, ratePerSecond }: Row): Progress {
    const known = progress.get(id);
    if (known !== undefined) return known;
    const fresh = { cap: createRateCap({ perSecond: ratePerSecond, now }), gaveUpAtMs: now() };
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
