// Empties the outbox into the broker while this replica holds the lease. Promises: first copies of a job's
// events in the order of their sequence (guarantee 5), at least one confirmed copy of each (guarantee 4), and
// that one event which fails keeps back its own job alone. No transaction is open while the broker is awaited.
//
// In memory stands a window of the outbox, one lane a job (window.ts). A failure that is the event's own takes its
// whole lane out of memory: the database then says when the job is due again.
//
// Replays' copies go the same way and wait for live entries, never the other way round: they are loaded after
// these and into a share of the window, and what became of them is written beside the rounds and not in them.

import type { Logger } from 'pino';
import type { Publication, Publisher } from './publisher.ts';
import { describeError } from '../errors.ts';
import { eventId } from '../ledger/index.ts';
import { retryDelayMs } from './backoff.ts';
import { toMessage } from './cloud-event.ts';
import type { Entry, OutboxEntries, Settlement } from './outbox.ts';
import { judge } from './next-step.ts';
import type { Lease } from './lease.ts';
import { createWindow, type Lane } from './window.ts';

export type RelayLimits = {
  readonly pollMs: number;
  /** From the begin of a round to that of the next, as long as there is nothing that a round would be late for. */
  readonly paceMs: number;
  readonly inFlight: number;
  readonly inFlightBytes: number;
  readonly maxAttempts: number;
};

export type Relay = {
  /** One round: settles what came back, loads what fits, publishes what may go. Returns how much was moved. */
  readonly runOnce: () => Promise<number>;
  /** Runs rounds for ever, until `stop`. */
  readonly start: () => void;
  /** A hint that there may be something to do. Polling finds it anyway. */
  readonly nudge: () => void;
  readonly inFlight: () => number;
  /**
   * Publishes nothing more, waits for what is in flight and settles it, for `graceMs` at most: what is not
   * settled by then is published again by the next leader. Safe to call twice or before start.
   */
  readonly stop: (graceMs: number) => Promise<void>;
};

/** Loaded ahead of what is in flight, so that confirms find the next entries waiting. */
const WINDOW_FACTOR = 2;
/** Of what may be in flight: copies that are known at one time, so that they never fill what live events need. */
const COPIES_SHARE = 0.5;
/**
 * What waits in memory is read anew so often, however long the broker makes it wait: by then an operator may have parked
 * an event, or discarded it. It costs a load.
 */
const READ_ANEW_MS = 1_000;
/** As long as there are none, copies are looked for no more often: it costs a statement. */
const COPIES_POLL_MS = 200;
const ERROR_PAUSE_MS = 1_000;
const BROKER_PAUSE_MS = 200;

export function createRelay(options: {
  entries: OutboxEntries;
  lease: Pick<Lease, 'isHeld'>;
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
  const { entries, lease, publisher, routingPrefix, limits, now, random, log, observe } = options;
  const window = createWindow();
  const suspects = new Set<string>(); // in flight when the broker closed the channel over some message
  const stoppedReplays = new Set<string>(); // about to be paused in the database
  let settlements: Settlement[] = [];
  let copySettlements: Settlement[] = [];
  let settlingCopies: Promise<void> | undefined;
  let lookForCopiesAtMs = 0;
  let readAnewAtMs = now() + READ_ANEW_MS;
  let inFlight = 0;
  let inFlightBytes = 0;
  let pausedUntilMs = 0;
  let exhausted = false; // the last load found nothing more
  let stopping = false;
  let running: Promise<void> | undefined;
  let wake = nobodyWaits;

  async function runOnce(): Promise<number> {
    const settled = await settle();
    if (!lease.isHeld()) {
      suspects.clear();
      window.forgetIdle();
      return settled + settleCopies();
    }
    readAnew();
    const loaded = await load();
    // Not while a failure is being written: copies behind the failed one would be found free to go.
    const copies = settlingCopies === undefined ? await loadCopies() : 0;
    return settled + loaded + copies + settleCopies() + pump();
  }

  function readAnew(): void {
    if (now() < readAnewAtMs) return;
    readAnewAtMs = now() + READ_ANEW_MS;
    window.forgetIdle();
  }

  async function load(): Promise<number> {
    const known = window.size('live');
    const limit = limits.inFlight * WINDOW_FACTOR - known.entries;
    const bytes = limits.inFlightBytes * WINDOW_FACTOR - known.bytes;
    if (stopping || !publisher.isReady() || limit <= 0 || bytes <= 0) return 0;
    const found = await entries.load({ limit, bytes, except: window.positions() });
    for (const entry of found) window.admit(entry);
    exhausted = found.length < limit;
    return found.length;
  }

  async function loadCopies(): Promise<number> {
    const known = window.size('copies');
    const limit = Math.ceil(limits.inFlight * COPIES_SHARE) - known.entries;
    const bytes = limits.inFlightBytes * COPIES_SHARE - known.bytes;
    if (stopping || !publisher.isReady() || limit <= 0 || bytes <= 0) return 0;
    if (now() < lookForCopiesAtMs) return 0;
    const found = await entries.loadCopies({ limit, bytes, except: window.positions() });
    if (found.length === 0) lookForCopiesAtMs = now() + Math.min(limits.pollMs, COPIES_POLL_MS);
    for (const entry of found) {
      if (!stoppedReplays.has(entry.replay?.id ?? '')) window.admit(entry);
    }
    exhausted &&= found.length < limit;
    return found.length;
  }

  function mayPublish(): boolean {
    return (
      !stopping &&
      lease.isHeld() &&
      publisher.isReady() &&
      now() >= pausedUntilMs &&
      inFlight < limits.inFlight &&
      (inFlight === 0 || inFlightBytes < limits.inFlightBytes)
    );
  }

  function pump(): number {
    let published = 0;
    while (mayPublish()) {
      const lane = suspects.size === 0 ? window.take() : takeSuspect();
      if (lane === undefined) break;
      void publish(lane);
      published += 1;
    }
    return published;
  }

  /** A suspect goes alone: if the channel dies again, we know whose fault it is. */
  function takeSuspect(): Lane | undefined {
    if (inFlight > 0) return undefined;
    const lane = window.take(({ position }) => suspects.has(position));
    if (lane !== undefined) return lane;
    suspects.clear(); // those that are left wait in the database
    return window.take();
  }

  async function publish(lane: Lane): Promise<void> {
    const entry = lane.entries[0] as Entry;
    const alone = suspects.has(entry.position);
    const bytes = entry.data.length;
    inFlight += 1;
    inFlightBytes += bytes;
    const publication = await attempt(entry);
    inFlight -= 1;
    inFlightBytes -= bytes;
    suspects.delete(entry.position);
    conclude(lane, entry, publication, alone);
    pump();
    wake();
  }

  /** Never rejects: an entry that cannot even be made a message is one that failed. */
  async function attempt(entry: Entry): Promise<Publication> {
    try {
      return await publisher.publish(toMessage(entry, routingPrefix));
    } catch (error) {
      return { result: 'failed', detail: describeError(error).message, blame: 'event', durationMs: 0 };
    }
  }

  function conclude(lane: Lane, entry: Entry, publication: Publication, alone: boolean): void {
    observe(entry, publication);
    const next = judge(entry, publication, { alone, maxAttempts: limits.maxAttempts });
    const retryInMs = next === 'retry' ? retryDelayMs(entry.attempts + 1, random()) : 0;
    (entry.replay === undefined ? settlements : copySettlements).push({
      entry,
      publication,
      next,
      retryInMs,
    });
    switch (next) {
      case 'delete':
      case 'return':
        // On the bus, or nobody there to take it: either way the job's next event may follow.
        window.advance(lane);
        if (next === 'return' && entry.replay !== undefined) stopReplay(entry.replay.id);
        break;
      case 'keep':
        // It stays first in its lane and goes again when the broker is back: no attempt is held against it.
        if (publication.result === 'failed' && publication.blame === 'unknown') suspects.add(entry.position);
        else pausedUntilMs = now() + BROKER_PAUSE_MS;
        window.putBack(lane);
        break;
      case 'park':
        log.error({ event: eventId(entry.source, entry), attempts: entry.attempts + 1 }, 'event parked');
        break; // as with a retry
      case 'retry':
        // A live entry's lane is not ready until the database knows: `settle` empties it.
        if (entry.replay !== undefined) window.hold(lane);
        break;
    }
  }

  /** The rest of its copies would end as this one did. The database pauses it with the result of this one. */
  function stopReplay(replayId: string): void {
    stoppedReplays.add(replayId);
    window.forgetReplay(replayId);
  }

  /** Writes what came back. Until that is committed the entries stay known, so that no load finds them again. */
  async function settle(): Promise<number> {
    const batch = settlements;
    if (batch.length === 0) return 0;
    settlements = [];
    try {
      await entries.settle(batch);
    } catch (error) {
      settlements = [...batch, ...settlements];
      throw error;
    }
    for (const settlement of batch) forgetSettled(settlement);
    return batch.length;
  }

  /** Begins to write what became of copies; an operator may hold their replay's lock. Returns how many. */
  function settleCopies(): number {
    if (settlingCopies !== undefined || copySettlements.length === 0) return 0;
    const batch = copySettlements;
    copySettlements = [];
    settlingCopies = writeCopies(batch).finally(() => {
      settlingCopies = undefined;
      wake();
    });
    return batch.length;
  }

  async function writeCopies(batch: Settlement[]): Promise<void> {
    try {
      await entries.settleCopies(batch);
    } catch (error) {
      copySettlements = [...batch, ...copySettlements];
      log.warn({ err: describeError(error) }, "what became of a replay's copies could not be written yet");
      await pause(ERROR_PAUSE_MS);
      return;
    }
    for (const settlement of batch) {
      forgetSettled(settlement);
      if (settlement.next === 'return') stoppedReplays.delete(settlement.entry.replay?.id ?? '');
    }
  }

  function forgetSettled({ entry, next }: Settlement): void {
    if (next === 'delete' || next === 'return') window.forget(entry);
    if (next === 'retry' || next === 'park') window.forgetFailed(entry);
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const beganMs = now();
      const nudged = new Promise<void>((resolve) => {
        wake = resolve;
      });
      let pauseMs = limits.pollMs;
      try {
        const moved = await runOnce();
        // More may wait where a load was cut short; what is in flight wakes us when it comes back.
        if (moved > 0 && (settlements.length > 0 || !exhausted)) pauseMs = 0;
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not reach its outbox');
        pauseMs = ERROR_PAUSE_MS;
      }
      if (pauseMs > 0) await Promise.race([nudged, pause(pauseMs)]);
      // Each round costs two statements however little it moves. Confirms go on publishing meanwhile.
      const restMs = beganMs + limits.paceMs - now();
      if (restMs > 0 && (inFlight > 0 || exhausted)) await pause(restMs);
    }
  }

  const isUnfinished = () =>
    inFlight > 0 || settlements.length + copySettlements.length > 0 || settlingCopies !== undefined;

  async function finish(untilMs: number): Promise<void> {
    while (isUnfinished() && now() < untilMs) {
      const nudged = new Promise<void>((resolve) => {
        wake = resolve;
      });
      try {
        settleCopies();
        await settle();
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not settle yet');
      }
      if (isUnfinished()) await Promise.race([nudged, pause(BROKER_PAUSE_MS)]);
    }
  }

  return {
    runOnce,
    start: () => {
      running ??= run();
    },
    nudge: () => wake(),
    inFlight: () => inFlight,
    stop: async (graceMs) => {
      stopping = true;
      wake();
      await running;
      await finish(now() + graceMs);
    },
  };
}

function nobodyWaits(): void {}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
