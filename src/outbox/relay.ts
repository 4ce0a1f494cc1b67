// Empties the outbox into the broker while this replica holds the lease. Promises: first copies of a job's
// events in the order of their sequence (guarantee 5), at least one confirmed copy of each (guarantee 4), and
// that one event which fails keeps back its own job alone. No transaction is open while the broker is awaited.
//
// In memory stands a window of the outbox, one lane a job. The first entry of a lane may be in flight; the
// next goes when it is confirmed or returned. A failure that is the event's own takes its whole lane out of
// memory: the database then says when the job is due again.

import type { Logger } from 'pino';
import type { Publication, Publisher } from '../broker/publisher.ts';
import { describeError } from '../errors.ts';
import { eventId } from '../ledger/event.ts';
import { jobKey } from '../ledger/record.ts';
import { retryDelayMs } from './backoff.ts';
import { toMessage } from './cloud-event.ts';
import type { Entry, OutboxEntries, Settlement } from './entries.ts';
import type { Lease } from './lease.ts';

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

type Lane = { readonly key: string; readonly entries: Entry[] };

/** Loaded ahead of what is in flight, so that confirms find the next entries waiting. */
const WINDOW_FACTOR = 2;
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
  const known = new Map<string, Entry>(); // every entry in memory, also those whose result is not settled yet
  const lanes = new Map<string, Lane>();
  const ready: Lane[] = [];
  const suspects = new Set<string>(); // in flight when the broker closed the channel over some message
  let settlements: Settlement[] = [];
  let knownBytes = 0; // of their data, about
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
      forgetIdle();
      return settled;
    }
    const loaded = await load();
    return settled + loaded + pump();
  }

  async function load(): Promise<number> {
    const limit = limits.inFlight * WINDOW_FACTOR - known.size;
    const bytes = limits.inFlightBytes * WINDOW_FACTOR - knownBytes;
    if (stopping || !publisher.isReady() || limit <= 0 || bytes <= 0) return 0;
    const found = await entries.load({ limit, bytes, except: [...known.keys()] });
    for (const entry of found) admit(entry);
    exhausted = found.length < limit;
    return found.length;
  }

  function admit(entry: Entry): void {
    known.set(entry.sequence, entry);
    knownBytes += entry.data.length;
    const key = jobKey(entry.source, entry.jobId);
    const lane = lanes.get(key);
    if (lane !== undefined) {
      lane.entries.push(entry);
      return;
    }
    const fresh = { key, entries: [entry] };
    lanes.set(key, fresh);
    ready.push(fresh);
  }

  function forget(sequence: string): void {
    knownBytes -= known.get(sequence)?.data.length ?? 0;
    known.delete(sequence);
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
      const lane = suspects.size === 0 ? ready.shift() : takeSuspect();
      if (lane === undefined) break;
      void publish(lane);
      published += 1;
    }
    return published;
  }

  /** A suspect goes alone: if the channel dies again, we know whose fault it is. */
  function takeSuspect(): Lane | undefined {
    if (inFlight > 0) return undefined;
    const index = ready.findIndex((lane) => suspects.has(lane.entries[0]?.sequence ?? ''));
    if (index >= 0) return ready.splice(index, 1)[0];
    suspects.clear(); // those that are left wait in the database
    return ready.shift();
  }

  async function publish(lane: Lane): Promise<void> {
    const entry = lane.entries[0] as Entry;
    const alone = suspects.has(entry.sequence);
    const bytes = entry.data.length;
    inFlight += 1;
    inFlightBytes += bytes;
    const publication = await attempt(entry);
    inFlight -= 1;
    inFlightBytes -= bytes;
    suspects.delete(entry.sequence);
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
    if (publication.result === 'confirmed' || publication.result === 'returned') {
      // On the bus, or nobody there to take it: either way the job's next event may follow.
      settlements.push({
        entry,
        publication,
        next: publication.result === 'confirmed' ? 'delete' : 'return',
        retryInMs: 0,
      });
      lane.entries.shift();
      if (lane.entries.length > 0) ready.push(lane);
      else lanes.delete(lane.key);
      return;
    }
    const isOwnFault = publication.blame === 'event' || (publication.blame === 'unknown' && alone);
    if (!isOwnFault) {
      // It stays first in its lane and goes again when the broker is back: no attempt is held against it.
      if (publication.blame === 'unknown') suspects.add(entry.sequence);
      else pausedUntilMs = now() + BROKER_PAUSE_MS;
      settlements.push({ entry, publication, next: 'keep', retryInMs: 0 });
      ready.unshift(lane);
      return;
    }
    const attempts = entry.attempts + 1;
    const next = attempts >= limits.maxAttempts ? 'park' : 'retry';
    if (next === 'park') log.error({ event: eventId(entry.source, entry), attempts }, 'event parked');
    settlements.push({ entry, publication, next, retryInMs: retryDelayMs(attempts, random()) });
    // The lane is left in `lanes` and not in `ready` until the database knows: `settle` removes it.
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
    for (const { entry, next } of batch) {
      if (next === 'delete' || next === 'return') forget(entry.sequence);
      if (next === 'retry' || next === 'park') dropLane(jobKey(entry.source, entry.jobId));
    }
    return batch.length;
  }

  function dropLane(key: string): void {
    for (const entry of lanes.get(key)?.entries ?? []) forget(entry.sequence);
    lanes.delete(key);
  }

  /** Another replica leads now. What is in flight or unsettled of ours still has to be heard out. */
  function forgetIdle(): void {
    suspects.clear();
    for (const lane of ready.splice(0)) dropLane(lane.key);
    for (const lane of lanes.values()) {
      for (const entry of lane.entries.splice(1)) forget(entry.sequence);
    }
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

  async function finish(untilMs: number): Promise<void> {
    while ((inFlight > 0 || settlements.length > 0) && now() < untilMs) {
      const nudged = new Promise<void>((resolve) => {
        wake = resolve;
      });
      try {
        await settle();
      } catch (error) {
        log.warn({ err: describeError(error) }, 'the relay could not settle yet');
      }
      if (inFlight > 0 || settlements.length > 0) await Promise.race([nudged, pause(BROKER_PAUSE_MS)]);
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
