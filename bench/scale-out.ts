// `npm run bench -- --scale-out`: what lies beyond one replica, in parts that two cores can show. How much 2, 4 and 8 replicas do of
// one, each limited to a small share of a core, so that cores stay free; what one leader's relay publishes alone, beside a bare
// publisher; and what an event costs the intake and the relay, which the model of scale-out-report.ts reckons with.

import { setTimeout as sleep } from 'node:timers/promises';
import { newToken } from '../test/support/operators.ts';
import { readMetric } from '../test/support/requests.ts';
import { createRunDatabase, databaseName, endAfter } from './arena.ts';
import { takeTurns } from './compare.ts';
import { SMALLEST_BODY_BYTES } from './load/notifications.ts';
import { type Load, measureLoad } from './measure.ts';
import { createMeter } from './meter.ts';
import { findQuotas, type Quota, type Quotas } from './quotas.ts';
import type { Figures } from './results.ts';
import { runPublisher } from './rival-runs.ts';
import { type Bench, runTallyhook, runTallyhookWithoutBroker, startTallyhookIn } from './runs.ts';
import { FULL, QUICK, type Scale } from './scale.ts';
import { seedBacklog } from './seed.ts';
import type { Stage } from './stage.ts';
import { startTallyhook, type Subject } from './subjects.ts';
import { exchangeOf, newRun, type QueueType, startSubscriber } from './subscribing.ts';
import { machineBusySeconds, resetPeak } from './usage.ts';
import { warmUpClosed } from './warm-up.ts';

/** For the sessions of nine replicas, 20 each, and our own. */
export const SCALE_OUT_POSTGRES = { max_connections: '220' } as const;

/** Replicas with a quota that share the deliveries. */
type Setup = {
  readonly count: number;
  /** One more replica leads. It has no quota, and gets no deliveries. */
  readonly hasFreeLeader?: boolean;
};

export type ScaleOutScale = {
  readonly bench: Scale;
  readonly setups: readonly Setup[];
  /** For each replica. They share two cores, so several take as many times as long. A few get more, or one would be colder than eight. */
  readonly warmUpS: number;
  readonly warmUpMinS: number;
  readonly windowS: number;
  readonly entries: number;
};

export const SCALE_OUT_FULL: ScaleOutScale = {
  bench: { ...FULL, rounds: 2, warmUpS: 16 },
  setups: [{ count: 1 }, { count: 2 }, { count: 4 }, { count: 8 }, { count: 8, hasFreeLeader: true }],
  warmUpS: 4,
  warmUpMinS: 12,
  windowS: 8,
  entries: 240_000,
};
export const SCALE_OUT_QUICK: ScaleOutScale = {
  bench: QUICK,
  setups: [{ count: 1 }, { count: 8 }, { count: 8, hasFreeLeader: true }],
  warmUpS: 1,
  warmUpMinS: 1,
  windowS: 3,
  entries: 40_000,
};

/** Of a core, for each replica: with 8 of them and all else that their events need, more than half of two cores stays free. */
export const QUOTA = 0.05;
/** Of each replica, however many there are: the same load on each, in batches of the same size. */
const CONNECTIONS = 32;
/** After the limit begins, until answers come at its pace. */
const SETTLE_S = 3;
/** More than a replica answers at its quota. */
const STOCK_PER_REPLICA_S = 800;
/** The relay's warm-up, as a share of the backlog. */
const WARM_SHARE = 0.5;
const SESSIONS_EVERY_MS = 250;

export async function measureScaleOut(bench: Bench, scale: ScaleOutScale): Promise<void> {
  const quotas = quotasOrSkip(bench);
  if (quotas !== undefined)
    for (let round = 1; round <= scale.bench.rounds; round++)
      await measureReplicas(bench, scale, { quotas, round });
  await measureRelay(bench, scale);
  const both = { case: 'intake and relay', variant: '64 connections' } as const;
  await takeTurns(scale.bench.rounds, [(round) => runTallyhook(bench, { ...both, round })]);
  await measureIntake(bench, scale);
}

function quotasOrSkip({ stage, skip }: Bench): Quotas | undefined {
  try {
    return findQuotas(stage.guard);
  } catch (error) {
    skip(`replicas with a quota: ${(error as Error).message}`);
    return undefined;
  }
}

type Replica = Pick<Subject, 'ports' | 'pids' | 'operatorPorts' | 'end'> & {
  readonly quotas: readonly Quota[];
};

/** Replicas on one database and one exchange, whose number changes from one run to the next. */
type Fleet = {
  readonly exchange: string;
  readonly database: string;
  /** @returns those that were added */
  readonly resize: (count: number) => Promise<Replica[]>;
  readonly all: () => readonly Replica[];
  /** What one of them says about itself. */
  readonly metricOf: (replica: Replica, name: string) => Promise<number>;
};

/** Every second round begins with most replicas, so that a machine that becomes slower or faster does not favour some. */
async function measureReplicas(
  bench: Bench,
  scale: ScaleOutScale,
  { quotas, round }: { quotas: Quotas; round: number },
): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const fleet = await openFleet(bench.stage, quotas, cleanup);
  for (const setup of round % 2 === 1 ? scale.setups : scale.setups.toReversed()) {
    const variant = setupLabel(setup);
    const name = { case: 'replicas with a quota', subject: 'tallyhook', variant, round } as const;
    await bench.measure(name, () => runReplicas(bench.stage, fleet, { setup, scale }));
  }
}

function setupLabel({ count, hasFreeLeader = false }: Setup): string {
  const replicas = `${count} ${count === 1 ? 'replica' : 'replicas'}`;
  return hasFreeLeader ? `${replicas}, and a leader without a quota` : replicas;
}

async function openFleet(stage: Stage, quotas: Quotas, cleanup: AsyncDisposableStack): Promise<Fleet> {
  const run = newRun();
  const exchange = exchangeOf(run);
  const databaseUrl = await createRunDatabase(cleanup, stage, run);
  const { value: token } = await newToken({ url: databaseUrl }, { role: 'auditor', environment: 'live' });
  const replicas: Replica[] = [];

  async function add(): Promise<Replica> {
    const options = { databaseUrl, amqpUrl: stage.rabbitmq.url, exchange, replicas: 1 };
    const subject = await startTallyhook(stage, options);
    const replica = { ...subject, quotas: subject.pids.map(quotas) };
    replicas.push(replica);
    return replica;
  }

  async function resize(count: number): Promise<Replica[]> {
    const left = replicas.splice(count);
    await Promise.all(left.map(({ end }) => end()));
    for (const quota of left.flatMap((each) => each.quotas)) quota.remove();
    return Promise.all(Array.from({ length: count - replicas.length }, add));
  }

  const metricOf = ({ operatorPorts }: Replica, name: string) =>
    readMetric(`http://127.0.0.1:${operatorPorts[0]}`, name, { token });

  cleanup.defer(async () => void (await resize(0)));
  return { exchange, database: databaseName(run), resize, all: () => replicas, metricOf };
}

/** They start and warm up without a limit: at a twentieth of a core this would take minutes. */
async function runReplicas(
  stage: Stage,
  fleet: Fleet,
  { setup, scale }: { setup: Setup; scale: ScaleOutScale },
): Promise<Figures> {
  const { count, hasFreeLeader = false } = setup;
  const run = newRun();
  await using cleanup = new AsyncDisposableStack();
  const subscriber = endAfter(cleanup, await startSubscriber(stage, run, 'quorum', fleet.exchange));
  const added = await fleet.resize(count + (hasFreeLeader ? 1 : 0));
  await using sessions = await watchSessions(stage, fleet.database);
  const load: Load = {
    loop: { kind: 'closed', concurrency: CONNECTIONS * count },
    bodyBytes: SMALLEST_BODY_BYTES,
    duplicateShare: 0,
    warmUpS: SETTLE_S,
    // Above the window, which \`stopWhen\` ends.
    durationS: 2 * scale.windowS,
    stock: STOCK_PER_REPLICA_S * count * (SETTLE_S + scale.windowS),
  };
  if (added.length > 0) {
    const to = { ports: added.flatMap(({ ports }) => ports), path: '/webhooks', secret: stage.secret };
    const warmUpS = Math.max(scale.warmUpMinS, scale.warmUpS * added.length);
    const plan = { ...load, ...to, run, onFailure: 'fail', warmUpS } as const;
    await warmUpClosed(stage, plan, { subject: { pids: added.flatMap(({ pids }) => pids) }, subscriber });
  }
  const limited = hasFreeLeader ? await followersOf(fleet) : fleet.all();
  const pids = fleet.all().flatMap((each) => each.pids);
  resetPeak(pids);
  limit(limited, QUOTA);
  try {
    let busyCores = Number.NaN;
    const figures = await measureLoad(stage, {
      load,
      run,
      ports: limited.flatMap(({ ports }) => ports),
      subject: { name: 'tallyhook', pids },
      subscriber,
      database: fleet.database,
      stopWhen: async () => void (busyCores = await busyFor(scale.windowS)),
    });
    limit(limited, undefined);
    const may = await Promise.all(
      fleet.all().map((each) => fleet.metricOf(each, 'tallyhook_database_sessions_max')),
    );
    const sessionsMax = may.reduce((sum, each) => sum + each, 0);
    return { ...figures, busyCores, sessions: sessions.most(), sessionsMax };
  } finally {
    limit(limited, undefined);
  }
}

function limit(replicas: readonly Replica[], share: number | undefined): void {
  for (const quota of replicas.flatMap(({ quotas }) => quotas)) quota.limit(share);
}

/** @throws Error unless exactly one of them leads */
async function followersOf({ all, metricOf }: Fleet): Promise<Replica[]> {
  const leads = await Promise.all(all().map((each) => metricOf(each, 'tallyhook_relay_lease_held')));
  const followers = all().filter((_, index) => leads[index] === 0);
  if (followers.length !== all().length - 1) throw new Error('not exactly one replica leads');
  return followers;
}

/** @returns the cores that the machine used on average */
async function busyFor(seconds: number): Promise<number> {
  const [fromS, fromMs] = [machineBusySeconds(), performance.now()];
  await sleep(seconds * 1_000);
  return (machineBusySeconds() - fromS) / ((performance.now() - fromMs) / 1_000);
}

async function watchSessions(
  stage: Stage,
  database: string,
): Promise<AsyncDisposable & { most: () => number }> {
  const client = await stage.databases.connect('tallyhook');
  const count = `select count(*)::int as count from pg_stat_activity
    where datname = '${database}' and application_name like 'tallyhook %'`;
  let most = 0;
  const watching = setInterval(() => {
    client.query<{ count: number }>(count).then(
      ({ rows }) => (most = Math.max(most, rows[0]?.count ?? 0)),
      () => {}, // It is being ended.
    );
  }, SESSIONS_EVERY_MS);
  return {
    most: () => most,
    [Symbol.asyncDispose]: async () => {
      clearInterval(watching);
      await client.end();
    },
  };
}

/** A queue of the other type shows a tendency, and is measured once. */
async function measureRelay(bench: Bench, scale: ScaleOutScale): Promise<void> {
  const sides = (queueType: QueueType) => [
    (round: number) => runRelay(bench, { queueType, entries: scale.entries, round }),
    (round: number) =>
      runPublisher(bench, { case: 'relay alone', variant: `${queueType} queue`, queueType, round }),
  ];
  await takeTurns(scale.bench.rounds, sides('quorum'));
  await takeTurns(1, sides('classic'));
}

/** One replica that takes no deliveries drains a seeded backlog. The first half warms it up. */
async function runRelay(
  bench: Bench,
  { queueType, entries, round }: { queueType: QueueType; entries: number; round: number },
): Promise<void> {
  const { stage } = bench;
  const name = { case: 'relay alone', subject: 'tallyhook', variant: `${queueType} queue`, round } as const;
  await bench.measure(name, async () => {
    const run = newRun();
    await using cleanup = new AsyncDisposableStack();
    const database = databaseName(run);
    await createRunDatabase(cleanup, stage, run);
    await seedBacklog(stage, database, entries);
    const subscriber = endAfter(cleanup, await startSubscriber(stage, run, queueType));
    const { pids } = endAfter(cleanup, await startTallyhookIn({ run, cleanup }, bench, { database }));
    await using meter = await createMeter(stage, {
      roles: { tallyhook: pids, subscriber: [subscriber.pid] },
      database,
    });
    await subscriber.until('seeded', entries * WARM_SHARE);
    const [before, startedMs, busyS] = [subscriber.count().seeded, performance.now(), machineBusySeconds()];
    await meter.begin();
    await subscriber.until('seeded', entries);
    const seconds = (performance.now() - startedMs) / 1_000;
    const busyCores = (machineBusySeconds() - busyS) / seconds;
    const events = subscriber.count().seeded - before;
    return {
      confirmedPerS: events / seconds,
      busyCores,
      ...(await meter.end({ window: events, inAll: entries })),
    };
  });
}

/** With the broker stopped, so that nothing is published. */
async function measureIntake(bench: Bench, scale: ScaleOutScale): Promise<void> {
  await bench.stage.rabbitmq.stop();
  try {
    const alone = { case: 'intake alone', variant: '64 connections' } as const;
    await takeTurns(scale.bench.rounds, [(round) => runTallyhookWithoutBroker(bench, { ...alone, round })]);
  } finally {
    await bench.stage.rabbitmq.start();
  }
}
