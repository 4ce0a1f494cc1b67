// One measured run: load on a subject, with a subscriber that counts what reaches the bus. An answer that is not 2xx, a lost
// connection or an event that does not arrive fails the run.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadPlan, LoadReport, LoadSecond } from './load/plan.ts';
import { createLatencies, type Latency, recordUs, summarize } from './load/latency.ts';
import { startGenerator } from './parts.ts';
import type { Figures } from './results.ts';
import type { Stage } from './stage.ts';
import type { SubscriberCount, SubscriberPlan } from './subscriber.ts';
import { cpuSecondsOf, memoryOf } from './usage.ts';

export type QueueType = SubscriberPlan['queueType'];

export type Subscriber = {
  readonly pid: number;
  readonly run: string;
  readonly count: () => SubscriberCount;
  /** Resolves when so many came. @throws Error if nothing comes for a while */
  readonly until: (what: 'received' | 'others' | 'seeded', many: number) => Promise<void>;
  /** Times of the first receipt, by number; 0 for none. */
  readonly times: () => Promise<Float64Array>;
  /** Also deletes its queue and exchange. */
  readonly end: () => Promise<void>;
};

const BIND_TIMEOUT_MS = 15_000;
const WRITE_TIMEOUT_MS = 30_000;
/** A relay that publishes nothing for so long is stuck. */
const STUCK_MS = 30_000;
const POLL_MS = 20;
const SECOND_US = 1_000_000;
const WARM_UP_CONCURRENCY = 64;

/** Letters and digits, since it is part of job ids and of names on the broker. */
export function newRun(): string {
  return `r${randomBytes(4).toString('hex')}`;
}

/** Each run has its own, so that it sees no other run's events. */
export const exchangeOf = (run: string) => `bench.${run}`;

export async function startSubscriber(stage: Stage, run: string, queueType: QueueType): Promise<Subscriber> {
  const part = await stage.parts.start('subscriber.ts');
  const exchange = exchangeOf(run);
  const receiveTimesFile = join(stage.folder, `${run}.received`);
  const plan: SubscriberPlan = {
    amqpUrl: stage.rabbitmq.url,
    exchange,
    queue: exchange,
    queueType,
    run,
    receiveTimesFile,
  };
  let count: SubscriberCount = { received: 0, copies: 0, seeded: 0, others: 0 };
  part.on('count', (value) => (count = value as SubscriberCount));
  part.tell('plan', plan);
  await part.next('bound', BIND_TIMEOUT_MS);

  async function until(what: 'received' | 'others' | 'seeded', many: number): Promise<void> {
    let last = { seen: -1, atMs: performance.now() };
    while (count[what] < many) {
      const seen = count.received + count.others + count.seeded;
      if (seen !== last.seen) last = { seen, atMs: performance.now() };
      if (performance.now() - last.atMs > STUCK_MS)
        throw new Error(`${many - count[what]} of ${many} events are not on the bus`);
      await sleep(POLL_MS);
    }
  }

  async function times(): Promise<Float64Array> {
    const written = part.next('written', WRITE_TIMEOUT_MS);
    part.tell('write');
    await written;
    return readTimes(receiveTimesFile);
  }

  async function end(): Promise<void> {
    const removed = part.next('removed', WRITE_TIMEOUT_MS);
    part.tell('remove');
    await removed;
    await part.end();
  }

  return { pid: part.pid, run, count: () => count, until, times, end };
}

function readTimes(file: string): Float64Array {
  const bytes = readFileSync(file);
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

/** A load without its destination. */
export type Load = Omit<LoadPlan, 'ports' | 'path' | 'secret' | 'run' | 'onFailure' | 'sendTimesFile'>;

/**
 * Runs the load to its end and, with a subscriber, until everything that was acknowledged has arrived there.
 * @throws Error unless every answer was a 2xx
 */
export async function measureLoad(
  stage: Stage,
  options: {
    load: Load;
    run: string;
    ports: readonly number[];
    subject: { name: string; pids: readonly number[] };
    subscriber?: Subscriber;
    onSecond?: (second: LoadSecond) => void;
    /** There is a backlog: the warm-up's events come behind it and are not waited for. */
    isBehind?: boolean;
    /** Called when the window begins. When it resolves, the load ends early. */
    stopWhen?: () => Promise<void>;
  },
): Promise<Figures> {
  const { load, run, ports, subject, subscriber } = options;
  const sendTimesFile = join(stage.folder, `${run}.sent`);
  const isOpen = load.loop.kind === 'open';
  const plan: LoadPlan = {
    ...load,
    ports,
    run,
    path: '/webhooks',
    secret: stage.secret,
    onFailure: 'fail',
    sendTimesFile,
    // The subject is warm by then, and only has to reach the rate.
    ...(isOpen && { warmUpS: 1 }),
  };
  const generator = await startGenerator(stage.parts, plan, options.onSecond);
  if (isOpen)
    await warmUp(stage, { ...plan, warmUpS: load.warmUpS }, options.isBehind ? undefined : subscriber);
  const usage = meter(stage, { [subject.name]: subject.pids, generator: [generator.pid] }, subscriber);
  const going = generator.go();
  const before = await going.windowBegins;
  usage.begin();
  // Awaited before the window's end, so that its failure fails the run.
  await options.stopWhen?.().finally(generator.stop);
  const acknowledged = await going.windowEnds;
  const backlogAtEnd = subscriber && Math.max(0, acknowledged - subscriber.count().received);
  const report = await going.report;
  assertClean(report);
  await subscriber?.until('received', report.acknowledged);
  const cpuMsPer1000 = usage.end(report.acknowledged - before);
  // Not earlier: its CPU time cannot be read after its end.
  await generator.end();
  const { peakMiB } = memoryOf(subject.pids);
  return {
    acksPerS: report.answersPerS,
    answer: report.latency,
    answers: report.answers,
    signedLate: report.signedLate,
    mostWaiting: report.mostWaiting,
    cpuMsPer1000,
    peakRssMiB: peakMiB,
    ...(subscriber && {
      ...arrivals(report, readTimes(sendTimesFile), await subscriber.times()),
      copies: subscriber.count().copies,
      backlogAtEnd: backlogAtEnd ?? 0,
    }),
  };
}

/** Warms the subject up for an open loop: a cold one would start with a queue that the rate does not cause. */
async function warmUp(stage: Stage, plan: LoadPlan, subscriber: Subscriber | undefined): Promise<void> {
  const { sendTimesFile: _, ...rest } = plan;
  const generator = await startGenerator(stage.parts, {
    ...rest,
    run: `${plan.run}w`,
    loop: { kind: 'closed', concurrency: WARM_UP_CONCURRENCY },
    durationS: plan.warmUpS,
    warmUpS: 0,
    stock: 0,
  });
  const report = await generator.go().report;
  await generator.end();
  assertClean(report);
  await subscriber?.until('others', report.acknowledged);
}

/** A rate does not count if some deliveries failed. */
function assertClean({ isClean, answersInAll, unanswered }: LoadReport): void {
  if (isClean) return;
  const late = unanswered > 0 ? `, and ${unanswered} without any: the rate cannot be served` : '';
  throw new Error(`not every answer was a 2xx: ${JSON.stringify(answersInAll)}${late}`);
}

/** Measures CPU time from the start of the window to the end of the drain, for the events acknowledged in the window. */
export function meter(
  stage: Stage,
  roles: Readonly<Record<string, readonly number[]>>,
  subscriber?: { readonly pid: number },
): { begin: () => void; end: (events: number) => Record<string, number> } {
  const all: Record<string, readonly number[]> = {
    ...roles,
    postgres: [stage.postgres.pid],
    rabbitmq: [stage.rabbitmq.pid],
    ...(subscriber && { subscriber: [subscriber.pid] }),
  };
  let before: Record<string, number> = {};
  return {
    begin: () => {
      before = cpuSecondsOf(all);
    },
    end: (events) => {
      const after = Object.entries<number>(cpuSecondsOf(all));
      const perThousand = after.map(([role, seconds]) => [
        role,
        ((seconds - (before[role] ?? 0)) * 1_000_000) / Math.max(1, events),
      ]);
      return Object.fromEntries(perThousand) as Record<string, number>;
    },
  };
}

/** Pure. When the events that were first sent in the window were received. */
export function arrivals(
  report: Pick<LoadReport, 'fromUs' | 'toUs' | 'firstNumber' | 'endNumber'>,
  sent: Float64Array,
  received: Float64Array,
): { confirmedPerS: number; receipt: Latency; drainS: number } {
  const histogram = createLatencies();
  let [lastUs, events] = [report.fromUs, 0];
  for (let number = report.firstNumber; number < report.endNumber; number++) {
    const [sentUs = 0, receivedUs = 0] = [sent[number], received[number]];
    if (sentUs === 0 || receivedUs === 0) continue;
    events += 1;
    recordUs(histogram, receivedUs - sentUs);
    lastUs = Math.max(lastUs, receivedUs);
  }
  return {
    confirmedPerS: events === 0 ? 0 : (events / (lastUs - report.fromUs)) * SECOND_US,
    receipt: summarize(histogram),
    drainS: Math.max(0, lastUs - report.toUs) / SECOND_US,
  };
}
