// Latencies in Node's own HDR histogram, in microseconds, and their summary.

import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

export type Latency = {
  readonly count: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
  readonly meanMs: number;
};

/** Two minutes, longer than anything takes here. With three digits the error is a tenth of a percent. */
const HIGHEST_US = 120_000_000;
const DIGITS = 3;

export function createLatencies(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: HIGHEST_US, figures: DIGITS });
}

/** Zero, which a clock of microseconds may give, counts as one. A value above the end counts as the end. */
export function recordUs(histogram: RecordableHistogram, us: number): void {
  histogram.record(Math.min(HIGHEST_US, Math.max(1, Math.round(us))));
}

export function summarize(histogram: RecordableHistogram): Latency {
  const ms = (percentile: number) => (histogram.count === 0 ? 0 : histogram.percentile(percentile) / 1_000);
  return {
    count: histogram.count,
    p50Ms: ms(50),
    p90Ms: ms(90),
    p99Ms: ms(99),
    p999Ms: ms(99.9),
    maxMs: histogram.count === 0 ? 0 : histogram.max / 1_000,
    meanMs: histogram.count === 0 ? 0 : histogram.mean / 1_000,
  };
}
