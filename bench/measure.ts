// One measured run: load on a subject, with a subscriber that counts what reaches the bus. An answer that is not 2xx, a lost
// connection or an event that does not arrive fails the run.

import { join } from 'node:path';
import { arrivals } from './arrivals.ts';
import { assertClean, type LoadPlan, type LoadSecond } from './load/plan.ts';
import { createMeter } from './meter.ts';
import { startGenerator } from './parts.ts';
import type { Figures } from './results.ts';
import type { Stage } from './stage.ts';
import { readTimes, type Subscriber } from './subscribing.ts';
import { memoryOf } from './usage.ts';
import { watchWarmUp, warmUpClosed } from './warm-up.ts';

/** A load without its destination. `warmUpS` is the longest warm-up. */
export type Load = Omit<LoadPlan, 'ports' | 'path' | 'secret' | 'run' | 'onFailure' | 'sendTimesFile'>;

export type Measured = {
  readonly load: Load;
  readonly run: string;
  readonly ports: readonly number[];
  readonly subject: { readonly name: string; readonly pids: readonly number[] };
  readonly subscriber?: Subscriber;
  /** The database whose growth is measured. */
  readonly database?: string | undefined;
  /** Further processes whose CPU time is measured. */
  readonly roles?: Readonly<Record<string, readonly number[]>> | undefined;
  readonly onSecond?: (second: LoadSecond) => void;
  /** There is a backlog: the warm-up's events come behind it and are not waited for. */
  readonly isBehind?: boolean;
  /** Called when the window begins. When it resolves, the load ends early. */
  readonly stopWhen?: () => Promise<void>;
};

/**
 * Runs the load to its end and, with a subscriber, until everything that was acknowledged has arrived there.
 * @throws Error unless every answer was a 2xx
 */
export async function measureLoad(stage: Stage, options: Measured): Promise<Figures> {
  const { load, run, ports, subject, subscriber } = options;
  const sendTimesFile = join(stage.folder, `${run}.sent`);
  const plan = { ...load, ports, run, path: '/webhooks', secret: stage.secret, onFailure: 'fail' } as const;
  const isOpen = load.loop.kind === 'open';
  // In an open loop, a cold subject would begin with a queue that the rate does not cause.
  const warmUp = isOpen
    ? await warmUpClosed(stage, plan, { subject, subscriber: options.isBehind ? undefined : subscriber })
    : watchWarmUp(subject.pids);
  const generator = await startGenerator(
    stage.parts,
    { ...plan, sendTimesFile, ...(isOpen && { warmUpS: OPEN_WARM_UP_S }) },
    (second) => {
      if (warmUp.isSteadyAfter(second)) generator.begin();
      options.onSecond?.(second);
    },
  );
  await using meter = await createMeter(stage, {
    roles: {
      [subject.name]: subject.pids,
      generator: [generator.pid],
      ...(subscriber && { subscriber: [subscriber.pid] }),
      ...options.roles,
    },
    database: options.database,
  });
  const going = generator.go();
  const before = await going.windowBegins;
  const warmth = warmUp.end();
  await meter.begin();
  // Awaited before the window's end, so that its failure fails the run.
  await options.stopWhen?.().finally(generator.stop);
  const acknowledged = await going.windowEnds;
  const backlogAtEnd = subscriber && Math.max(0, acknowledged - subscriber.count().received);
  const report = await going.report;
  assertClean(report);
  if (report.latency.count === 0) throw new Error('nothing was answered in the window: it is too short here');
  await subscriber?.until('received', report.acknowledged);
  const cost = await meter.end({
    window: report.acknowledged - before,
    inAll: report.acknowledged,
  });
  // Not earlier: its CPU time cannot be read after its end.
  await generator.end();
  const { peakMiB } = memoryOf(subject.pids);
  return {
    acksPerS: report.answersPerS,
    answer: report.latency,
    answers: report.answers,
    signedLate: report.signedLate,
    mostWaiting: report.mostWaiting,
    ...cost,
    ...warmth,
    peakRssMiB: peakMiB,
    ...(subscriber && {
      ...arrivals(report, readTimes(sendTimesFile), await subscriber.times()),
      copies: subscriber.count().copies,
      backlogAtEnd: backlogAtEnd ?? 0,
    }),
  };
}

/** The subject is warm by then, and only has to reach the rate. */
const OPEN_WARM_UP_S = 1;
