// Feeds the outbox with the copies of running replays while this replica leads the relay: every replay gets its turn, also
// when one of them fails (turns.ts). That no copy is made twice does not depend on the lease: the statement in feed.queries.ts
// guarantees it.

import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log/log.ts';
import type { DatabaseConnection } from '../../../ledger/index.ts';
import { findRunning, type RunningRow } from './running-replays.queries.ts';
import { createTurns, type Turns } from './turns.ts';

export type Feeder = {
  /** One turn of every running replay. Returns how many copies were put into the outbox. */
  readonly runOnce: () => Promise<number>;
  /** Repeats `runOnce` until `stop`. */
  readonly start: () => void;
  /** Ends after the statement that is under way. Safe to call twice or before start. */
  readonly stop: () => Promise<void>;
};

/** From turn to turn while replays run: a second's copies go in twenty parts. */
const TURN_MS = 50;
/** From turn to turn while no replay runs. */
const IDLE_MS = 500;
const ERROR_PAUSE_MS = 1_000;

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
  const turns = new Map<string, Turns>(); // by replay
  const ending = new AbortController();
  let running: Promise<void> | undefined;

  const mayFeed = () => !ending.signal.aborted && isLeading();

  async function runOnce(): Promise<number> {
    const replays = isLeading() ? await findRunning(connection.db) : [];
    for (const id of turns.keys()) if (!replays.some((replay) => replay.id === id)) turns.delete(id);
    let copies = 0;
    for (const replay of replays) {
      if (!mayFeed()) break;
      copies += await turnsOf(replay).take(replay);
    }
    if (copies > 0) onFed();
    return copies;
  }

  function turnsOf({ id, ratePerSecond }: RunningRow): Turns {
    const known = turns.get(id);
    if (known !== undefined) return known;
    const fresh = createTurns({ connection, ratePerSecond, mayFeed, now, log });
    turns.set(id, fresh);
    return fresh;
  }

  async function run(): Promise<void> {
    while (!ending.signal.aborted) await pause(await runSafely());
  }

  /** Returns the milliseconds until the next turn. */
  async function runSafely(): Promise<number> {
    try {
      await runOnce();
      return turns.size > 0 ? TURN_MS : IDLE_MS;
    } catch (error) {
      log.warn({ err: describeError(error) }, 'replays could not go on');
      return ERROR_PAUSE_MS;
    }
  }

  /** Ends early, and does not reject, when the feeder is stopped. */
  async function pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: ending.signal }).catch(() => {});
  }

  return {
    runOnce,
    start: () => {
      if (!ending.signal.aborted) running ??= run();
    },
    stop: async () => {
      ending.abort();
      await running;
    },
  };
}
