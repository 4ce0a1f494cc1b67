// Publishes the outbox while this replica leads. Guarantees: the first copies of a job's events go out in the order of their
// sequence (guarantee 5), each event gets at least one confirmed copy (guarantee 4), and an event that fails delays only its own
// job. No transaction is open while the relay waits for the broker.
//
//   the intake ──commit──▶ hand-off ──┐                              ┌──▶ results ──▶ outbox (settle)
//                                     ├─▶ arrivals ─▶ window ─▶ publisher
//   outbox (load) ────────────────────┘   of a lane for each job
//
// An entry goes to the broker as soon as it is the first of its lane. The relay works in rounds: write the results that came
// back, load what was not handed over. A round begins when it is worth its statements, or at the next poll. When an event
// itself fails, its lane is closed and its events are held: from then on the database decides when the job is due again.
//
// Replays' copies use the same window, and they wait for live entries, never the other way round.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import { eventId } from '../event/index.ts';
import { jobKey } from '../ledger/index.ts';
import { createArrivals, type Room } from './arrivals.ts';
import { retryDelayMs } from './backoff.ts';
import { createCopyWrites } from './copy-writes.ts';
import { createDecisions } from './decisions.ts';
import type { Attempt, Entry, Settlement } from './entry.ts';
import type { HandOff } from './hand-off.ts';
import { createInFlight } from './in-flight.ts';
import type { Lease } from './lease.ts';
import { nextStep } from './next-step.ts';
import type { Outbox } from './outbox.ts';
import type { Publication, Publisher } from './publisher.ts';
import { createResults, entriesOf, type Unwritten } from './results.ts';
import { createWindow, type Lane } from './window.ts';

export type RelayLimits = {
  readonly pollMs: number;
  readonly inFlight: number;
  readonly inFlightBytes: number;
  readonly maxAttempts: number;
};

/** What the relay has to do, for those who give it more. */
export type Backpressure = {
  /** It has much to publish already. False while it publishes nothing: then nobody need wait for it. */
  readonly isFull: () => boolean;
  /** Calls `listener` when it may have less. When it stops publishing, it does not: nobody waits for it long. */
  readonly onEase: (listener: () => void) => void;
};

export type Relay = {
  /** One round: writes the results that came back, loads entries, publishes. Returns how many entries it moved. */
  readonly runOnce: () => Promise<number>;
  /** Runs rounds until `stop`. */
  readonly start: () => void;
  /** A hint that there may be something to load. Polling finds it anyway. */
  readonly nudge: () => void;
  readonly inFlight: () => number;
  readonly backpressure: Backpressure;
  /**
   * Publishes nothing more, and waits for the results of what is in flight and writes them, for `graceMs` at most. The next
   * leader publishes again what has no written result by then. Safe to call twice or before start.
   */
  readonly stop: (graceMs: number) => Promise<void>;
};

/**
 * What may be in memory, as a multiple of what may be in flight. Of live entries there is room for those in flight, for those whose
 * results are not written yet, and for two large writes. Copies never use up that room.
 */
const ROOM = { live: { entries: 4, bytes: 2 }, copies: { entries: 0.5, bytes: 0.5 } } as const;
/** While there are no copies, this is the time between polls for them: each poll costs a statement. */
const COPIES_POLL_MS = 200;
/** Confirmed events wait no longer than this for the others of their write. */
const SPLIT_MS = 1_000;
const ERROR_PAUSE_MS = 1_000;
/** Between looks at what is unfinished, at the end. */
const FINISH_PAUSE_MS = 200;

export function createRelay(options: {
  outbox: Outbox;
  handOff: Omit<HandOff, 'write'>;
  lease: Pick<Lease, 'isLeading' | 'epoch'>;
  publisher: Pick<Publisher, 'isReady' | 'publish'>;
  routingPrefix: string;
  limits: RelayLimits;
  /** Monotonic milliseconds. */
  now: () => number;
  /** 0 ≤ random < 1, for jitter. */
  random: () => number;
  log: Logger;
  observe: (entry: Entry, publication: Publication) => void;
}): Relay {
  const { outbox, handOff, lease, publisher, routingPrefix, limits, now, random, log, observe } = options;
  const window = createWindow();
  const results = createResults();
  const copies = createCopyWrites({ outbox, window, log, onWritten: () => wake() });
  const decisions = createDecisions({
    readVersion: outbox.versionBeside,
    isLeading: lease.isLeading,
    now,
    onLook: goOn,
    log,
  });
  const inFlight = createInFlight({
    window,
    publisher,
    limits,
    routingPrefix,
    now,
    mayPublish: () => mayPublish() && decisions.areKnown(),
    onResult,
  });
  const arrivals = createArrivals({
    outbox,
    window,
    handOff,
    decisions,
    room: { live: roomOf(limits, ROOM.live), copies: roomOf(limits, ROOM.copies) },
    isOpen: mayPublish,
    isStopped: copies.isStopped,
    hold,
    onArrived: goOn,
    onForgotten: () => {
      results.split();
      inFlight.onForgotten();
    },
    onLoaded: (found) => {
      if (found.copies) inFlight.onLoaded();
    },
  });
  const answered: string[] = []; // jobs whose lanes may be reopened
  let pollAtMs = 0;
  let pollCopiesAtMs = 0;
  let splitAtMs = now() + SPLIT_MS;
  let isNudged = false;
  let stopping = false;
  let epoch: string | undefined; // of the lease, when what is in memory was loaded
  let running: Promise<void> | undefined;
  let wake = doNothing;
  let onEase = doNothing;

  function mayPublish(): boolean {
    return !stopping && lease.isLeading() && lease.epoch() === epoch && publisher.isReady();
  }

  const isDue = () =>
    isNudged ||
    results.isDue(inFlight.count(), arrivals.takes() ? handOff.writing() : 0) ||
    copies.isDue() ||
    arrivals.isDue();

  /** Something came from memory, or a result came back. */
  function goOn(): void {
    inFlight.publishReady();
    if (isDue()) wake();
    onEase();
  }

  handOff.onFailed(goOn);

  /** An event of its job is held, so this one is, too. It is not published. */
  function hold(entry: Entry): void {
    if (entry.batch === undefined) return; // it has a row of its own, and is loaded when it is due
    window.keep(entry);
    delay({ entry, next: 'hold', retryInMs: 0 });
  }

  /** Until this is written, all later events of the job are held, too. */
  function delay(settlement: Settlement): void {
    results.add(settlement);
    for (const entry of window.close(keyOf(settlement))) hold(entry);
  }

  function onResult(
    lane: Lane,
    publication: Publication,
    { alone, isStale }: { alone: boolean; isStale: boolean },
  ): void {
    const entry = lane.entries[0] as Entry;
    observe(entry, publication);
    const next = nextStep(entry, publication, { alone, maxAttempts: limits.maxAttempts });
    const retryInMs = next === 'retry' ? retryDelayMs(entry.attempts + 1, random()) : 0;
    const result: Attempt = { entry, publication, next, retryInMs };
    if (next === 'keep') keep(lane, result, isStale);
    else if (entry.replay === undefined) applyResult(lane, result);
    else copies.add(lane, result);
    if (next === 'park') {
      log.error({ event: eventId(entry.source, entry), attempts: entry.attempts + 1 }, 'event parked');
    }
    goOn();
  }

  /**
   * If an operator has decided about something while it was on its way, the leader knows that already, and will not look again:
   * so it is read from the outbox again, and all that waits there with it. Otherwise it stays: the one message that makes the
   * broker close the channel is found among those that were on their way with it.
   */
  function keep(lane: Lane, result: Attempt, isStale: boolean): void {
    if (result.entry.replay === undefined) results.add(result);
    inFlight.publishAgain(lane, result.publication);
    if (isStale) arrivals.forget();
  }

  /** Published, or no queue received it: the job's next event may follow. Otherwise all of the job's events wait from now on. */
  function applyResult(lane: Lane, result: Attempt): void {
    window.advance(lane);
    if (isDelay(result)) delay(result);
    else results.add(result);
  }

  async function runOnce(): Promise<number> {
    isNudged = false;
    pollAtMs = now() + limits.pollMs;
    for (const key of answered.splice(0)) arrivals.reopen(key);
    const settled = (await settle()) + copies.write();
    if (!lease.isLeading()) {
      arrivals.forget();
      return settled;
    }
    if (lease.epoch() !== epoch) arrivals.forget();
    epoch = lease.epoch();
    const moved = settled + (await load()) + inFlight.publishReady();
    onEase();
    return moved;
  }

  async function load(): Promise<number> {
    // While a copy's failure is being written, the database would still give us the copies that must wait behind it.
    const wantsCopies = now() >= pollCopiesAtMs && !copies.isWriting();
    const loaded = await arrivals.load({ copies: wantsCopies });
    if (wantsCopies && window.size('copies').entries === 0) {
      pollCopiesAtMs = now() + Math.min(limits.pollMs, COPIES_POLL_MS);
    }
    return loaded;
  }

  /** Writes the results of live entries. They stay in memory until that is committed, so that no load finds them again. */
  async function settle(): Promise<number> {
    if (now() >= splitAtMs || stopping || !lease.isLeading()) {
      splitAtMs = now() + SPLIT_MS;
      results.split();
    }
    const unwritten = results.take();
    if (unwritten === undefined) return 0;
    try {
      await outbox.settle(unwritten);
    } catch (error) {
      results.putBack(unwritten);
      throw error;
    }
    const entries = entriesOf(unwritten);
    for (const entry of entries) window.forget(entry);
    reopenLanes(unwritten);
    onEase();
    return entries.length;
  }

  /**
   * From now on the ledger itself holds new events of these jobs. Writes that were committed before have their answers once
   * those have that are in flight now, and what they hand over still finds its lane closed. The next round reopens it, while no
   * load runs that keeps such an event back.
   */
  function reopenLanes({ single, held }: Unwritten): void {
    const keys = [...single, ...held].filter(isDelay).map(keyOf);
    if (keys.length > 0) void handOff.answered().then(() => answered.push(...keys));
  }

  /** Resolves at the next call of `wake`. */
  function woken(): Promise<void> {
    return new Promise((resolve) => {
      wake = resolve;
    });
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const call = woken();
      let pauseMs = 0;
      try {
        const isLoadDue = now() >= pollAtMs || isNudged || arrivals.isDue();
        const moved = isLoadDue ? await runOnce() : copies.write() + (await settle());
        pauseMs = moved > 0 && isDue() ? 0 : Math.max(1, pollAtMs - now());
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not reach its outbox');
        pauseMs = ERROR_PAUSE_MS;
      }
      if (pauseMs > 0) await Promise.race([call, pause(pauseMs)]);
    }
  }

  const isUnfinished = () => inFlight.count() + results.size() > 0 || copies.isUnwritten();

  async function finish(untilMs: number): Promise<void> {
    while (isUnfinished() && now() < untilMs) {
      const call = woken();
      try {
        copies.write();
        await settle();
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not write its last results yet');
      }
      if (isUnfinished()) await Promise.race([call, pause(FINISH_PAUSE_MS)]);
    }
  }

  return {
    runOnce,
    start: () => {
      if (running !== undefined) return;
      decisions.watch();
      running = run();
    },
    nudge: () => {
      isNudged = true;
      wake();
    },
    inFlight: inFlight.count,
    backpressure: {
      isFull: arrivals.isFull,
      onEase: (listener) => {
        onEase = listener;
      },
    },
    stop: async (graceMs) => {
      stopping = true;
      decisions.stop();
      wake();
      await running;
      await finish(now() + graceMs);
    },
  };
}

function roomOf({ inFlight, inFlightBytes }: RelayLimits, share: Room): Room {
  return { entries: Math.ceil(inFlight * share.entries), bytes: inFlightBytes * share.bytes };
}

const isDelay = ({ next }: Settlement) => next === 'retry' || next === 'park' || next === 'hold';

const keyOf = ({ entry }: Settlement): string => jobKey(entry.source, entry.jobId);

function doNothing(): void {}

/** Unlike a plain timer, it does not keep the process alive. */
const pause = (ms: number) => sleep(ms, undefined, { ref: false });
