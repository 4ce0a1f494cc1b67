// The two long cases: a backlog that is drained while intake goes on, and an outage of the broker in which memory must not
// grow.

import { performance } from 'node:perf_hooks';
import { createRunDatabase, databaseName, endAfter } from './arena.ts';
import { measureLoad } from './measure.ts';
import type { Figures } from './results.ts';
import { type Bench, loadOf, startTallyhookIn } from './runs.ts';
import { RATED_PER_S } from './scale.ts';
import { addBacklog, seedBacklog } from './seed.ts';
import type { Stage } from './stage.ts';
import { newRun, startSubscriber, type Subscriber } from './subscribing.ts';
import { memoryOf } from './usage.ts';

type Series = [number, number][];

const SAMPLE_MS = 1_000;
const CONNECTIONS = 128;
/** Draining a million entries at the target rate takes half of this. */
const DRAIN_MAX_S = 1_000;
/** Many, so that an hour's deliveries take minutes. */
const OUTAGE_CONNECTIONS = 256;
const OUTAGE_MAX_S = 3_600;
/** Signed beforehand. The rest is signed when sent, since 1.8 million requests would be 1.5 GB. */
const OUTAGE_STOCK = 100_000;
/** The entries that SQL adds come in so many steps, spread over the deliveries. */
const OUTAGE_STEPS = 10;
/** All of them are added by then, so that the last deliveries are taken with the whole backlog present. */
const OUTAGE_ADDED_BY_SHARE = 0.7;
/** Small, since Tallyhook drains while the stock is signed. */
const BACKLOG_STOCK = 5_000;

/** Seeds the outbox, warms Tallyhook up, and drains during the rated load, until every seeded entry has arrived. */
export async function drainBacklog(bench: Bench): Promise<void> {
  const { stage, scale } = bench;
  const variant = `${scale.backlog.toLocaleString('en')} entries, ${RATED_PER_S}/s`;
  await bench.measure({ case: 'backlog', subject: 'tallyhook', variant, round: 1 }, async () => {
    const run = newRun();
    await using cleanup = new AsyncDisposableStack();
    const database = databaseName(run);
    await createRunDatabase(cleanup, stage, run);
    await seedBacklog(stage, database, scale.backlog);
    const subscriber = endAfter(cleanup, await startSubscriber(stage, run, 'quorum'));
    const subject = endAfter(cleanup, await startTallyhookIn({ run, cleanup }, bench, { database }));
    const backlog: Series = [];
    const load = loadOf(bench, {
      loop: { kind: 'open', ratePerS: RATED_PER_S, connections: CONNECTIONS },
      durationS: DRAIN_MAX_S,
      stock: BACKLOG_STOCK,
    });
    const figures = await measureLoad(stage, {
      load,
      run,
      ports: subject.ports,
      subject: { name: 'tallyhook', pids: subject.pids },
      subscriber,
      isBehind: true,
      stopWhen: () =>
        untilSeeded(subscriber, scale.backlog, (seconds, left) => backlog.push([seconds, left])),
    });
    const [first, last] = [backlog[0], backlog.at(-1)];
    if (first === undefined || last === undefined || first[1] === last[1])
      throw new Error('the backlog was gone before the intake began: seed more');
    return { ...figures, drainedPerS: (first[1] - last[1]) / last[0], backlog };
  });
}

/** Samples the number of seeded entries that are left, until there are none. */
async function untilSeeded(
  subscriber: Subscriber,
  many: number,
  onSample: (seconds: number, left: number) => void,
): Promise<void> {
  const startedMs = performance.now();
  const sample = () => onSample((performance.now() - startedMs) / 1_000, many - subscriber.count().seeded);
  sample();
  const samples = setInterval(sample, SAMPLE_MS);
  try {
    await subscriber.until('seeded', many);
    sample();
  } finally {
    clearInterval(samples);
  }
}

/**
 * The broker is stopped, and the backlog of an hour at the rated load grows in minutes: a share of it is delivered over HTTP as
 * fast as possible, and SQL adds the rest to the outbox in steps. Memory that grows with the backlog shows as it would after an
 * hour. Memory that grows with time alone is found by the soak test.
 */
export async function sitOutOutage(bench: Bench): Promise<void> {
  const { stage, scale } = bench;
  const deliveries = Math.round(scale.outage * scale.outageShare);
  const delivered = scale.outageShare === 1 ? '' : `, ${deliveries.toLocaleString('en')} of them delivered`;
  const variant = `a backlog of ${scale.outage.toLocaleString('en')}${delivered}`;
  await stage.rabbitmq.stop();
  try {
    await bench.measure(
      { case: 'outage', subject: 'tallyhook, broker down', variant, round: 1 },
      async () => {
        const run = newRun();
        await using cleanup = new AsyncDisposableStack();
        const subject = endAfter(cleanup, await startTallyhookIn({ run, cleanup }, bench));
        const rssMiB: Series = [];
        const backlog: Series = [];
        const rest = createRest(stage, databaseName(run), scale.outage - deliveries);
        const sample = (atS: number, acknowledged: number) => {
          rssMiB.push([atS, memoryOf(subject.pids).nowMiB]);
          backlog.push([atS, acknowledged + rest.count()]);
        };
        const load = loadOf(bench, {
          loop: { kind: 'closed', concurrency: OUTAGE_CONNECTIONS },
          warmUpS: 0,
          durationS: OUTAGE_MAX_S,
          deliveries,
          stock: Math.min(OUTAGE_STOCK, deliveries),
        });
        const figures = await measureLoad(stage, {
          load,
          run,
          ports: subject.ports,
          subject: { name: 'tallyhook', pids: subject.pids },
          onSecond: ({ atS, acknowledged }) => {
            rest.growTo(acknowledged / deliveries / OUTAGE_ADDED_BY_SHARE);
            sample(atS, acknowledged);
          },
        });
        await rest.added();
        // If SQL was slower than the deliveries, this sample has its end.
        sample((rssMiB.at(-1)?.[0] ?? 0) + SAMPLE_MS / 1_000, deliveries);
        return { ...figures, ...flatness(rssMiB, backlog, scale.outage), rssMiB, backlog };
      },
    );
  } finally {
    await stage.rabbitmq.start();
  }
}

/** Adds the part of the backlog that comes by SQL, in steps. */
function createRest(stage: Stage, database: string, entries: number) {
  const size = Math.floor(entries / OUTAGE_STEPS);
  let steps = 0;
  let count = 0;
  let adding = Promise.resolve();
  const add = async (from: number) => {
    await addBacklog(stage, database, { from, to: from + size - 1 });
    count += size;
  };
  return {
    count: () => count,
    /** `share` of the deliveries were taken: the same share of the rest has to be added. */
    growTo: (share: number) => {
      for (; size > 0 && steps < Math.min(OUTAGE_STEPS, Math.ceil(share * OUTAGE_STEPS)); steps += 1) {
        const from = steps * size + 1;
        adding = adding.then(() => add(from));
      }
    },
    added: () => adding,
  };
}

/** Pure. Memory at the start and at the end of the backlog's growth. The first tenth is warm-up. */
export function flatness(
  rssMiB: readonly (readonly [number, number])[],
  backlog: readonly (readonly [number, number])[],
  deliveries: number,
): Pick<Figures, 'rssSecondTenthMiB' | 'rssLastTenthMiB'> {
  const meanBetween = (from: number, to: number) => {
    const values = rssMiB.flatMap(([, mib], index) => {
      const share = (backlog[index]?.[1] ?? 0) / deliveries;
      return share > from && share <= to ? [mib] : [];
    });
    return values.length === 0 ? undefined : values.reduce((sum, each) => sum + each, 0) / values.length;
  };
  const [second, last] = [meanBetween(0.1, 0.2), meanBetween(0.9, 1)];
  return {
    ...(second !== undefined && { rssSecondTenthMiB: second }),
    ...(last !== undefined && { rssLastTenthMiB: last }),
  };
}
