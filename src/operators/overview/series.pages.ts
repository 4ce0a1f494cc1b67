// The statistics of the API as the series of charts: a value for each step, also where nothing happened.

import type { z } from 'zod';
import type { Series } from '../kernel/view/chart.ts';
import { address } from '../kernel/view/links.ts';
import { exact } from '../kernel/view/numbers.ts';
import type { Stats } from '../statistics/contract.ts';

export type StatsAnswer = z.output<typeof Stats>;
type Item = StatsAnswer['items'][number];

/** What happened in one step, at all sources together. Without an item nothing did. */
export type Step = { readonly at: string; readonly item: Item | undefined };

/** From the bottom of a bar to its top, with the look of each. */
const OUTCOMES: readonly (readonly [outcome: string, form: string])[] = [
  ['accepted', 'good'],
  ['duplicate', 'idle'],
  ['refused', 'idle faint'],
  ['quarantined', 'warn'],
  ['malformed', 'warn faint'],
  ['conflict', 'bad'],
  ['unauthorized', 'bad faint'],
  ['unavailable', 'bad hollow'],
];

const PERCENTILES = ['p50', 'p90', 'p99'] as const;

/** All steps from the first to the last, oldest first. */
export function stepsOf({ from, to, step, items }: StatsAnswer): Step[] {
  const byTime = new Map(items.map((item) => [Date.parse(item.at), item]));
  const steps: Step[] = [];
  for (let at = Date.parse(from); at < Date.parse(to); at += step * 1_000) {
    steps.push({ at: new Date(at).toISOString(), item: byTime.get(at) });
  }
  return steps;
}

const RESULTS: readonly (readonly [result: string, form: string])[] = [
  ['confirmed', 'good'],
  ['returned', 'warn'],
  ['nacked', 'bad'],
  ['failed', 'bad faint'],
];

const COUNTS = { deliveries: OUTCOMES, publications: RESULTS } as const;

/** The outcomes, or results, that there were, each with its list. */
export function countSeries(
  counted: keyof typeof COUNTS,
  steps: readonly Step[],
  { total, from, to }: StatsAnswer,
  source: string | undefined,
): Series[] {
  const filter = counted === 'deliveries' ? 'outcome' : 'result';
  return COUNTS[counted]
    .filter(([name]) => (total[counted][name] ?? 0) > 0)
    .map(([name, form]) => ({
      name,
      form,
      values: steps.map(({ item }) => item?.[counted][name] ?? 0),
      total: exact(total[counted][name] ?? 0),
      // What was answered with 503 left no delivery.
      ...(name !== 'unavailable' && {
        href: address(`/console/${counted}`, { [filter]: name, source, from, to }),
      }),
    }));
}

export function percentileSeries(
  steps: readonly Step[],
  measure: 'answer_ms' | 'lag_ms',
  totalOf: (percentile: (typeof PERCENTILES)[number]) => string | undefined,
): Series[] {
  return PERCENTILES.map((percentile) => ({
    name: percentile,
    form: percentile,
    values: steps.map(({ item }) => item?.[measure]?.[percentile] ?? null),
    total: totalOf(percentile),
  }));
}
