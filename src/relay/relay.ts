// Publishes the outbox while this replica leads. Guarantees: the first copies of a job's events go out in the order of their
// sequence (guarantee 5), each event gets at least one confirmed copy (guarantee 4), and an event that fails delays only its own
// job. No transaction is open while the relay waits for the broker.
//
// The relay works in rounds (`runOnce`): write the results that came back, load entries, publish. It keeps a window of the
// outbox in memory, with a lane for each job (window.ts). When an event itself fails, its whole lane leaves memory: from then
// on the database decides when the job is due again.
//
// Replays' copies use the same window, and they wait for live entries, never the other way round. They are loaded after live
// entries, into a limited share of the window. Their results are written beside the rounds, since that write can wait for a
// lock that an operator has.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import { eventId } from '../event/index.ts';
import { retryDelayMs } from './backoff.ts';
import { toMessage } from './cloud-event.ts';
import type { Lease } from './lease.ts';
import { nextStep } from './next-step.ts';
import type { Entry, Outbox, Settlement } from './outbox.ts';
import type { Publication, Publisher } from './publisher.ts';
import { createWindow, type Lane } from './window.ts';

export type RelayLimits = {
  readonly pollMs: number;
  /** Least time from the start of one round to the start of the next, unless nothing is in flight and more waits to be loaded. */
  readonly paceMs: number;
  readonly inFlight: number;
  readonly inFlightBytes: number;
  readonly maxAttempts: number;
};

export type Relay = {
  /** One round: writes the results that came back, loads entries, publishes. Returns how many entries it moved. */
  readonly runOnce: () => Promise<number>;
  /** Runs rounds until `stop`. */
  readonly start: () => void;
  /** A hint that there may be something to do. Polling finds it anyway. */
  readonly nudge: () => void;
  readonly inFlight: () => number;
  /**
   * Publishes nothing more, and waits for the results of what is in flight and writes them, for `graceMs` at most. The next
   * leader publishes again what has no written result by then. Safe to call twice or before start.
   */
  readonly stop: (graceMs: number) => Promise<void>;
};

/** Live entries in memory, as a multiple of what may be in flight: after a confirm, the next entries are already loaded. */
const WINDOW_FACTOR = 2;
/** Copies in memory, as a part of what may be in flight: they never use up the room of live entries. */
const COPIES_SHARE = 0.5;
/**
 * How often entries that wait in memory are dropped and loaded again: while they wait for the broker, an operator may park or
 * discard one. It costs a load.
 */
const REFRESH_MS = 1_000;
/** While there are no copies, this is the time between polls for them: each poll costs a statement. */
const COPIES_POLL_MS = 200;
const ERROR_PAUSE_MS = 1_000;
const BROKER_PAUSE_MS = 200;

export function createRelay(options: {
  outbox: Outbox;
  lease: Pick<Lease, 'isLeading'>;
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
  const { outbox, lease, publisher, routingPrefix, limits, now, random, log, observe } = options;
  const window = createWindow();
  const suspects = new Set<string>(); // positions in flight when the broker closed the channel because of a message
  const stoppedReplays = new Set<string>(); // ids; the write that pauses them is not committed yet
  let settlements: Settlement[] = [];
  let copySettlements: Settlement[] = [];
  let settlingCopies: Promise<void> | undefined;
  let pollCopiesAtMs = 0;
  let refreshAtMs = now() + REFRESH_MS;
  let inFlight = 0;
  let inFlightBytes = 0;
  let brokerPauseEndsMs = 0;
  let isReadAnew = true; // since entries were last forgotten, a load has completed
  let exhausted = false; // the last loads found less than they asked for
  let stopping = false;
  let running: Promise<void> | undefined;
  let wake = wakeNobody;

  async function runOnce(): Promise<number> {
    const settled = await settle();
    if (!lease.isLeading()) {
      suspects.clear();
      window.forgetIdle();
      return settled + settleCopies();
    }
    refresh();
    const loaded = await load();
    // While a copy's failure is being written, the database would still give us the copies that must wait behind it.
    const copies = settlingCopies === undefined ? await loadCopies() : 0;
    return settled + loaded + copies + settleCopies() + publishReady();
  }

  /** The load that follows finds the dropped entries again, in the state that they have now. */
  function refresh(): void {
    if (now() < refreshAtMs) return;
    refreshAtMs = now() + REFRESH_MS;
    window.forgetIdle();
    isReadAnew = false;
  }

  /** What a load may fetch: `share` of what may be in flight, less what is in memory. Undefined if a load makes no sense now. */
  function roomFor(kind: 'live' | 'copies', share: number) {
    const known = window.size(kind);
    const limit = Math.ceil(limits.inFlight * share) - known.entries;
    const bytes = limits.inFlightBytes * share - known.bytes;
    if (stopping || !publisher.isReady() || limit <= 0 || bytes <= 0) return undefined;
    return { limit, bytes, except: window.positions() };
  }

  async function load(): Promise<number> {
    const room = roomFor('live', WINDOW_FACTOR);
    if (room === undefined) return 0;
    const found = await outbox.load(room);
    for (const entry of found) window.admit(entry);
    isReadAnew = true;
    exhausted = found.length < room.limit;
    return found.length;
  }

  async function loadCopies(): Promise<number> {
    const room = now() < pollCopiesAtMs ? undefined : roomFor('copies', COPIES_SHARE);
    if (room === undefined) return 0;
    const found = await outbox.loadCopies(room);
    if (found.length === 0) pollCopiesAtMs = now() + Math.min(limits.pollMs, COPIES_POLL_MS);
    for (const entry of found) {
      if (!stoppedReplays.has(entry.replay?.id ?? '')) window.admit(entry);
    }
    exhausted &&= found.length < room.limit;
    return found.length;
  }

  function mayPublish(): boolean {
    return (
      !stopping &&
      lease.isLeading() &&
      publisher.isReady() &&
      now() >= brokerPauseEndsMs &&
      inFlight < limits.inFlight &&
      (inFlight === 0 || inFlightBytes < limits.inFlightBytes)
    );
  }

  /** Publishes for as long as it may. Returns how many entries. */
  function publishReady(): number {
    let published = 0;
    while (mayPublish()) {
      const lane = suspects.size === 0 ? window.take() : takeSuspect();
      if (lane === undefined) break;
      void publish(lane);
      published += 1;
    }
    return published;
  }

  /** A suspect is published alone: if the broker closes the channel again, this message is the cause. */
  function takeSuspect(): Lane | undefined {
    if (inFlight > 0) return undefined;
    const lane = window.take(({ position }) => suspects.has(position));
    if (lane !== undefined || !isReadAnew) return lane;
    suspects.clear(); // the rest are not there any more: they wait for a retry, or for an operator
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
    applyResult(lane, entry, publication, alone);
    publishReady();
    wake();
  }

  /** Never rejects: an entry that cannot be made into a message has failed. */
  async function attempt(entry: Entry): Promise<Publication> {
    try {
      return await publisher.publish(toMessage(entry, routingPrefix));
    } catch (error) {
      return { result: 'failed', detail: describeError(error).message, blame: 'event', durationMs: 0 };
    }
  }

  function applyResult(lane: Lane, entry: Entry, publication: Publication, alone: boolean): void {
    observe(entry, publication);
    const next = nextStep(entry, publication, { alone, maxAttempts: limits.maxAttempts });
    const retryInMs = next === 'retry' ? retryDelayMs(entry.attempts + 1, random()) : 0;
    const results = entry.replay === undefined ? settlements : copySettlements;
    results.push({ entry, publication, next, retryInMs });
    switch (next) {
      case 'delete':
      case 'return':
        // Published, or no queue received it: in both cases the job's next event may follow.
        window.advance(lane);
        if (next === 'return' && entry.replay !== undefined) stopReplay(entry.replay.id);
        break;
      case 'keep':
        // It stays first in its lane and is published again when the broker is back.
        if (publication.result === 'failed' && publication.blame === 'unknown') suspects.add(entry.position);
        else brokerPauseEndsMs = now() + BROKER_PAUSE_MS;
        window.putBack(lane);
        break;
      case 'park':
        log.error({ event: eventId(entry.source, entry), attempts: entry.attempts + 1 }, 'event parked');
        break; // as with a retry
      case 'retry':
        // A live entry's lane stays out of turn until the failure is written, which empties it (`forgetSettled`).
        if (entry.replay !== undefined) window.deferReplay(lane);
        break;
    }
  }

  /** Its other copies would be returned, too. The database pauses the replay when this copy's result is written. */
  function stopReplay(replayId: string): void {
    stoppedReplays.add(replayId);
    window.forgetReplay(replayId);
  }

  /** Writes the results of live entries. They stay in memory until that is committed, so that no load finds them again. */
  async function settle(): Promise<number> {
    const batch = settlements;
    if (batch.length === 0) return 0;
    settlements = [];
    try {
      await outbox.settle(batch);
    } catch (error) {
      settlements = [...batch, ...settlements];
      throw error;
    }
    for (const settlement of batch) forgetSettled(settlement);
    return batch.length;
  }

  /** Starts to write the results of copies, and does not wait for it: an operator may have locked their replay. */
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
      await outbox.settleCopies(batch);
    } catch (error) {
      copySettlements = [...batch, ...copySettlements];
      log.warn({ err: describeError(error) }, "the results of a replay's copies could not be written yet");
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

  /** Resolves at the next nudge. */
  function nudged(): Promise<void> {
    return new Promise((resolve) => {
      wake = resolve;
    });
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const startedMs = now();
      const nudge = nudged();
      let pauseMs = limits.pollMs;
      try {
        const moved = await runOnce();
        // A load that found as many as it asked for may have left more. A result that arrives wakes us.
        if (moved > 0 && (settlements.length > 0 || !exhausted)) pauseMs = 0;
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not reach its outbox');
        pauseMs = ERROR_PAUSE_MS;
      }
      if (pauseMs > 0) await Promise.race([nudge, pause(pauseMs)]);
      // Each round costs two statements, even if it moves little. Confirms publish the next entries meanwhile.
      const restMs = startedMs + limits.paceMs - now();
      if (restMs > 0 && (inFlight > 0 || exhausted)) await pause(restMs);
    }
  }

  const isUnfinished = () =>
    inFlight > 0 || settlements.length + copySettlements.length > 0 || settlingCopies !== undefined;

  async function finish(untilMs: number): Promise<void> {
    while (isUnfinished() && now() < untilMs) {
      const nudge = nudged();
      try {
        settleCopies();
        await settle();
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not write its last results yet');
      }
      if (isUnfinished()) await Promise.race([nudge, pause(BROKER_PAUSE_MS)]);
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

function wakeNobody(): void {}

/** Unlike a plain timer, it does not keep the process alive. */
const pause = (ms: number) => sleep(ms, undefined, { ref: false });
