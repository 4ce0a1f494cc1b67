// The cases: what is compared with what, under which load, how often and in which order. Subjects that are compared take turns.
// A case that only shows a tendency is measured once.

import { withstandFloods } from './floods.ts';
import { drainBacklog, sitOutOutage } from './long-cases.ts';
import { findPgbench, type Pgbench } from './pgbench.ts';
import { bestPool, choosePool, compare, loadName, takeTurns } from './compare.ts';
import { peakOf } from './peaks.ts';
import type { Case } from './results.ts';
import { runPgbenchInserts, runPublisher } from './rival-runs.ts';
import {
  type Bench,
  CONCURRENCY,
  runBaseline,
  runCeiling,
  runTallyhook,
  runTallyhookWithoutBroker,
  runVerifyRoute,
} from './runs.ts';
import { DISTANCE_MS, LONE, LONE_PER_S } from './scale.ts';
import { seedLedger } from './seed.ts';
import { withDistance, withSlowCommits } from './slow-servers.ts';

const OPEN_CONNECTIONS = 256;
const CEILING_S = 4;

export const CASE_WORK: Readonly<Record<Case, (bench: Bench) => Promise<void>>> = {
  ceiling,
  bus,
  intake,
  concurrency,
  lone,
  commits,
  distance,
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

/** So many connections, each of which sends its next notification when it has its answer. */
const closedBy = (count: number) => ({
  variant: connectionsLabel(count),
  load: { loop: { kind: 'closed', concurrency: count } as const },
});
const connectionsLabel = (count: number) =>
  `${count.toLocaleString('en')} ${count === 1 ? 'connection' : 'connections'}`;
const eventsLabel = (count: number) => `${count.toLocaleString('en')} events`;
const bodyLabel = (bytes: number) => `${bytes / 1_024} KiB`;
const duplicatesLabel = (share: number) => `${Math.round(share * 100)} % duplicates`;
const replicasLabel = (count: number) => `${count} ${count === 1 ? 'replica' : 'replicas'}`;
const commitsLabel = (delayMs: number, connections: number) =>
  `${delayMs} ms longer, ${connectionsLabel(connections)}`;
const shareLabel = (share: number) => `${share * 100} % of the peak`;

async function ceiling(bench: Bench): Promise<void> {
  for (const round of rounds(bench)) {
    const load = { durationS: Math.min(CEILING_S, bench.scale.durationS) };
    await runCeiling(bench, { case: 'ceiling', variant: connectionsLabel(CONCURRENCY), round, load });
  }
}

/** Tallyhook and the baseline with events on the bus, and for comparison the bare publisher and the bare route. */
async function bus(bench: Bench): Promise<void> {
  const variation = { case: 'bus', variant: connectionsLabel(CONCURRENCY) } as const;
  await compare(bench, { ...variation, load: { warmUpS: bench.scale.longWarmUpS } }, bench.scale.rounds);
  for (const round of rounds(bench)) {
    await runVerifyRoute(bench, { ...variation, round });
    await runPublisher(bench, { ...variation, round });
  }
}

/** The write to Postgres alone: the broker is stopped for all. */
async function intake(bench: Bench): Promise<void> {
  const pgbench = pgbenchOrSkip(bench);
  await bench.stage.rabbitmq.stop();
  try {
    const ours = bench.scale.intakes.map((count) => {
      return (round: number) =>
        runTallyhookWithoutBroker(bench, { case: 'intake', round, ...closedBy(count) });
    });
    const theirs = pgbench === undefined ? [] : [(round: number) => runPgbenchInserts(bench, pgbench, round)];
    await takeTurns(bench.scale.rounds, [...ours, ...theirs]);
  } finally {
    await bench.stage.rabbitmq.start();
  }
}

async function concurrency(bench: Bench): Promise<void> {
  for (const count of bench.scale.concurrencies)
    await compare(bench, { case: 'concurrency', ...closedBy(count) }, bench.scale.rounds);
}

/** A delivery now and then, which finds nothing to share a write with. */
async function lone(bench: Bench): Promise<void> {
  const loop = { kind: 'open', ratePerS: LONE_PER_S, connections: 1 } as const;
  const comparison = { case: 'lone', variant: LONE, load: { loop } } as const;
  await compare(bench, comparison, bench.scale.rounds);
}

/** With a disk that takes longer, such as one over a network. */
async function commits(bench: Bench): Promise<void> {
  for (const delayMs of new Set(bench.scale.commits.map((each) => each.delayMs)))
    await withSlowCommits(bench, delayMs, async () => {
      for (const { connections } of bench.scale.commits.filter((each) => each.delayMs === delayMs)) {
        const { load } = closedBy(connections);
        const variant = commitsLabel(delayMs, connections);
        await compare(bench, { case: 'commits', variant, load }, bench.scale.rounds);
      }
    });
}

/** With Postgres and RabbitMQ on other machines. */
async function distance(bench: Bench): Promise<void> {
  await withDistance(bench, DISTANCE_MS, async (broker) => {
    for (const count of bench.scale.distances)
      await compare(bench, { case: 'distance', ...closedBy(count), broker }, bench.scale.rounds);
  });
}

/** Open loop, at shares of the highest rate of a closed loop. The baseline's shares are of its own highest rate. */
async function rates(bench: Bench): Promise<void> {
  if (peakOf(bench.runs, 'tallyhook') === undefined)
    await compare(bench, { case: 'rates', ...closedBy(CONCURRENCY) }, 1);
  const [own, theirs] = [peakOf(bench.runs, 'tallyhook'), peakOf(bench.runs, 'baseline')];
  if (own === undefined || theirs === undefined) throw new Error('without a peak there are no shares of it');
  const pool = bestPool(bench.runs, loadName(theirs)) ?? (await choosePool(bench, theirs));
  for (const share of bench.scale.shares) {
    const at = (perS: number) => ({
      loop: { kind: 'open', ratePerS: Math.round(perS * share), connections: OPEN_CONNECTIONS } as const,
    });
    const variation = { case: 'rates', variant: shareLabel(share) } as const;
    const ours = (round: number) => runTallyhook(bench, { ...variation, round, load: at(own.perS) });
    const baseline = (round: number) =>
      runBaseline(bench, { ...variation, round, load: at(theirs.perS), pool });
    // The share with a target is compared.
    if (share === 0.5) await takeTurns(bench.scale.rounds, [ours, baseline]);
    else await ours(1);
  }
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
    const ledgers = [...names].map(([events, database]) => {
      const variation = { case: 'growth', variant: eventsLabel(events), database } as const;
      return (round: number) => runTallyhook(bench, { ...variation, round });
    });
    await takeTurns(bench.scale.rounds, ledgers);
  } finally {
    for (const name of names.values()) await databases.drop(name);
  }
}

async function replicas(bench: Bench): Promise<void> {
  const counts = bench.scale.replicas.map((count) => {
    const variation = { case: 'replicas', variant: replicasLabel(count), replicas: count } as const;
    return (round: number) => runTallyhook(bench, { ...variation, round });
  });
  await takeTurns(Math.min(2, bench.scale.rounds), counts);
}

async function payload(bench: Bench): Promise<void> {
  for (const bodyBytes of bench.scale.bodies) {
    const load = { bodyBytes };
    // The largest has a target.
    const times = bodyBytes === Math.max(...bench.scale.bodies) ? bench.scale.rounds : 1;
    await compare(bench, { case: 'payload', variant: bodyLabel(bodyBytes), load }, times);
  }
}

async function duplicates(bench: Bench): Promise<void> {
  for (const share of bench.scale.duplicates) {
    const load = { duplicateShare: share };
    const times = share === Math.max(...bench.scale.duplicates) ? bench.scale.rounds : 1;
    await compare(bench, { case: 'duplicates', variant: duplicatesLabel(share), load }, times);
  }
}

async function queues(bench: Bench): Promise<void> {
  for (const queueType of bench.scale.queues) {
    const comparison = { case: 'queues', variant: queueType, queueType } as const;
    await compare(bench, comparison, 1);
    await runPublisher(bench, { ...comparison, round: 1 });
  }
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
