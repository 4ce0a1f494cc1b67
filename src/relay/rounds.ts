// When the relay reads and writes its outbox. A whole round writes results and loads; it comes at each poll, and when there may be
// something to load. In between, results alone are written, when that is worth its statements.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../base/errors.ts';

export type Rounds = {
  /** A whole round. Returns how many entries it moved. */
  readonly runOnce: () => Promise<number>;
  /** Runs rounds until `stop`. */
  readonly start: () => void;
  /** There may be something to load: the next round is a whole one, and comes now. */
  readonly nudge: () => void;
  /** The pause before the next round ends now. */
  readonly wake: () => void;
  readonly wakeIfDue: () => void;
  readonly isStopping: () => boolean;
  /** Begins no more rounds. Waits until all results are here and written, for `graceMs` at most. */
  readonly stop: (graceMs: number) => Promise<void>;
};

const ERROR_PAUSE_MS = 1_000;
/** Between looks at what is unfinished, at the end. */
const FINISH_PAUSE_MS = 200;

export function createRounds(options: {
  pollMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  log: Logger;
  /** Writes results; those of copies it only begins to write. Returns of how many entries. */
  write: () => Promise<number>;
  /** Writes results, and loads. */
  writeAndLoad: () => Promise<number>;
  isWriteDue: () => boolean;
  isLoadDue: () => boolean;
  /** Whether there are results that are not written yet, or will be. */
  isUnfinished: () => boolean;
}): Rounds {
  const { pollMs, now, log, write, writeAndLoad, isWriteDue, isLoadDue, isUnfinished } = options;
  let pollAtMs = 0;
  let isNudged = false;
  let stopping = false;
  let running: Promise<void> | undefined;
  let wake = doNothing;

  const isDue = () => isNudged || isWriteDue() || isLoadDue();

  /** Resolves at the next call of `wake`. */
  function woken(): Promise<void> {
    return new Promise((resolve) => {
      wake = resolve;
    });
  }

  function runOnce(): Promise<number> {
    isNudged = false;
    pollAtMs = now() + pollMs;
    return writeAndLoad();
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const call = woken();
      let pauseMs = 0;
      try {
        const moved = now() >= pollAtMs || isNudged || isLoadDue() ? await runOnce() : await write();
        pauseMs = moved > 0 && isDue() ? 0 : Math.max(1, pollAtMs - now());
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not reach its outbox');
        pauseMs = ERROR_PAUSE_MS;
      }
      if (pauseMs > 0) await Promise.race([call, pause(pauseMs)]);
    }
  }

  async function finish(untilMs: number): Promise<void> {
    while (isUnfinished() && now() < untilMs) {
      const call = woken();
      try {
        await write();
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not write its last results yet');
      }
      if (isUnfinished()) await Promise.race([call, pause(FINISH_PAUSE_MS)]);
    }
  }

  return {
    runOnce,
    start: () => {
      running ??= run();
    },
    nudge: () => {
      isNudged = true;
      wake();
    },
    wake: () => wake(),
    wakeIfDue: () => {
      if (isDue()) wake();
    },
    isStopping: () => stopping,
    stop: async (graceMs) => {
      stopping = true;
      wake();
      await running;
      await finish(now() + graceMs);
    },
  };
}

function doNothing(): void {}

/** Unlike a plain timer, it does not keep the process alive. */
const pause = (ms: number) => sleep(ms, undefined, { ref: false });
