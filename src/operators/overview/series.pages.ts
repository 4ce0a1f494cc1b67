// The statistics of the API as the series of charts: a value for each step, also where nothing happened.

import type { z } from 'zod';
import type { Series } from '../kernel/view/chart.ts';
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

export const deliveriesIn = ({ item }: Step, outcome: string): number => item?.deliveries[outcome] ?? 0;

/** The outcomes that there were. */
export function outcomeSeries(steps: readonly Step[], { total }: StatsAnswer): Series[] {
  return OUTCOMES.filter(([outcome]) => (total.deliveries[outcome] ?? 0) > 0).map(([outcome, form]) => ({
    name: outcome,
    form,
    values: steps.map((step) => deliveriesIn(step, outcome)),
    total: exact(total.deliveries[outcome] ?? 0),
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
