// The results of a benchmark, as bench/results/<date>.json has them: complete enough to render docs/performance.md again. Raise
// SCHEMA when a field changes its meaning.

import type { FloodReport } from '../test/support/floods.ts';
import type { Latency } from './load/latency.ts';

export const SCHEMA = 2;

export const CASES = [
  'ceiling',
  'bus',
  'intake',
  'concurrency',
  'lone',
  'commits',
  'distance',
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
/** Of `--scale-out` (scale-out.ts), which has a document of its own. */
export type ScaleOutCase = 'replicas with a quota' | 'relay alone' | 'intake alone' | 'intake and relay';
/** `tuning` are the baseline's runs that choose its pool for a case. */
export type RunCase = Case | ScaleOutCase | 'tuning';

/** `generator` is the generator's own ceiling, against the bare responder; `broker down` is Tallyhook without a broker. */
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
  /** Events of the window, divided by the time from its start to the last receipt by the subscriber. */
  readonly confirmedPerS?: number;
  /** Until the answer, in an open loop from the intended time of sending. For the publisher, until the confirm. */
  readonly answer?: Latency;
  /** Of pgbench's transactions. It reports no more than the mean. */
  readonly answerMeanMs?: number;
  /** From sending to the receipt by the subscriber. */
  readonly receipt?: Latency;
  /** Acknowledged but not received by the subscriber at the window's end. */
  readonly backlogAtEnd?: number;
  /** From the window's end to the last receipt. */
  readonly drainS?: number;
  /** CPU milliseconds for 1,000 events, for each process with its children, drain included. */
  readonly cpuMsPer1000?: Readonly<Record<string, number>>;
  /** Bytes of WAL for each event of the same time. */
  readonly walBytesPerEvent?: number;
  /** Bytes by which tables and indexes grew over the whole run, vacuumed, for each of its events. */
  readonly diskBytesPerEvent?: number;
  /** How long the subject was warmed up, and whether its CPU time for an event was steady by then. */
  readonly warmUpS?: number;
  readonly isSteady?: boolean;
  /** The baseline's connections to Postgres. */
  readonly pool?: number;
  /** The sum of the subject's processes. */
  readonly peakRssMiB?: number;
  /** Counts in the window, by status. */
  readonly answers?: Readonly<Record<string, number>>;
  readonly copies?: number;
  readonly signedLate?: number;
  readonly mostWaiting?: number;
  /** Entries of the seeded backlog that were published in a second. The intake's events are not included. */
  readonly drainedPerS?: number;
  /** The mean of the second tenth of the deliveries, and of the last tenth. */
  readonly rssSecondTenthMiB?: number;
  readonly rssLastTenthMiB?: number;
  /** Cores that the whole machine used in the window. */
  readonly busyCores?: number;
  /** Sessions of Tallyhook with Postgres: the most that were seen, and what all replicas together may open. */
  readonly sessions?: number;
  readonly sessionsMax?: number;
  /** [seconds, value] */
  readonly rssMiB?: readonly (readonly [number, number])[];
  readonly backlog?: readonly (readonly [number, number])[];
  /** During a flood: a sender that keeps its connection, one that makes a new one for each delivery, and probes. */
  readonly kept?: Served;
  readonly fresh?: Served;
  readonly livez?: Served;
  /** At the flood's start, and the highest rise until its end. */
  readonly rssBeforeMiB?: number;
  readonly rssGrowthMiB?: number;
  /** Written to the log during the flood, lines of valid deliveries included. */
  readonly logBytes?: number;
  readonly refusalsPerS?: number;
  readonly flood?: FloodReport;
};

export type Served = {
  readonly sent: number;
  /** Answered with a 2xx. */
  readonly good: number;
  /** From the intended time of sending; includes connecting. */
  readonly latency: Latency;
};

export type Run = {
  readonly case: RunCase;
  readonly subject: SubjectName;
  /** The value that was varied, with its unit: `64 connections`, `4,096 bytes`. */
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
  /** What could not be measured on this machine, with the reason. */
  readonly skipped: readonly string[];
  /** What failed. Figures of these runs are missing, and the command exits with 1. */
  readonly failures: readonly string[];
  /** The results of further files, when several are rendered together. Not written to a file. */
  readonly others?: readonly Results[];
};

/** Several as one, from the oldest to the newest: of a case that more than one of them has measured, the newest runs count. */
export function joinResults([first, ...others]: readonly [Results, ...Results[]]): Results {
  let runs = first.runs;
  for (const newer of others) {
    const measured = new Set(newer.runs.map(caseOf));
    runs = [...runs.filter((run) => !measured.has(caseOf(run))), ...newer.runs];
  }
  const all = [first, ...others];
  return {
    ...first,
    others,
    runs,
    skipped: all.flatMap(({ skipped }) => skipped),
    failures: all.flatMap(({ failures }) => failures),
  };
}

/** A run that chose a pool belongs to the case that it chose it for (compare.ts). */
const caseOf = ({ case: name, variant }: Run) => (name === 'tuning' ? variant.split(':')[0] : name);

export type Spread = { readonly median: number; readonly min: number; readonly max: number };

/** Over all rounds of the runs that match; undefined if none has the figure. */
export function spreadOf(
  runs: readonly Run[],
  where: { case: RunCase; subject?: SubjectName; variant?: string },
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
