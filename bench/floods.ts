// Floods of clients without a secret, one after the other, each against a Tallyhook of its own with its defaults. Beside
// each, from another address: a sender that keeps its connection, one that makes a new one for each delivery, and a
// probe of the operators' `/livez`. What those get is a figure here, and no failure of the run.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { startFlood } from '../test/support/floods.ts';
import type { LoadPlan, LoadReport } from './load/plan.ts';
import { SMALLEST_BODY_BYTES } from './load/notifications.ts';
import { newRun, startSubscriber } from './measure.ts';
import { type Generator, startGenerator } from './parts.ts';
import type { Figures, Served } from './results.ts';
import { type Bench, hold, startTallyhookIn } from './runs.ts';
import type { FloodWish, Scale } from './scale.ts';
import type { Stage } from './stage.ts';
import type { Subject } from './subjects.ts';
import { forgetPeak, memoryOf } from './usage.ts';

/** Five, so that the limit of an address is not what ends a flood. */
const FLOODERS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4', '127.0.1.5'];
const SENDER = '127.0.0.2';
const PROBER = '127.0.0.3';

/**
 * A flood is measured here, and not how much a sender can send. On the one kept connection a delivery waits for those before
 * it: so many go at 200 ms each, above which the queue would be all that its times tell.
 */
const KEPT_PER_S = 5;
const FRESH_PER_S = 20;
const PROBES_PER_S = 4;
/** Of those that connect anew: one that waits for its answer keeps back no other. */
const FRESH_CONNECTIONS = 32;
/** What follows a flood still counts: what it left is worked off in it. */
const AFTERMATH_S = 1;
/** Of the process's files, for all that is no connection of a flood. */
const FILES_KEPT = 600;

export async function withstandFloods(bench: Bench): Promise<void> {
  for (const wish of bench.scale.floods) {
    const flood = withinLimit(bench, wish, openFilesMax());
    const variant = `${flood.connections.toLocaleString('en')} ${flood.name}`;
    await bench.measure({ case: 'floods', subject: 'tallyhook', variant, round: 1 }, () =>
      withstand(bench, flood),
    );
  }
}

/**
 * As many connections as a process may open, and word of those that are left out. @throws Error when there would be none.
 */
export function withinLimit(bench: Pick<Bench, 'skip'>, wish: FloodWish, filesMax: number): FloodWish {
  const connections = Math.min(wish.connections, filesMax - FILES_KEPT);
  if (connections < 1)
    throw new Error(`floods need more than ${FILES_KEPT} open files, and ulimit -n is ${filesMax}`);
  if (connections < wish.connections)
    bench.skip(`floods: ${connections} of ${wish.connections} ${wish.name}, since ulimit -n is ${filesMax}`);
  return { ...wish, connections };
}

async function withstand(
  bench: Bench,
  { face, kind, connections, reopenAfterMs }: FloodWish,
): Promise<Figures> {
  const { stage, scale } = bench;
  const run = newRun();
  await using held = new AsyncDisposableStack();
  hold(held, await startSubscriber(stage, run, 'quorum'));
  const logFile = join(stage.folder, `${run}.log`);
  const subject = hold(held, await startTallyhookIn({ run, held }, bench, { logFile }));
  const beside = await startBeside(stage, run, subject, scale);
  for (const generator of beside) hold(held, generator);

  const going = beside.map((generator) => generator.go());
  await Promise.all(going.map(({ windowBegins }) => windowBegins));
  forgetPeak(subject.pids);
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

/** The two senders and the probe, each in a process of its own. They go on for longer than the flood. */
function startBeside(
  stage: Stage,
  run: string,
  { ports, operatorPorts }: Pick<Subject, 'ports' | 'operatorPorts'>,
  { warmUpS, floodS }: Scale,
): Promise<Generator[]> {
  const plan = {
    secret: stage.secret,
    bodyBytes: SMALLEST_BODY_BYTES,
    duplicateShare: 0,
    warmUpS,
    durationS: floodS + AFTERMATH_S,
    stock: 0, // so few are signed as they go
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

/** Pure. All that was sent, the warm-up included, and what was answered with a 2xx; times of the window alone. */
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

/** What a process may open, which Node has raised as far as it may; unlimited where nobody says. */
function openFilesMax(): number {
  const found = /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return found === undefined ? Infinity : Number(found);
}
