// One soak from start to end: a world, a load at a fixed rate, faults, and a sample of everything each ten seconds, which
// is written to the record at once. Ends everything that it starts. verdict.ts judges the record.

import { cpus, totalmem } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Guard } from '../../scripts/services/guard.ts';
import { version } from '../../src/base/version.ts';
import { createRandom } from '../torture/random.ts';
import { pause, until } from '../support/until.ts';
import { startWorld, type World } from '../torture/world.ts';
import { type Bits, makeBits, openBits } from './bits.ts';
import { freshAtMost } from './plan.ts';
import type { End, Line, Sample, SenderSample, SubscriberSample } from './record.ts';
import { outboxOf, residentBytes, sampleWorld } from './sampler.ts';
import type { SenderOptions, SenderCommand } from './sender.ts';
import { planFaults, playFaults } from './faults.ts';
import type { SubscriberOptions, SubscriberCommand } from './subscriber.ts';

export type SoakOptions = {
  readonly minutes: number;
  readonly ratePerS: number;
  readonly seed: number;
  readonly faultEveryS: number;
  /** The command line that repeats it. */
  readonly command: string;
};

type Run = SoakOptions & {
  readonly guard: Guard;
  readonly signal: AbortSignal;
  readonly write: (line: Line) => void;
  readonly log: (line: string) => void;
};

type Thread<Command> = {
  readonly send: (command: Command) => void;
  /** null if the thread does not answer in time. */
  readonly report: <Report>(command: Command) => Promise<Report | null>;
  /** Rejects when the thread fails. */
  readonly failed: Promise<never>;
  readonly end: (command: Command) => Promise<void>;
};

type Stage = {
  readonly world: World;
  readonly sender: Thread<SenderCommand>;
  readonly subscriber: Thread<SubscriberCommand>;
  readonly acknowledged: Bits;
  readonly received: Bits;
};

const REPLICAS = 2;
const SAMPLE_EVERY_S = 10;
const QUEUE = 'soak';
const RUN = 'soak';
const REPORT_LIMIT_MS = 4_000;
const THREAD_END_MS = 5_000;
const READY_LIMIT_MS = 20_000;

/** Longer than the longest delay of a retry and the sender's time-out of 10 s. */
const RETRIES_LIMIT_MS = 120_000;
/** For the entries that the last fault left in the outbox. */
const DRAIN_LIMIT_MS = 120_000;

/** A log line for each of five million deliveries would take more space than all other data. */
const ENV = { NODE_ENV: 'production', LOG_LEVEL: 'warn' };

export async function runSoak(options: Run): Promise<void> {
  const { guard, log, seed, signal, write } = options;
  const random = createRandom(seed);
  await using world = await startWorld({
    guard,
    replicas: REPLICAS,
    random: random.fork('world'),
    env: ENV,
    log,
  });
  const stage = await setStage(world, options);
  try {
    write(await startLine(world, options));
    const failures = Promise.race([stage.sender.failed, stage.subscriber.failed]);
    await Promise.race([failures, soak(stage, options)]);
    // Asked to end: everything is being ended, so nothing can be counted.
    if (signal.aborted) return;
    write(await Promise.race([failures, finish(stage, log)]));
  } finally {
    await Promise.all([stage.sender.end('close'), stage.subscriber.end('close')]);
  }
}

async function setStage(world: World, { minutes, ratePerS }: SoakOptions): Promise<Stage> {
  const capacity = freshAtMost(Math.ceil(minutes * 60 * ratePerS) + ratePerS);
  const [acknowledged, received] = [makeBits(capacity), makeBits(capacity)];
  const subscriber = startThread<SubscriberCommand>('subscriber.ts', {
    amqpUrl: world.rabbitmq.url,
    exchange: world.exchange,
    queue: QUEUE,
    run: RUN,
    received,
  } satisfies SubscriberOptions);
  await Promise.race([
    subscriber.failed,
    until('the subscriber listens', async () => (await subscriber.report('report')) ?? undefined, {
      limitMs: READY_LIMIT_MS,
    }),
  ]);
  const sender = startThread<SenderCommand>('sender.ts', {
    ports: world.replicas.map(({ links }) => links.sender.port),
    secret: world.sources.defaultSecret,
    run: RUN,
    ratePerS,
    acknowledged,
  } satisfies SenderOptions);
  return { world, sender, subscriber, acknowledged: openBits(acknowledged), received: openBits(received) };
}

function startThread<Command>(file: string, workerData: unknown): Thread<Command> {
  const worker = new Worker(new URL(file, import.meta.url), { workerData });
  const exited = new Promise<void>((resolve) => {
    worker.once('exit', () => resolve());
  });
  const failed = new Promise<never>((_resolve, reject) => {
    worker.once('error', (error) => reject(new Error(`${file} failed`, { cause: error })));
  });
  // It is handled where it is raced; until then it must not count as unhandled.
  failed.catch(() => {});
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  const send = (command: Command) => worker.postMessage(command);
  return {
    send,
    failed,
    report: async <Report>(command: Command) => {
      const { promise, resolve } = Promise.withResolvers<Report | null>();
      const timer = setTimeout(resolve, REPORT_LIMIT_MS, null);
      worker.once('message', resolve);
      send(command);
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        worker.off('message', resolve);
      }
    },
    end: async (command) => {
      send(command);
      await Promise.race([exited, pause(THREAD_END_MS)]);
      await worker.terminate();
    },
  };
}

async function startLine(world: World, options: SoakOptions): Promise<Line> {
  const { minutes, ratePerS, seed, faultEveryS, command } = options;
  const [row] = await world.query<{ server_version: string }>('show server_version');
  const rabbitmq = (await world.rabbitmq.ctl('version')).trim();
  return {
    kind: 'start',
    at: new Date().toISOString(),
    command,
    minutes,
    ratePerS,
    seed,
    faultEveryS,
    machine: `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    versions: {
      Tallyhook: version,
      Node: process.versions.node,
      Postgres: row?.server_version ?? 'unknown',
      RabbitMQ: rabbitmq,
    },
  };
}

/** Runs the load, the faults and the samples. */
async function soak(stage: Stage, options: Run): Promise<void> {
  const { minutes, seed, faultEveryS, write, log } = options;
  const random = createRandom(seed).fork('faults');
  const totalS = minutes * 60;
  const planned = planFaults({ totalS, everyS: faultEveryS, random });
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  const sinceMs = performance.now();
  stage.sender.send('go');
  const faults = playFaults({
    world: stage.world,
    planned,
    random: random.fork('strikes'),
    sinceMs,
    signal,
    isEnding: options.guard.isClosing,
    onSpan: write,
    log,
  });
  try {
    await Promise.race([takeSamples(stage, { totalS, sinceMs, signal, write, log }), ended(faults)]);
    stage.sender.send('stop');
  } finally {
    over.abort();
    await faults;
  }
}

/** Never resolves: only a failure of the faults ends the race. */
async function ended(faults: Promise<void>): Promise<never> {
  await faults;
  return await new Promise<never>(() => {});
}

async function takeSamples(
  stage: Stage,
  options: {
    totalS: number;
    sinceMs: number;
    signal: AbortSignal;
    write: (line: Line) => void;
    log: (line: string) => void;
  },
): Promise<void> {
  const { totalS, sinceMs, signal, write, log } = options;
  // At fixed times: a slow sample does not delay the next ones.
  for (let atS = 0; atS <= totalS; atS += SAMPLE_EVERY_S) {
    while (!signal.aborted && performance.now() < sinceMs + atS * 1_000)
      await pause(Math.min(200, sinceMs + atS * 1_000 - performance.now()));
    if (signal.aborted) return;
    const sample = await takeSample(stage, sinceMs);
    write(sample);
    if (atS % 60 === 0) log(inOneLine(sample));
  }
}

async function takeSample({ world, sender, subscriber }: Stage, sinceMs: number): Promise<Sample> {
  const atS = Math.round((performance.now() - sinceMs) / 100) / 10;
  const [sampled, sent, received] = await Promise.all([
    sampleWorld(world, QUEUE),
    sender.report<SenderSample>('report'),
    subscriber.report<SubscriberSample>('report'),
  ]);
  return {
    kind: 'sample',
    atS,
    ...sampled,
    sender: sent,
    subscriber: received,
    harnessRssBytes: residentBytes(process.pid) ?? 0,
  };
}

function inOneLine({ atS, sender, subscriber, replicas, postgres }: Sample): string {
  const memory = Object.values(replicas).map((replica) =>
    replica?.rssBytes ? `${Math.round(replica.rssBytes / 2 ** 20)}` : '–',
  );
  const depth = Object.values(postgres?.outbox ?? {}).reduce((sum, count) => sum + count, 0);
  return (
    `${atS.toFixed(0).padStart(5)} s  ${sender?.acknowledged ?? '?'} acknowledged, ${subscriber?.distinct ?? '?'} received, ` +
    `p99 ${sender?.p99Ms.toFixed(1) ?? '?'} ms, outbox ${depth}, RSS ${memory.join(' and ')} MiB`
  );
}

/** Waits, within limits, until everything is acknowledged, published and received, and counts. */
async function finish(stage: Stage, log: (line: string) => void): Promise<End> {
  const { world, sender, subscriber, acknowledged, received } = stage;
  const sinceMs = performance.now();
  const noted = (waiting: Promise<unknown>) =>
    waiting.catch((error: unknown) => log(error instanceof Error ? error.message : String(error)));
  await noted(
    until(
      'everything is acknowledged',
      async () => (await sender.report<SenderSample>('report'))?.retrying === 0 || undefined,
      { limitMs: RETRIES_LIMIT_MS },
    ),
  );
  await noted(
    until('the outbox is empty', async () => Object.keys(await outboxOf(world)).length === 0 || undefined, {
      limitMs: DRAIN_LIMIT_MS,
    }),
  );
  const [row] = await world.query<{ count: number }>('select count(*)::int as count from events');
  const events = row?.count ?? 0;
  await noted(
    until(
      'the subscriber has received all',
      async () => (await subscriber.report<SubscriberSample>('report'))?.distinct === events || undefined,
      { limitMs: DRAIN_LIMIT_MS },
    ),
  );
  const last = await subscriber.report<SubscriberSample>('report');
  return {
    kind: 'end',
    acknowledged: acknowledged.count(),
    onTheBus: received.count(),
    lost: acknowledged.without(received),
    unexpected: last?.unexpected ?? Number.NaN,
    copies: last === null ? Number.NaN : last.received - last.distinct - last.unexpected,
    events,
    outbox: await outboxOf(world),
    drainS: Math.round((performance.now() - sinceMs) / 100) / 10,
    unplannedExits: world.exits.filter(({ asked }) => asked === undefined).length,
    errorsLogged: errorsLogged(world),
  };
}

/** The replicas' log lines of level warn and above, counted by their text. */
function errorsLogged(world: World): Record<string, number> {
  const counts: Record<string, number> = {};
  const lines = world.replicas.flatMap((replica) => replica.log().split('\n'));
  for (const line of lines) {
    const [, level] = /"level":"(warn|error|fatal)"/.exec(line) ?? [];
    const [, text] = /"msg":"([^"]*)"/.exec(line) ?? [];
    if (level === undefined) continue;
    const name = `${level}: ${text ?? 'without a text'}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
