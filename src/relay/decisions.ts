// What operators decide about events that wait in the leader's memory, and about replays whose copies wait there. Each such
// decision changes `outbox_version` (R21, R40). The leader learns of it within a second (docs/operators.md): each load reads the
// version, and while a round takes long, it is read beside it. While neither has a fresh answer, nothing is published from memory
// (R25).

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../base/errors.ts';

/** That the version is asked for, and when. */
export type Question = { readonly changes: number; readonly atMs: number };

export type Decisions = {
  /** To be called before the version is read. */
  readonly ask: () => Question;
  /**
   * The version that was read. What waits in memory is forgotten if it is a new one.
   * @returns false if a newer one was read meanwhile: what was read with this one may be decided about
   */
  readonly note: (version: string, question: Question) => boolean;
  /** Whether the version was read just now, so that what is in memory may be published. True while nobody watches. */
  readonly areKnown: () => boolean;
  readonly onNew: (listener: () => void) => void;
  /** Until `stop`, reads the version when no load has read it for some time. */
  readonly watch: () => void;
  readonly stop: () => void;
};

/** After so long without a load, the version is read beside the round. More than the usual time between loads. */
const LOOK_MS = 300;
const LOOK_PAUSE_MS = 50;
/** An answer is fresh for so long, counted from its question: less than the second that is promised. */
const KNOWN_MS = 750;
/** If no answer was fresh for so long, old ones must do. */
const SLOW_MS = 5_000;
const ERROR_PAUSE_MS = 250;

export function createDecisions(options: {
  /** Beside the rounds: it does not wait for their statements. */
  readVersion: () => Promise<string>;
  isLeading: () => boolean;
  /** Monotonic milliseconds. */
  now: () => number;
  /** The version was read beside a round. */
  onLook: () => void;
  log: Logger;
}): Decisions {
  const { readVersion, isLeading, now, onLook, log } = options;
  const ended = new AbortController();
  let isWatched = false;
  let version: string | undefined;
  let changes = 0;
  let askedAtMs = Number.NEGATIVE_INFINITY; // the last question that has an answer
  let answeredAtMs = Number.NEGATIVE_INFINITY;
  let freshAtMs = Number.NEGATIVE_INFINITY; // the last answer that was fresh when it came
  let onNew = doNothing;

  const ask = (): Question => ({ changes, atMs: now() });

  function note(found: string, question: Question): boolean {
    if (question.changes !== changes) return false;
    askedAtMs = Math.max(askedAtMs, question.atMs);
    answeredAtMs = now();
    if (answeredAtMs - question.atMs < KNOWN_MS) freshAtMs = answeredAtMs;
    if (found === version) return true;
    version = found;
    changes += 1;
    onNew();
    return true;
  }

  function areKnown(): boolean {
    const atMs = now();
    if (!isWatched || atMs - askedAtMs < KNOWN_MS) return true;
    return atMs - freshAtMs >= SLOW_MS && atMs - answeredAtMs < KNOWN_MS;
  }

  async function look(): Promise<void> {
    const question = ask();
    note(await readVersion(), question);
    onLook();
  }

  const pause = (ms: number) => sleep(ms, undefined, { ref: false, signal: ended.signal }).catch(doNothing);

  const dueInMs = () => (isLeading() ? askedAtMs + LOOK_MS - now() : LOOK_MS);

  async function run(): Promise<void> {
    while (!ended.signal.aborted) {
      try {
        if (dueInMs() <= 0) await look();
        await pause(Math.max(LOOK_PAUSE_MS, dueInMs()));
      } catch (error) {
        if (ended.signal.aborted) return;
        log.warn({ err: describeError(error) }, 'the relay could not read what operators have decided');
        await pause(ERROR_PAUSE_MS);
      }
    }
  }

  return {
    ask,
    note,
    areKnown,
    onNew: (listener) => {
      onNew = listener;
    },
    watch: () => {
      if (isWatched) return;
      isWatched = true;
      void run();
    },
    stop: () => ended.abort(),
  };
}

function doNothing(): void {}
