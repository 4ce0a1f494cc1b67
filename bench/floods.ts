// Measures floods of clients without a secret, each against a new Tallyhook with its defaults. At the same time, from other
// addresses: a sender that keeps its connection, one that makes a new connection for each delivery, and a probe of the
// operators' `/livez`. What these do not get is part of the figures, and no failure of the run.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { startFlood } from '../test/support/floods.ts';
import { endAfter } from './arena.ts';
import type { LoadPlan, LoadReport } from './load/plan.ts';
import { SMALLEST_BODY_BYTES } from './load/notifications.ts';
import { type Generator, startGenerator } from './parts.ts';
import type { Figures, Served } from './results.ts';
import { type Bench, startTallyhookIn } from './runs.ts';
import type { FloodSpec, Scale } from './scale.ts';
import type { Stage } from './stage.ts';
import type { Subject } from './subjects.ts';
import { newRun, startSubscriber } from './subscribing.ts';
import { resetPeak, memoryOf } from './usage.ts';

/** Five, so that the limit of connections an address does not end a flood. */
const FLOODERS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4', '127.0.1.5'];
const SENDER = '127.0.0.2';
const PROBER = '127.0.0.3';

/**
 * Few, since the flood is measured and not a sender's rate. On the one kept connection a delivery waits for those before it: at
 * a higher rate, answers of 200 ms would make a queue, and its times would show the queue alone.
 */
const KEPT_PER_S = 5;
const FRESH_PER_S = 20;
const PROBES_PER_S = 4;
/** For the sender that connects anew: a delivery that waits for its answer does not delay the others. */
const FRESH_CONNECTIONS = 32;
/** The time after a flood still counts: the service works off what the flood left. */
const AFTERMATH_S = 1;
/** Open files of the process that are kept free for everything but the flood's connections. */
const FILES_KEPT = 600;

export async function withstandFloods(bench: Bench): Promise<void> {
  for (const spec of bench.scale.floods) {
    const flood = withinLimit(bench, spec, openFilesMax());
    const variant = `${flood.connections.toLocaleString('en')} ${flood.name}`;
    await bench.measure({ case: 'floods', subject: 'tallyhook', variant, round: 1 }, () =>
      withstand(bench, flood),
    );
  }
}

/** With as many connections as a process may open; reports those left out. @throws Error if there would be none */
export function withinLimit(bench: Pick<Bench, 'skip'>, spec: FloodSpec, filesMax: number): FloodSpec {
  const connections = Math.min(spec.connections, filesMax - FILES_KEPT);
  if (connections < 1)
    throw new Error(`floods need more than ${FILES_KEPT} open files, and ulimit -n is ${filesMax}`);
  if (connections < spec.connections)
    bench.skip(`floods: ${connections} of ${spec.connections} ${spec.name}, since ulimit -n is ${filesMax}`);
  return { ...spec, connections };
}

async function withstand(
  bench: Bench,
  { face, kind, connections, reopenAfterMs }: FloodSpec,
): Promise<Figures> {
  const { stage, scale } = bench;
  const run = newRun();
  await using cleanup = new AsyncDisposableStack();
  endAfter(cleanup, await startSubscriber(stage, run, 'quorum'));
  const logFile = join(stage.folder, `${run}.log`);
  const subject = endAfter(cleanup, await startTallyhookIn({ run, cleanup }, bench, { logFile }));
  const beside = await startBeside(stage, run, subject, scale);
  for (const generator of beside) endAfter(cleanup, generator);

  const going = beside.map((generator) => generator.go());
  await Promise.all(going.map(({ windowBegins }) => windowBegins));
  resetPeak(subject.pids);
  const [rssBeforeMiB, logBytes] = [memoryOf(subject.pids).nowMiB, statSync(logFile).size];
  const [port = 0] = face === 'intake' ? subject.ports : subject.operatorPorts;
  const forMs = scale.floodS * 1_000;
  await using running = startFlood({ kind, connections, reopenAfterMs, port, addresses: FLOODERS, forMs });
  const flood = await running.report;
  const [kept, fresh, livez] = await Promise.all(going.map(({ report }) => report));
  return {
    kept: servedOf(kept),
    fresh: servedOf(fresh),
    livez: servedOf(livez),
    rssBeforeMiB,
    rssGrowthMiB: memoryOf(subject.pids).peakMiB - rssBeforeMiB,
    logBytes: statSync(logFile).size - logBytes,
    flood,
    ...(kind === 'refused' && { refusalsPerS: (flood.answers['401'] ?? 0) / scale.floodS }),
  };
}

/** Starts the two senders and the probe, each in its own process. They run for longer than the flood. */
function startBeside(
  stage: Stage,
  run: string,
  { ports, operatorPorts }: Pick<Subject, 'ports' | 'operatorPorts'>,
  { shortWarmUpS: warmUpS, floodS }: Scale,
): Promise<Generator[]> {
  const plan = {
    secret: stage.secret,
    bodyBytes: SMALLEST_BODY_BYTES,
    duplicateShare: 0,
    warmUpS,
    durationS: floodS + AFTERMATH_S,
    stock: 0, // so few notifications are signed when they are sent
    onFailure: 'fail',
  } as const;
  const sender = { ...plan, ports, path: '/webhooks', localAddress: SENDER };
  const plans: readonly LoadPlan[] = [
    { ...sender, run: `${run}k`, loop: { kind: 'open', ratePerS: KEPT_PER_S, connections: 1 } },
    {
      ...sender,
      run: `${run}f`,
      loop: { kind: 'open', ratePerS: FRESH_PER_S, connections: FRESH_CONNECTIONS },
      freshConnections: true,
    },
    {
      ...plan,
      run: `${run}p`,
      ports: operatorPorts,
      path: '/livez',
      isProbe: true,
      localAddress: PROBER,
      loop: { kind: 'open', ratePerS: PROBES_PER_S, connections: FRESH_CONNECTIONS },
      freshConnections: true,
    },
  ];
  return Promise.all(plans.map((each) => startGenerator(stage.parts, each)));
}

/** Pure. Counts of all that was sent, warm-up included, and of all 2xx answers; times of the window only. */
export function servedOf(
  report: Pick<LoadReport, 'answersInAll' | 'unanswered' | 'latency'> | undefined,
): Served {
  if (report === undefined) throw new Error('a report is missing');
  const counts = Object.entries(report.answersInAll);
  const sum = (some: typeof counts) => some.reduce((total, [, count]) => total + count, 0);
  return {
    sent: sum(counts) + report.unanswered,
    good: sum(counts.filter(([outcome]) => /^2\d\d$/.test(outcome))),
    latency: report.latency,
  };
}

/** How many files a process may open. Node raises this to the hard limit. Infinity where it is not known. */
function openFilesMax(): number {
  const found = /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return found === undefined ? Infinity : Number(found);
}
