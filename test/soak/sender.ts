// The sender of a soak, a thread of its own. It sends signed notifications at fixed times, whatever the answers (an open
// loop: latency counts from the intended time), and sends again what was not acknowledged, as the conversion service does.
// It marks what was acknowledged in a shared set, and keeps nothing for an answered delivery. It uses parts of the
// benchmark's generator, but not the whole: that one repeats at once and gives up a run that is too slow.

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
  /** The set of acknowledged events, by number. */
  readonly acknowledged: SharedArrayBuffer;
};

/** `go` starts the load; `report` is answered with a SenderSample; after `stop` only retries are sent. */
export type SenderCommand = 'go' | 'report' | 'stop' | 'close';

/** A frozen replica keeps each of its connections busy for 10 s: enough are left to send at the full rate to the other one. */
const CONNECTIONS_PER_REPLICA = 128;
const TICK_MS = 2;
/** Two minutes without an answer at 2,500/s. */
const RETRIES_MAX = 300_000;
/** Not the source's, so that the signature is well-formed and wrong. */
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
      // Lost while idle: `onFree` is called when it is connected again.
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

  onCommands({
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

function onCommands(actions: Record<SenderCommand, () => void>): void {
  parentPort?.on('message', (command: SenderCommand) => actions[command]());
}

/** Signs each request when it is sent, in 8 µs: requests for an hour, signed ahead, would take gigabytes. */
function createRequests({ secret, run: name }: SenderOptions): (place: number) => Buffer {
  const right = { key: createSecretKey(secret, 'utf8'), path: WEBHOOKS, host: HOST };
  const wrong = { ...right, key: createSecretKey(WRONG_SECRET, 'utf8') };
  return (place) => {
    const { kind, number } = plannedAt(place);
    // What must not become an event has names of its own, so that the subscriber would recognize it.
    const plain = bodyOf(`${name}${SUFFIXES[kind]}`, number, SMALLEST_BODY_BYTES);
    // Authentic, but with an unknown status: it is quarantined and becomes no event.
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
      // A tampered delivery must get a 401. If it is accepted, the subscriber sees it.
      return isGood || (kind === 'tampered' && outcome === '401');
    },
    giveUp: () => {
      givenUp += 1;
    },
    /** Latencies since the last call, everything else since the start. */
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
