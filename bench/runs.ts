// Single runs: one subject with its own processes, database, exchange and queue, under one load. All of these are removed
// afterwards, also after a failure. cases.ts decides which runs are made, how often and in which order.

import { setTimeout as sleep } from 'node:timers/promises';
import { bodyOf, SMALLEST_BODY_BYTES } from './load/notifications.ts';
import type { PublishPlan, PublishReport } from './load/plan.ts';
import {
  exchangeOf,
  type Load,
  measureLoad,
  meter,
  newRun,
  type QueueType,
  startSubscriber,
} from './measure.ts';
import { PGBENCH_CLIENTS, type Pgbench, runPgbench } from './pgbench.ts';
import { type Case, type Figures, type Run, spreadOf, type SubjectName } from './results.ts';
import type { Scale } from './scale.ts';
import type { Stage } from './stage.ts';
import {
  BASELINE_SCHEMA,
  startBaseline,
  startResponder,
  startTallyhook,
  startVerifyRoute,
  type Subject,
} from './subjects.ts';
import { confirmed, sizeOf } from './targets.ts';

export type Bench = {
  readonly stage: Stage;
  readonly scale: Scale;
  readonly runs: readonly Run[];
  readonly profileFolder: string | undefined;
  readonly skip: (what: string) => void;
  /** Runs it, records its figures, and prints a line. A failure is recorded, too, and does not end the benchmark. */
  readonly measure: (run: Omit<Run, 'figures' | 'startedAt'>, work: () => Promise<Figures>) => Promise<void>;
};

/** Of most closed loops: enough for batches to form, and far below any limit. */
export const CONCURRENCY = 64;
/** More than any subject here answers. The rest of the stock is not used. */
const STOCK_PER_S = 12_000;
const STOCK_MAX_BYTES = 1.5 * 1_024 ** 3;
/** The bare responder answers several times what others do. */
const CEILING_STOCK = 300_000;
const USUAL_POOL = 20;
/** The default of RELAY_IN_FLIGHT. */
const PUBLISHER_IN_FLIGHT = 500;
const PUBLISHER_TIMEOUT_MS = 60_000;
/** Time for what a run leaves to do: sessions to close, a last flush. */
const SETTLE_MS = 150;

export type Variation = {
  readonly case: Case;
  readonly variant: string;
  readonly round: number;
  readonly load?: Partial<Load>;
  readonly queueType?: QueueType;
  readonly replicas?: number;
  /** Connections of the baseline. The best number by default. */
  readonly pool?: number;
  /** An existing one, which is kept. */
  readonly database?: string;
};

export function loadOf(bench: Bench, changes: Partial<Load> = {}): Load {
  const { warmUpS, durationS } = bench.scale;
  const load = {
    loop: { kind: 'closed', concurrency: CONCURRENCY },
    bodyBytes: SMALLEST_BODY_BYTES,
    duplicateShare: 0,
    warmUpS,
    durationS,
    ...changes,
  } as const;
  const perS = load.loop.kind === 'open' ? load.loop.ratePerS : STOCK_PER_S;
  const wanted = perS * (load.warmUpS + load.durationS) * (1 - load.duplicateShare) + 5_000;
  return { stock: Math.ceil(Math.min(wanted, STOCK_MAX_BYTES / (load.bodyBytes + 250))), ...load };
}

/** The pool size with which the baseline was fastest; the usual size if that was not measured. */
export function bestPool(runs: readonly Run[]): number {
  const sizes = [...new Set(runs.filter((run) => run.case === 'tuning').map(({ variant }) => variant))];
  const rate = (variant: string) => spreadOf(runs, { case: 'tuning', variant }, confirmed)?.median ?? 0;
  const best = sizes.toSorted((a, b) => rate(b) - rate(a))[0];
  return best === undefined ? USUAL_POOL : sizeOf(best);
}

/** The generator against the bare responder. */
export function runCeiling(bench: Bench, variation: Variation): Promise<void> {
  return runSubject(bench, variation, {
    subject: 'generator',
    role: 'responder',
    stock: CEILING_STOCK,
    start: () => startResponder(bench.stage),
  });
}

export function runTallyhook(bench: Bench, variation: Variation): Promise<void> {
  return runSubject(bench, variation, {
    subject: 'tallyhook',
    hasSubscriber: true,
    start: (arena) => startTallyhookIn(arena, bench, variation),
  });
}

/** To be called while the broker is stopped. */
export function runTallyhookWithoutBroker(bench: Bench, variation: Variation): Promise<void> {
  return runSubject(bench, variation, {
    subject: 'tallyhook, broker down',
    role: 'tallyhook',
    start: (arena) => startTallyhookIn(arena, bench, variation),
  });
}

/** On `database`, or on a new one that is dropped after the run. */
export async function startTallyhookIn(
  { run, cleanup }: Arena,
  { stage, profileFolder }: Bench,
  {
    database,
    replicas = 1,
    logFile,
  }: Pick<Variation, 'database' | 'replicas'> & { readonly logFile?: string } = {},
): Promise<Subject> {
  return startTallyhook(stage, {
    databaseUrl: database ? stage.databases.url(database) : await createRunDatabase(cleanup, stage, run),
    amqpUrl: stage.rabbitmq.url,
    exchange: exchangeOf(run),
    replicas,
    profileFolder,
    logFile,
  });
}

export function runBaseline(bench: Bench, variation: Variation): Promise<void> {
  const { stage } = bench;
  return runSubject(bench, variation, {
    subject: 'baseline',
    hasSubscriber: true,
    start: async ({ run, cleanup }) => {
      const databaseUrl = await createRunDatabase(cleanup, stage, run, 'template0');
      await stage.databases.run(databaseName(run), [BASELINE_SCHEMA]);
      return startBaseline(stage, {
        databaseUrl,
        databaseConnections: variation.pool ?? bestPool(bench.runs),
        amqpUrl: stage.rabbitmq.url,
        exchange: exchangeOf(run),
      });
    },
  });
}

export function runVerifyRoute(bench: Bench, variation: Variation): Promise<void> {
  return runSubject(bench, variation, {
    subject: 'verify route',
    start: () => startVerifyRoute(bench.stage),
  });
}

/** A run's name, and what is removed after it. */
type Arena = { readonly run: string; readonly cleanup: AsyncDisposableStack };

/** Starts a subject, measures it under the variation's load, and ends it. */
async function runSubject(
  bench: Bench,
  variation: Variation,
  options: {
    subject: SubjectName;
    /** The name of its processes in the table of CPU times. The subject's by default. */
    role?: string;
    hasSubscriber?: boolean;
    stock?: number;
    start: (arena: Arena) => Promise<Subject>;
  },
): Promise<void> {
  const { stage } = bench;
  const { role = options.subject, hasSubscriber = false, stock } = options;
  await bench.measure({ ...nameOf(variation), subject: options.subject }, async () => {
    const run = newRun();
    await using cleanup = new AsyncDisposableStack();
    const subscriber = hasSubscriber
      ? endAfter(cleanup, await startSubscriber(stage, run, variation.queueType ?? 'quorum'))
      : undefined;
    const { ports, pids } = endAfter(cleanup, await options.start({ run, cleanup }));
    return await measureLoad(stage, {
      load: { ...loadOf(bench, variation.load), ...(stock !== undefined && { stock }) },
      run,
      ports,
      subject: { name: role, pids },
      ...(subscriber && { subscriber }),
    });
  });
}

export async function runPublisher(bench: Bench, variation: Variation): Promise<void> {
  const { stage, scale } = bench;
  await bench.measure({ ...nameOf(variation), subject: 'confirm publisher' }, async () => {
    const run = newRun();
    await using cleanup = new AsyncDisposableStack();
    const subscriber = endAfter(cleanup, await startSubscriber(stage, run, variation.queueType ?? 'quorum'));
    const env = { AMQP_URL: stage.rabbitmq.url, EXCHANGE: exchangeOf(run) };
    const publisher = endAfter(cleanup, await stage.parts.start('rivals/confirm-publisher.ts', env));
    const { warmUpS, durationS } = scale;
    const plan: PublishPlan = {
      run,
      bodyBytes: SMALLEST_BODY_BYTES,
      inFlight: PUBLISHER_IN_FLIGHT,
      warmUpS,
      durationS,
    };
    const ready = publisher.next('ready', PUBLISHER_TIMEOUT_MS);
    publisher.tell('plan', plan);
    await ready;
    const usage = meter(stage, { 'confirm publisher': [publisher.pid] }, subscriber);
    const done = publisher.next<PublishReport>('done', PUBLISHER_TIMEOUT_MS + (warmUpS + durationS) * 1_000);
    publisher.tell('go');
    const before = await publisher.next<number>('window', PUBLISHER_TIMEOUT_MS);
    usage.begin();
    const report = await done;
    await subscriber.until('received', report.confirmed);
    return {
      confirmedPerS: report.confirmedPerS,
      answer: report.latency,
      cpuMsPer1000: usage.end(report.confirmed - before),
    };
  });
}

export async function runPgbenchInserts(bench: Bench, pgbench: Pgbench, round: number): Promise<void> {
  const { stage, scale } = bench;
  const name = { case: 'intake', subject: 'pgbench', variant: `${PGBENCH_CLIENTS} clients`, round } as const;
  await bench.measure(name, async () => {
    const run = newRun();
    await using cleanup = new AsyncDisposableStack();
    const databaseUrl = await createRunDatabase(cleanup, stage, run, 'template0');
    await stage.databases.run(databaseName(run), [BASELINE_SCHEMA]);
    const body = bodyOf(run, 2, SMALLEST_BODY_BYTES);
    // The warm-up, whose figures are not used.
    await runPgbench(stage, pgbench, { databaseUrl, body, seconds: Math.ceil(scale.warmUpS) });
    await stage.databases.run(databaseName(run), ['truncate webhook_events']);
    return await runPgbench(stage, pgbench, { databaseUrl, body, seconds: Math.ceil(scale.durationS) });
  });
}

/** Ends the part after the run, also after a failure, and before the parts that were started earlier. */
export function endAfter<T extends { readonly end: () => Promise<void> }>(
  cleanup: AsyncDisposableStack,
  part: T,
): T {
  cleanup.defer(async () => {
    await part.end();
    await sleep(SETTLE_MS);
  });
  return part;
}

/** Creates the run's database, which is dropped after the run. @returns its URL */
export async function createRunDatabase(
  cleanup: AsyncDisposableStack,
  { databases }: Stage,
  run: string,
  template?: 'template0',
): Promise<string> {
  cleanup.defer(() => databases.drop(databaseName(run)));
  return databases.create(databaseName(run), template);
}

export const databaseName = (run: string) => `bench_${run}`;

function nameOf({ case: name, variant, round }: Variation): Pick<Run, 'case' | 'variant' | 'round'> {
  return { case: name, variant, round };
}
