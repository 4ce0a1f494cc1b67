// The sender of a soak, a thread of its own: signed notifications at fixed intended times, whatever the answers do
// (open loop; the latency counts from the intended time), and again what was not acknowledged, as the conversion
// service does. Marks what was acknowledged in a set that it shares; keeps nothing for each delivery that is answered.
// Built from the parts of the benchmark's generator, which gives a run up when it cannot be served and repeats at once:
// right for a measurement, wrong for faults.

import { createSecretKey } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { type Connection, openConnection, type Reply } from '../../bench/load/connection.ts';
import { createLatencies, recordUs } from '../../bench/load/latency.ts';
import { bodyOf, requestOf, SMALLEST_BODY_BYTES } from '../../bench/load/notifications.ts';
import { openBits } from './bits.ts';
import { plannedAt } from './plan.ts';
import type { SenderSample } from './record.ts';
import { createRetries, type Retry } from './retries.ts';

export type SenderOptions = {
  readonly ports: readonly number[];
  readonly secret: string;
  readonly run: string;
  readonly ratePerS: number;
  /** Gets the numbers of the acknowledged events. */
  readonly acknowledged: SharedArrayBuffer;
};

/** `go` starts the clock; `report` is answered with a SenderSample; `stop` sends what is due and nothing fresh. */
export type SenderCommand = 'go' | 'report' | 'stop' | 'close';

/** A frozen replica holds on to its connections for 10 s each: enough for the rate to go on over the other one. */
const CONNECTIONS_PER_REPLICA = 128;
const TICK_MS = 2;
/** Two minutes without any answer at 2,500/s. */
const RETRIES_MAX = 300_000;
/** Another one than the source's, so that its signature is well-formed and wrong. */
const WRONG_SECRET = 'not-the-secret-of-this-source';
const SUFFIXES = { fresh: '', copy: '', unknown: 'u', tampered: 't' } as const;
const HOST = 'tallyhook.example';
const WEBHOOKS = '/webhooks';

type UnderWay = Retry & { readonly sinceMs: number };

run(workerData as SenderOptions);

function run(options: SenderOptions): void {
  const { ports, ratePerS } = options;
  const requestAt = createRequests(options);
  const tally = createTally(options.acknowledged);
  const retries = createRetries({ max: RETRIES_MAX });
  const free = new Set<number>();
  const underWay = new Map<number, UnderWay>();
  const clock = { isGoing: false, startMs: 0, next: 0 };

  const dueBy = (nowMs: number) =>
    clock.isGoing ? Math.floor(((nowMs - clock.startMs) / 1_000) * ratePerS) : clock.next;

  function pump(): void {
    const nowMs = performance.now();
    const due = dueBy(nowMs);
    for (const slot of free) {
      // Lost while it was idle: it comes again.
      if (connections[slot]?.isOpen() !== true) {
        free.delete(slot);
        continue;
      }
      const retry = retries.takeDue(nowMs);
      if (retry === undefined && clock.next >= due) return;
      const place = retry?.place ?? clock.next++;
      const sinceMs = retry ? nowMs : clock.startMs + (place / ratePerS) * 1_000;
      free.delete(slot);
      underWay.set(slot, { place, attempt: (retry?.attempt ?? 0) + 1, sinceMs });
      connections[slot]?.send(requestAt(place));
    }
  }

  function onReply(slot: number, reply: Reply): void {
    const sent = underWay.get(slot);
    underWay.delete(slot);
    if (sent === undefined || tally.count(sent, reply)) return;
    if (!retries.add({ place: sent.place, attempt: sent.attempt }, performance.now())) tally.giveUp();
  }

  function onFree(slot: number): void {
    free.add(slot);
    pump();
  }

  const connections: Connection[] = ports
    .flatMap((port) => Array.from({ length: CONNECTIONS_PER_REPLICA }, () => port))
    .map((port, slot) =>
      openConnection({ port, onReply: (reply) => onReply(slot, reply), onFree: () => onFree(slot) }),
    );
  const ticks = setInterval(pump, TICK_MS);

  obey({
    go: () => Object.assign(clock, { isGoing: true, startMs: performance.now() }),
    report: () => {
      const waiting = Math.max(0, dueBy(performance.now()) - clock.next);
      const report: SenderSample = { ...tally.take(), waiting, retrying: retries.size() + underWay.size };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
      parentPort?.postMessage(report);
    },
    stop: () => {
      clock.isGoing = false;
    },
    close: () => {
      clearInterval(ticks);
      for (const connection of connections) connection.close();
      parentPort?.close();
    },
  });
}

function obey(orders: Record<SenderCommand, () => void>): void {
  parentPort?.on('message', (order: SenderCommand) => orders[order]());
}

/** Signs as it goes: 8 µs each, where a stock for an hour would take gigabytes. */
function createRequests({ secret, run: name }: SenderOptions): (place: number) => Buffer {
  const right = { key: createSecretKey(secret, 'utf8'), path: WEBHOOKS, host: HOST };
  const wrong = { ...right, key: createSecretKey(WRONG_SECRET, 'utf8') };
  return (place) => {
    const { kind, number } = plannedAt(place);
    // Names of their own for what must not become an event: on the bus it would be told at once.
    const plain = bodyOf(`${name}${SUFFIXES[kind]}`, number, SMALLEST_BODY_BYTES);
    // Authentic and not understood: such a delivery is kept for operators and is no event.
    const body = kind === 'unknown' ? plain.replace(/"status":"\w+"/, '"status":"paused"') : plain;
    return Buffer.from(requestOf(kind === 'tampered' ? wrong : right, body), 'latin1');
  };
}

function createTally(memory: SharedArrayBuffer) {
  const marks = openBits(memory);
  const latencies = createLatencies();
  const answers: Record<string, number> = {};
  let [acknowledged, givenUp] = [0, 0];
  const ms = (percentile: number) => (latencies.count === 0 ? 0 : latencies.percentile(percentile) / 1_000);
  return {
    /** @returns whether this was its last attempt. */
    count: ({ place, attempt, sinceMs }: UnderWay, { outcome, isGood }: Reply): boolean => {
      answers[outcome] = (answers[outcome] ?? 0) + 1;
      if (attempt === 1) recordUs(latencies, (performance.now() - sinceMs) * 1_000);
      const { kind, number } = plannedAt(place);
      const isEvent = kind === 'fresh' || kind === 'copy';
      if (isGood && isEvent && marks.mark(number)) acknowledged += 1;
      // A 401 is what the wrongly signed are to get; if they get anything else, that is seen on the bus.
      return isGood || (kind === 'tampered' && outcome === '401');
    },
    giveUp: () => {
      givenUp += 1;
    },
    /** Latencies since the last time, all else since the beginning. */
    take: () => {
      const taken = {
        answers: { ...answers },
        p50Ms: ms(50),
        p99Ms: ms(99),
        maxMs: latencies.count === 0 ? 0 : latencies.max / 1_000,
        acknowledged,
        givenUp,
      };
      latencies.reset();
      return taken;
    },
  };
}
