// The load generator, a process of its own: sends signed notifications over kept-alive connections and measures the answers.
// Closed loop: each connection sends its next notification when it has its answer. Open loop: notifications have fixed intended
// times. One that finds every connection busy waits, and its latency counts from its intended time (no coordinated omission).
// Notifications are signed beforehand, and answers are counted by status.
//
// Not autocannon, since its fixed rate has no intended times, and it builds each request while it sends.

import { writeFileSync } from 'node:fs';
import type { RecordableHistogram } from 'node:perf_hooks';
import { monotonicUs } from '../clock.ts';
import { connectToBenchmark, type Control } from '../control.ts';
import { createMarks, createTimes } from './by-number.ts';
import { createFlow } from './flow.ts';
import { createLatencies, recordUs, summarize } from './latency.ts';
import type { LoadPlan, LoadReport, LoadSecond } from './plan.ts';
import { createProbes, createSequence, createStock, type Stock } from './stock.ts';

type Line = Pick<Control, 'tell' | 'on'>;

type Tally = {
  readonly window: Record<string, number>;
  readonly inAll: Record<string, number>;
  ofSecond: Record<string, number>;
  readonly latencies: RecordableHistogram;
  readonly latenciesOfSecond: RecordableHistogram;
  /** Rates count the answers that came in the window. Latencies count notifications whose intended time is in it. */
  fromUs: number;
  toUs: number;
  acknowledged: number;
  failures: number;
};

const TICK_MS = 1;
const SECOND_MS = 1_000;
const SECOND_US = 1_000_000;
/** For answers that are missing at the window's end. Above the time-out of a connection. */
const LAST_ANSWERS_MS = 12_000;

const control = await connectToBenchmark();
control.on('plan', (plan) => prepare(plan as LoadPlan, control));

function prepare(plan: LoadPlan, line: Line): void {
  const stock = plan.isProbe ? createProbes(plan.path) : createStock({ ...plan, count: plan.stock });
  line.on('go', () => void run(plan, stock, line));
  line.tell('ready');
}

async function run(plan: LoadPlan, stock: Stock, { tell, on }: Line): Promise<void> {
  const sequence = createSequence(plan.duplicateShare);
  const tally = createTally();
  const sentAt = createTimes();
  const acknowledged = createMarks();
  const flow = createFlow({
    plan,
    next: sequence.next,
    request: stock.request,
    onSend: (number, intendedUs) => sentAt.markFirst(number, intendedUs),
    onReply: (number, { outcome, isGood }, times) => {
      note(tally, outcome, times);
      if (!isGood) tally.failures += 1;
      else if (acknowledged.mark(number)) tally.acknowledged += 1;
    },
  });
  const startUs = monotonicUs();
  const over = Promise.withResolvers<void>();
  const ticks = setInterval(() => {
    flow.tick();
    if (flow.isOver()) over.resolve();
  }, TICK_MS);
  const seconds = setInterval(
    () => tell('second', takeSecond(tally, { startUs, waiting: flow.waiting() })),
    SECOND_MS,
  );
  const stopped = new Promise<void>((resolve) => on('stop', () => resolve()));
  const ended = Promise.race([stopped, over.promise]);
  const begun = new Promise<void>((resolve) => on('begin', () => resolve()));

  const window = await measure(plan, { tally, begun, ended, fresh: sequence.fresh, tell });
  flow.stop();
  await Promise.race([over.promise, delay(LAST_ANSWERS_MS)]);
  clearInterval(ticks);
  clearInterval(seconds);
  const unanswered = flow.open();
  flow.close();
  if (plan.sendTimesFile !== undefined) writeFileSync(plan.sendTimesFile, sentAt.bytes(sequence.fresh()));
  tell('done', {
    ...window,
    latency: summarize(tally.latencies),
    answersInAll: tally.inAll,
    acknowledged: tally.acknowledged,
    signedLate: stock.signedLate(),
    mostWaiting: flow.mostWaiting(),
    unanswered,
    isClean: tally.failures === 0 && unanswered === 0,
  } satisfies LoadReport);
}

/** Waits for the warm-up, then for the window, and reports when each ends, so that others measure at the same time. */
async function measure(
  plan: LoadPlan,
  parts: {
    tally: Tally;
    /** Ends the warm-up early. */
    begun: Promise<void>;
    ended: Promise<void>;
    fresh: () => number;
    tell: Control['tell'];
  },
): Promise<Pick<LoadReport, 'fromUs' | 'toUs' | 'answers' | 'answersPerS' | 'firstNumber' | 'endNumber'>> {
  const { tally, begun, ended, fresh, tell } = parts;
  await Promise.race([delay(plan.warmUpS * SECOND_MS), begun, ended]);
  const [fromUs, firstNumber] = [monotonicUs(), fresh()];
  tally.fromUs = fromUs;
  tell('window', tally.acknowledged);
  await Promise.race([delay(plan.durationS * SECOND_MS), ended]);
  const [toUs, endNumber] = [monotonicUs(), fresh()];
  tally.toUs = toUs;
  tell('window', tally.acknowledged);
  const answered = Object.values(tally.window).reduce((sum, each) => sum + each, 0);
  return {
    fromUs,
    toUs,
    firstNumber,
    endNumber,
    answers: tally.window,
    answersPerS: (answered / (toUs - fromUs)) * SECOND_US,
  };
}

function createTally(): Tally {
  return {
    window: {},
    inAll: {},
    ofSecond: {},
    latencies: createLatencies(),
    latenciesOfSecond: createLatencies(),
    fromUs: Infinity,
    toUs: Infinity,
    acknowledged: 0,
    failures: 0,
  };
}

function note(tally: Tally, outcome: string, { us, intendedUs }: { us: number; intendedUs: number }): void {
  tally.inAll[outcome] = (tally.inAll[outcome] ?? 0) + 1;
  tally.ofSecond[outcome] = (tally.ofSecond[outcome] ?? 0) + 1;
  recordUs(tally.latenciesOfSecond, us);
  const { fromUs, toUs } = tally;
  if (intendedUs >= fromUs && intendedUs < toUs) recordUs(tally.latencies, us);
  const repliedUs = intendedUs + us;
  if (repliedUs >= fromUs && repliedUs < toUs) tally.window[outcome] = (tally.window[outcome] ?? 0) + 1;
}

function takeSecond(tally: Tally, { startUs, waiting }: { startUs: number; waiting: number }): LoadSecond {
  const second = {
    atS: (monotonicUs() - startUs) / SECOND_US,
    answers: tally.ofSecond,
    latency: summarize(tally.latenciesOfSecond),
    waiting,
    acknowledged: tally.acknowledged,
  };
  tally.ofSecond = {};
  tally.latenciesOfSecond.reset();
  return second;
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
