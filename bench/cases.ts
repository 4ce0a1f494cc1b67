// The cases: what is compared with what, under which load, how often and in which order. Subjects that are compared take turns
// (A B A B). A case that only shows a tendency is measured once.

import { withstandFloods } from './floods.ts';
import { drainBacklog, sitOutOutage } from './long-cases.ts';
import { findPgbench, type Pgbench } from './pgbench.ts';
import { type Case, type Run, spreadOf, type SubjectName } from './results.ts';
import {
  type Bench,
  CONCURRENCY,
  runBaseline,
  runCeiling,
  runPgbenchInserts,
  runPublisher,
  runTallyhook,
  runTallyhookWithoutBroker,
  runVerifyRoute,
  type Variation,
} from './runs.ts';
import { seedLedger } from './seed.ts';

const OPEN_CONNECTIONS = 256;
const CEILING_S = 4;

export const CASE_WORK: Readonly<Record<Case, (bench: Bench) => Promise<void>>> = {
  ceiling,
  tuning,
  bus,
  intake,
  concurrency,
  rates,
  growth,
  replicas,
  payload,
  duplicates,
  queues,
  backlog: drainBacklog,
  outage: sitOutOutage,
  floods: withstandFloods,
};

const connectionsLabel = (count: number) => `${count} connections`;
const eventsLabel = (count: number) => `${count.toLocaleString('en')} events`;
const bodyLabel = (bytes: number) => `${bytes / 1_024} KiB`;
const duplicatesLabel = (share: number) => `${share * 100} % duplicates`;
const replicasLabel = (count: number) => `${count} ${count === 1 ? 'replica' : 'replicas'}`;
const shareLabel = (share: number) => `${share * 100} % of the peak`;

async function ceiling(bench: Bench): Promise<void> {
  for (const round of rounds(bench)) {
    const load = { durationS: Math.min(CEILING_S, bench.scale.durationS) };
    await runCeiling(bench, { case: 'ceiling', variant: connectionsLabel(CONCURRENCY), round, load });
  }
}

/** Finds the baseline's best pool size, which it has from here on. */
async function tuning(bench: Bench): Promise<void> {
  for (const round of rounds(bench).slice(0, 2))
    for (const pool of bench.scale.pools)
      await runBaseline(bench, { case: 'tuning', variant: `pool of ${pool}`, round, pool });
}

/** Tallyhook and the baseline with events on the bus, and for comparison the bare publisher and the bare route. */
async function bus(bench: Bench): Promise<void> {
  for (const round of rounds(bench)) {
    const variation = { case: 'bus', variant: connectionsLabel(CONCURRENCY), round } as const;
    await runTallyhook(bench, variation);
    await runBaseline(bench, variation);
    await runVerifyRoute(bench, variation);
    await runPublisher(bench, variation);
  }
}

/** The write to Postgres alone: the broker is stopped for all. */
async function intake(bench: Bench): Promise<void> {
  const pgbench = pgbenchOrSkip(bench);
  await bench.stage.rabbitmq.stop();
  try {
    for (const round of rounds(bench)) {
      const variation = { case: 'intake', variant: connectionsLabel(CONCURRENCY), round } as const;
      await runTallyhookWithoutBroker(bench, variation);
      if (pgbench !== undefined) await runPgbenchInserts(bench, pgbench, round);
      await runVerifyRoute(bench, variation);
    }
  } finally {
    await bench.stage.rabbitmq.start();
  }
}

async function concurrency(bench: Bench): Promise<void> {
  for (const count of bench.scale.concurrencies) {
    const load = { loop: { kind: 'closed', concurrency: count } } as const;
    const variation = { case: 'concurrency', variant: connectionsLabel(count), round: 1, load } as const;
    await runBeside(bench, variation);
  }
}

/** Open loop, at shares of the highest rate of a closed loop. The baseline's shares are of its own highest rate. */
async function rates(bench: Bench): Promise<void> {
  const known = () => peakOf(bench.runs, 'tallyhook');
  if (known() === undefined)
    await runTallyhook(bench, { case: 'rates', variant: connectionsLabel(CONCURRENCY), round: 1 });
  const ownPeak = known();
  if (ownPeak === undefined) throw new Error('without a peak there are no shares of it');
  const baselinePeak = peakOf(bench.runs, 'baseline');
  for (const share of bench.scale.shares) {
    // The share with a target is measured as often as what it is compared with.
    for (const round of share === 0.5 ? rounds(bench) : [1]) {
      const at = (peak: number) => ({
        loop: { kind: 'open', ratePerS: Math.round(peak * share), connections: OPEN_CONNECTIONS } as const,
      });
      const variation = { case: 'rates', variant: shareLabel(share), round } as const;
      await runTallyhook(bench, { ...variation, load: at(ownPeak) });
      if (bench.scale.withBaseline && share === 0.5 && baselinePeak !== undefined)
        await runBaseline(bench, { ...variation, load: at(baselinePeak) });
    }
  }
}

function peakOf(runs: readonly Run[], subject: SubjectName): number | undefined {
  const found = (['bus', 'concurrency', 'rates'] as const).flatMap((each) => {
    const closed = runs.filter((run) => run.case === each && run.variant.endsWith('connections'));
    return [...new Set(closed.map(({ variant }) => variant))].flatMap(
      (variant) =>
        spreadOf(closed, { case: each, subject, variant }, ({ acksPerS }) => acksPerS)?.median ?? [],
    );
  });
  return found.length === 0 ? undefined : Math.max(...found);
}

/** Ledgers with history, made beforehand, which take turns. */
async function growth(bench: Bench): Promise<void> {
  const { databases } = bench.stage;
  const names = new Map(bench.scale.ledgers.map((events) => [events, `bench_past_${events}`]));
  try {
    for (const [events, name] of names) {
      await databases.create(name);
      if (events > 0) await seedLedger(bench.stage, name, events);
    }
    for (const round of rounds(bench))
      for (const [events, database] of names)
        await runTallyhook(bench, { case: 'growth', variant: eventsLabel(events), round, database });
  } finally {
    for (const name of names.values()) await databases.drop(name);
  }
}

async function replicas(bench: Bench): Promise<void> {
  for (const round of rounds(bench).slice(0, 2))
    for (const count of bench.scale.replicas)
      await runTallyhook(bench, { case: 'replicas', variant: replicasLabel(count), round, replicas: count });
}

async function payload(bench: Bench): Promise<void> {
  for (const bodyBytes of bench.scale.bodies) {
    const variation = {
      case: 'payload',
      variant: bodyLabel(bodyBytes),
      round: 1,
      load: { bodyBytes },
    } as const;
    await runBeside(bench, variation);
  }
}

async function duplicates(bench: Bench): Promise<void> {
  for (const share of bench.scale.duplicates) {
    const load = { duplicateShare: share };
    const variation = { case: 'duplicates', variant: duplicatesLabel(share), round: 1, load } as const;
    await runBeside(bench, variation);
  }
}

async function queues(bench: Bench): Promise<void> {
  for (const queueType of bench.scale.queues) {
    const variation = { case: 'queues', variant: queueType, round: 1, queueType } as const;
    await runBeside(bench, variation);
    if (bench.scale.withBaseline) await runPublisher(bench, variation);
  }
}

async function runBeside(bench: Bench, variation: Variation): Promise<void> {
  await runTallyhook(bench, variation);
  if (bench.scale.withBaseline) await runBaseline(bench, variation);
}

function pgbenchOrSkip(bench: Bench): Pgbench | undefined {
  try {
    return findPgbench();
  } catch (error) {
    bench.skip(`pgbench: ${(error as Error).message}`);
    return undefined;
  }
}

function rounds({ scale }: Bench): number[] {
  return Array.from({ length: scale.rounds }, (_, index) => index + 1);
}
