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
// Replays' copies use the same window, and they wait for live entries, never the other way round. The states of an event, the
// sequences and the rules are told in docs/relay.md; comments cite the rules as R1, R2 and so on.
//
// This file joins the parts, each with a state of its own: what arrives (arrivals.ts), what is in memory (window.ts), what is on
// its way (in-flight.ts, suspects.ts), what becomes of it (outcomes.ts), its results (results.ts) and their writes
// (result-writes.ts, copy-writes.ts), what operators decide meanwhile (decisions.ts), and the rounds (rounds.ts).

import type { Logger } from 'pino';
import type { Lease } from '../ledger/index.ts';
import { createArrivals, type Room } from './arrivals.ts';
import { createCopyWrites } from './copy-writes.ts';
import { createDecisions } from './decisions.ts';
import type { Entry } from './entry.ts';
import type { HandOff } from './hand-off.ts';
import { createInFlight } from './in-flight.ts';
import { createOutcomes } from './outcomes.ts';
import type { Outbox } from './outbox.ts';
import type { Publication } from './publication.ts';
import type { Publisher } from './publisher.ts';
import { createResults } from './results.ts';
import { createResultWrites } from './result-writes.ts';
import { createRounds } from './rounds.ts';
import { createSuspects } from './suspects.ts';
import { createWindow } from './window.ts';

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
 * What may be in memory, as a multiple of what may be in flight. Of live entries there is room for those in flight, for those
 * whose results are not written yet, and for two large writes. Copies never use up that room.
 */
const ROOM = { live: { entries: 4, bytes: 2 }, copies: { entries: 0.5, bytes: 0.5 } } as const;
/** While there are no copies, this is the time between polls for them: each poll costs a statement. */
const COPIES_POLL_MS = 200;

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
  let epoch: string | undefined; // of the lease, when what is in memory was loaded (R31)
  let pollCopiesAtMs = 0;
  let onEase = doNothing;
  const window = createWindow();
  const suspects = createSuspects(window);
  const results = createResults();
  const isLasting = () => !rounds.isStopping() && lease.isLeading();
  const mayPublish = () => isLasting() && lease.epoch() === epoch && publisher.isReady();
  const copies = createCopyWrites({ outbox, window, log, onWritten: () => rounds.wake() });
  const decisions = createDecisions({
    readVersion: outbox.versionBeside,
    isLeading: lease.isLeading,
    now,
    onLook: goOn,
    log,
  });
  const inFlight = createInFlight({
    window,
    suspects,
    publisher,
    limits,
    routingPrefix,
    now,
    mayPublish: () => mayPublish() && decisions.areKnown(),
    onResult: (lane, publication, how) => {
      outcomes.add(lane, publication, how);
      goOn();
    },
  });
  const outcomes = createOutcomes({
    window,
    results,
    copies,
    maxAttempts: limits.maxAttempts,
    random,
    log,
    observe,
    publishAgain: inFlight.publishAgain,
    forget: () => arrivals.forget(),
  });
  const arrivals = createArrivals({
    outbox,
    window,
    handOff,
    decisions,
    room: { live: roomOf(limits, ROOM.live), copies: roomOf(limits, ROOM.copies) },
    isOpen: mayPublish,
    isStopped: copies.isStopped,
    hold: outcomes.hold,
    onArrived: goOn,
    onForgotten: () => {
      results.split();
      suspects.onForgotten();
    },
    onLoaded: (found) => {
      if (found.copies) suspects.onLoaded();
    },
  });
  const writes = createResultWrites({
    outbox,
    results,
    window,
    handOff,
    now,
    isLasting,
    onWritten: () => onEase(),
  });
  const rounds = createRounds({
    pollMs: limits.pollMs,
    now,
    log,
    write,
    writeAndLoad,
    isWriteDue: () =>
      results.isDue(inFlight.count(), arrivals.takes() ? handOff.writing() : 0) || copies.isDue(),
    isLoadDue: arrivals.isDue,
    isUnfinished: () => inFlight.count() + results.size() > 0 || copies.isUnwritten(),
  });

  /** Something came from memory, or a result came back. */
  function goOn(): void {
    inFlight.publishReady();
    rounds.wakeIfDue();
    onEase();
  }

  handOff.onFailed(goOn);

  async function write(): Promise<number> {
    return copies.write() + (await writes.write());
  }

  async function writeAndLoad(): Promise<number> {
    for (const key of writes.takeAnswered()) arrivals.reopen(key);
    // The copies' write begins just before the load, which then knows of each failure of a copy whether it is being written.
    const written = (await writes.write()) + copies.write();
    if (!lease.isLeading()) {
      arrivals.forget();
      return written;
    }
    if (lease.epoch() !== epoch) arrivals.forget();
    epoch = lease.epoch();
    const moved = written + (await load()) + inFlight.publishReady();
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

  return {
    runOnce: rounds.runOnce,
    start: () => {
      decisions.watch();
      rounds.start();
    },
    nudge: rounds.nudge,
    inFlight: inFlight.count,
    backpressure: {
      isFull: arrivals.isFull,
      onEase: (listener) => {
        onEase = listener;
      },
    },
    stop: async (graceMs) => {
      decisions.stop();
      await rounds.stop(graceMs);
    },
  };
}

function roomOf({ inFlight, inFlightBytes }: RelayLimits, share: Room): Room {
  return { entries: Math.ceil(inFlight * share.entries), bytes: inFlightBytes * share.bytes };
}

function doNothing(): void {}
