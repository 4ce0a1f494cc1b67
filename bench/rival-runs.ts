// Runs of the rivals that take no HTTP requests: the bare publisher, and pgbench.

import { createRunDatabase, databaseName, endAfter } from './arena.ts';
import { bodyOf, SMALLEST_BODY_BYTES } from './load/notifications.ts';
import type { PublishPlan, PublishReport } from './load/plan.ts';
import { createMeter } from './meter.ts';
import { PGBENCH_CLIENTS, type Pgbench, runPgbench } from './pgbench.ts';
import { type Bench, nameOf, type Variation } from './runs.ts';
import { BASELINE_SCHEMA } from './subjects.ts';
import { exchangeOf, newRun, startSubscriber } from './subscribing.ts';

/** The default of RELAY_IN_FLIGHT. */
const PUBLISHER_IN_FLIGHT = 500;
const PUBLISHER_TIMEOUT_MS = 60_000;

export async function runPublisher(bench: Bench, variation: Variation): Promise<void> {
  const { stage, scale } = bench;
  await bench.measure({ ...nameOf(variation), subject: 'confirm publisher' }, async () => {
    const run = newRun();
    await using cleanup = new AsyncDisposableStack();
    const subscriber = endAfter(cleanup, await startSubscriber(stage, run, variation.queueType ?? 'quorum'));
    const env = { AMQP_URL: stage.rabbitmq.url, EXCHANGE: exchangeOf(run) };
    const publisher = endAfter(cleanup, await stage.parts.start('rivals/confirm-publisher.ts', env));
    const { shortWarmUpS: warmUpS, durationS } = scale;
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
    await using meter = await createMeter(stage, {
      roles: { 'confirm publisher': [publisher.pid], subscriber: [subscriber.pid] },
    });
    const done = publisher.next<PublishReport>('done', PUBLISHER_TIMEOUT_MS + (warmUpS + durationS) * 1_000);
    publisher.tell('go');
    const before = await publisher.next<number>('window', PUBLISHER_TIMEOUT_MS);
    await meter.begin();
    const report = await done;
    await subscriber.until('received', report.confirmed);
    return {
      confirmedPerS: report.confirmedPerS,
      answer: report.latency,
      ...(await meter.end({ window: report.confirmed - before, inAll: report.confirmed })),
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
    const options = { databaseUrl, database: databaseName(run), body: bodyOf(run, 2, SMALLEST_BODY_BYTES) };
    // The warm-up, whose figures are not used.
    await runPgbench(stage, pgbench, { ...options, seconds: Math.ceil(scale.shortWarmUpS) });
    await stage.databases.run(databaseName(run), ['truncate webhook_events']);
    return await runPgbench(stage, pgbench, { ...options, seconds: Math.ceil(scale.durationS) });
  });
}
