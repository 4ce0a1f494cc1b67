// What a benchmark found, as it is written to bench/results/<date>.json: machine-readable, complete, and enough to
// render docs/performance.md again. Raise SCHEMA when a field changes its meaning.

import type { FloodReport } from '../test/support/floods.ts';
import type { Latency } from './load/latency.ts';

export const SCHEMA = 1;

export const CASES = [
  'ceiling',
  'tuning',
  'bus',
  'intake',
  'concurrency',
  'rates',
  'growth',
  'replicas',
  'payload',
  'duplicates',
  'queues',
  'backlog',
  'outage',
  'floods',
] as const;
export type Case = (typeof CASES)[number];

/** `generator` is its ceiling against the bare responder; `broker down` is Tallyhook without a broker. */
export type SubjectName =
  | 'generator'
  | 'tallyhook'
  | 'tallyhook, broker down'
  | 'baseline'
  | 'verify route'
  | 'pgbench'
  | 'confirm publisher';

export type Figures = {
  /** Answers a second; for pgbench, transactions. */
  readonly acksPerS?: number;
  /** Events of the window by the time from its begin to the last one's receipt by the subscriber. */
  readonly confirmedPerS?: number;
  /** Of the answer; in the open loop from the intended time of sending. For the publisher, of the confirm. */
  readonly answer?: Latency;
  /** Of pgbench's transactions, of which it tells no more. */
  readonly answerMeanMs?: number;
  /** From the sending to the receipt by the subscriber. */
  readonly receipt?: Latency;
  /** Acknowledged and not received by the subscriber, when the window ended. */
  readonly backlogAtEnd?: number;
  /** From the window's end to the last receipt. */
  readonly drainS?: number;
  /** CPU milliseconds for 1,000 events, by process with its children, the drain included. */
  readonly cpuMsPer1000?: Readonly<Record<string, number>>;
  /** Of the subject's processes, summed. */
  readonly peakRssMiB?: number;
  /** In the window, by status. */
  readonly answers?: Readonly<Record<string, number>>;
  readonly copies?: number;
  readonly signedLate?: number;
  readonly mostWaiting?: number;
  /** Entries of the seeded backlog that were published a second; intake's events come on top. */
  readonly drainedPerS?: number;
  /** Mean of the second and of the last tenth of the deliveries. */
  readonly rssSecondTenthMiB?: number;
  readonly rssLastTenthMiB?: number;
  /** [seconds, value] */
  readonly rssMiB?: readonly (readonly [number, number])[];
  readonly backlog?: readonly (readonly [number, number])[];
  /** Beside a flood: a sender that keeps its connection, one that makes a new one for each delivery, and probes. */
  readonly kept?: Served;
  readonly fresh?: Served;
  readonly livez?: Served;
  /** When the flood began, and how much more it was at most until it was over. */
  readonly rssBeforeMiB?: number;
  readonly rssGrowthMiB?: number;
  /** Written to the log from the flood's begin to its end, the lines of the valid deliveries included. */
  readonly logBytes?: number;
  readonly refusalsPerS?: number;
  readonly flood?: FloodReport;
};

export type Served = {
  readonly sent: number;
  /** Answered with a 2xx. */
  readonly good: number;
  /** From the intended time of sending, connecting included. */
  readonly latency: Latency;
};

export type Run = {
  readonly case: Case;
  readonly subject: SubjectName;
  /** What was varied, with its unit: `64 connections`, `4,096 bytes`. */
  readonly variant: string;
  readonly round: number;
  readonly startedAt: string;
  readonly figures: Figures;
};

export type Results = {
  readonly schema: typeof SCHEMA;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly command: string;
  readonly isQuick: boolean;
  readonly commit: string;
  readonly hardware: Readonly<Record<string, string>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string>>;
  readonly runs: readonly Run[];
  /** What could not be measured here, with the reason. */
  readonly skipped: readonly string[];
  /** What failed: then the figures of that run are missing, and the command exits with 1. */
  readonly failures: readonly string[];
  /** Only in what is rendered of several files: the runs behind the first. Never written. */
  readonly others?: readonly Results[];
};

export type Spread = { readonly median: number; readonly min: number; readonly max: number };

/** Of the runs that match, over their rounds; undefined if none has the figure. */
export function spreadOf(
  runs: readonly Run[],
  where: { case: Case; subject?: SubjectName; variant?: string },
  figure: (figures: Figures) => number | undefined,
): Spread | undefined {
  const values = runs
    .filter(
      (run) =>
        run.case === where.case &&
        (where.subject === undefined || run.subject === where.subject) &&
        (where.variant === undefined || run.variant === where.variant),
    )
    .flatMap((run) => figure(run.figures) ?? [])
    .toSorted((a, b) => a - b);
  const [min, max] = [values[0], values.at(-1)];
  if (min === undefined || max === undefined) return undefined;
  const middle = (values.length - 1) / 2;
  const [below = 0, above = 0] = [values[Math.floor(middle)], values[Math.ceil(middle)]];
  return { median: (below + above) / 2, min, max };
}
