// Single runs: one subject with its own processes, database, exchange and queue, under one load. All of these are removed
// afterwards, also after a failure. cases.ts decides which runs are made, how often and in which order.

import { type Arena, createRunDatabase, databaseName, endAfter } from './arena.ts';
import { SMALLEST_BODY_BYTES } from './load/notifications.ts';
import { type Load, measureLoad } from './measure.ts';
import type { Figures, Run, RunCase, SubjectName } from './results.ts';
import type { Scale } from './scale.ts';
import type { Stage } from './stage.ts';
import { exchangeOf, newRun, type QueueType, startSubscriber } from './subscribing.ts';
import {
  BASELINE_SCHEMA,
  startBaseline,
  startResponder,
  startTallyhook,
  startVerifyRoute,
  type Subject,
} from './subjects.ts';

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
/** More than any subject here answers, in all and on one connection. The rest of the stock is not used. */
const STOCK_PER_S = 15_000;
const STOCK_PER_CONNECTION_S = 3_000;
const STOCK_MAX_BYTES = 1.5 * 1_024 ** 3;
/** The bare responder answers several times what others do. */
const CEILING_STOCK = 300_000;

/** RabbitMQ behind a proxy, whose process is measured, too. */
export type FarBroker = { readonly url: string; readonly pid: number };

export type Variation = {
  readonly case: RunCase;
  readonly variant: string;
  readonly round: number;
  readonly load?: Partial<Load>;
  readonly queueType?: QueueType;
  readonly replicas?: number;
  /** Connections of the baseline. */
  readonly pool?: number;
  /** Instead of the stage's. */
  readonly broker?: FarBroker;
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
  const { loop } = load;
  const perS =
    loop.kind === 'open' ? loop.ratePerS : Math.min(STOCK_PER_S, loop.concurrency * STOCK_PER_CONNECTION_S);
  const wanted = perS * (load.warmUpS + load.durationS) * (1 - load.duplicateShare) + 5_000;
  return { stock: Math.ceil(Math.min(wanted, STOCK_MAX_BYTES / (load.bodyBytes + 250))), ...load };
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
    hasDatabase: true,
    start: (arena) => startTallyhookIn(arena, bench, variation),
  });
}

/** To be called while the broker is stopped. */
export function runTallyhookWithoutBroker(bench: Bench, variation: Variation): Promise<void> {
  return runSubject(bench, variation, {
    subject: 'tallyhook, broker down',
    role: 'tallyhook',
    hasDatabase: true,
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
    broker,
    logFile,
  }: Pick<Variation, 'database' | 'replicas' | 'broker'> & { readonly logFile?: string } = {},
): Promise<Subject> {
  return startTallyhook(stage, {
    databaseUrl: database ? stage.databases.url(database) : await createRunDatabase(cleanup, stage, run),
    amqpUrl: (broker ?? stage.rabbitmq).url,
    exchange: exchangeOf(run),
    replicas,
    profileFolder,
    logFile,
  });
}

/** With `variation.pool` connections to Postgres. */
export function runBaseline(bench: Bench, variation: Variation & { readonly pool: number }): Promise<void> {
  const { stage } = bench;
  const { pool, broker = stage.rabbitmq } = variation;
  return runSubject(bench, variation, {
    subject: 'baseline',
    hasSubscriber: true,
    hasDatabase: true,
    start: async ({ run, cleanup }) => {
      const databaseUrl = await createRunDatabase(cleanup, stage, run, 'template0');
      await stage.databases.run(databaseName(run), [BASELINE_SCHEMA]);
      return startBaseline(stage, {
        databaseUrl,
        databaseConnections: pool,
        amqpUrl: broker.url,
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

/** Starts a subject, measures it under the variation's load, and ends it. */
async function runSubject(
  bench: Bench,
  variation: Variation,
  options: {
    subject: SubjectName;
    /** The name of its processes in the table of CPU times. The subject's by default. */
    role?: string;
    hasSubscriber?: boolean;
    hasDatabase?: boolean;
    stock?: number;
    start: (arena: Arena) => Promise<Subject>;
  },
): Promise<void> {
  const { stage } = bench;
  const { pool, broker, database } = variation;
  const { role = options.subject, hasSubscriber = false, hasDatabase = false, stock } = options;
  await bench.measure({ ...nameOf(variation), subject: options.subject }, async () => {
    const run = newRun();
    await using cleanup = new AsyncDisposableStack();
    const subscriber = hasSubscriber
      ? endAfter(cleanup, await startSubscriber(stage, run, variation.queueType ?? 'quorum'))
      : undefined;
    const { ports, pids } = endAfter(cleanup, await options.start({ run, cleanup }));
    const figures = await measureLoad(stage, {
      load: { ...loadOf(bench, variation.load), ...(stock !== undefined && { stock }) },
      run,
      ports,
      subject: { name: role, pids },
      ...(subscriber && { subscriber }),
      ...(hasDatabase && { database: database ?? databaseName(run) }),
      ...(broker && { roles: { proxy: [broker.pid] } }),
    });
    return { ...figures, ...(pool !== undefined && { pool }) };
  });
}

export function nameOf({ case: name, variant, round }: Variation): Pick<Run, 'case' | 'variant' | 'round'> {
  return { case: name, variant, round };
}
