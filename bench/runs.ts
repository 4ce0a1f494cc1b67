// Single runs: one subject with processes, database, exchange and queue of its own, under one load. Whatever
// happens, all of it is gone afterwards. Which runs are made, how often and in which order, is for cases.ts to say.

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
  /** Runs it, keeps its figures, and prints a line. A failure is kept too and does not end the benchmark. */
  readonly measure: (run: Omit<Run, 'figures' | 'startedAt'>, work: () => Promise<Figures>) => Promise<void>;
};

/** Where most of a closed loop's cases are measured: enough that batches form, far below any limit. */
export const CONCURRENCY = 64;
/** More than any subject here answers; what is not needed is thrown away. */
const STOCK_PER_S = 12_000;
const STOCK_MAX_BYTES = 1.5 * 1_024 ** 3;
/** The bare responder answers several times what others do. */
const CEILING_STOCK = 300_000;
const USUAL_POOL = 20;
/** As many unconfirmed as RELAY_IN_FLIGHT has for its default. */
const PUBLISHER_IN_FLIGHT = 500;
const PUBLISHER_TIMEOUT_MS = 60_000;
/** For what a run leaves behind: closing sessions, a last flush. */
const SETTLE_MS = 150;

export type Variation = {
  readonly case: Case;
  readonly variant: string;
  readonly round: number;
  readonly load?: Partial<Load>;
  readonly queueType?: QueueType;
  readonly replicas?: number;
  /** Connections of the baseline; otherwise as many as did best. */
  readonly pool?: number;
  /** One that is there already, and stays. */
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

/** The size with which the baseline did best; the usual one where that was not measured. */
export function bestPool(runs: readonly Run[]): number {
  const sizes = [...new Set(runs.filter((run) => run.case === 'tuning').map(({ variant }) => variant))];
  const rate = (variant: string) => spreadOf(runs, { case: 'tuning', variant }, confirmed)?.median ?? 0;
  const best = sizes.toSorted((a, b) => rate(b) - rate(a))[0];
  return best === undefined ? USUAL_POOL : sizeOf(best);
}

/** The generator against the least that can answer. */
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

/** While the broker is stopped. */
export function runTallyhookWithoutBroker(bench: Bench, variation: Variation): Promise<void> {
  return runSubject(bench, variation, {
    subject: 'tallyhook, broker down',
    role: 'tallyhook',
    start: (arena) => startTallyhookIn(arena, bench, variation),
  });
}

/** Without `database`, in a new one that goes with the run. */
export async function startTallyhookIn(
  { run, held }: Arena,
  { stage, profileFolder }: Bench,
  {
    database,
    replicas = 1,
    logFile,
  }: Pick<Variation, 'database' | 'replicas'> & { readonly logFile?: string } = {},
): Promise<Subject> {
  return startTallyhook(stage, {
    databaseUrl: database ? stage.databases.url(database) : await holdDatabase(held, stage, run),
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
    start: async ({ run, held }) => {
      const databaseUrl = await holdDatabase(held, stage, run, 'template0');
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

/** What a run has for itself, and what goes with it. */
type Arena = { readonly run: string; readonly held: AsyncDisposableStack };

/** One subject, from its start to its end, under the variation's load. */
async function runSubject(
  bench: Bench,
  variation: Variation,
  options: {
    subject: SubjectName;
    /** What its processes are called where CPU is told; otherwise as the subject is. */
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
    await using held = new AsyncDisposableStack();
    const subscriber = hasSubscriber
      ? hold(held, await startSubscriber(stage, run, variation.queueType ?? 'quorum'))
      : undefined;
    const { ports, pids } = hold(held, await options.start({ run, held }));
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
    await using held = new AsyncDisposableStack();
    const subscriber = hold(held, await startSubscriber(stage, run, variation.queueType ?? 'quorum'));
    const env = { AMQP_URL: stage.rabbitmq.url, EXCHANGE: exchangeOf(run) };
    const publisher = hold(held, await stage.parts.start('rivals/confirm-publisher.ts', env));
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
    await using held = new AsyncDisposableStack();
    const databaseUrl = await holdDatabase(held, stage, run, 'template0');
    await stage.databases.run(databaseName(run), [BASELINE_SCHEMA]);
    const body = bodyOf(run, 2, SMALLEST_BODY_BYTES);
    // Its warm-up, thrown away.
    await runPgbench(stage, pgbench, { databaseUrl, body, seconds: Math.ceil(scale.warmUpS) });
    await stage.databases.run(databaseName(run), ['truncate webhook_events']);
    return await runPgbench(stage, pgbench, { databaseUrl, body, seconds: Math.ceil(scale.durationS) });
  });
}

/** Ends with the run, whatever becomes of it, and before what was held earlier. */
export function hold<T extends { readonly end: () => Promise<void> }>(
  held: AsyncDisposableStack,
  part: T,
): T {
  held.defer(async () => {
    await part.end();
    await sleep(SETTLE_MS);
  });
  return part;
}

/** @returns its URL. */
export async function holdDatabase(
  held: AsyncDisposableStack,
  { databases }: Stage,
  run: string,
  template?: 'template0',
): Promise<string> {
  held.defer(() => databases.drop(databaseName(run)));
  return databases.create(databaseName(run), template);
}

export const databaseName = (run: string) => `bench_${run}`;

function nameOf({ case: name, variant, round }: Variation): Pick<Run, 'case' | 'variant' | 'round'> {
  return { case: name, variant, round };
}
