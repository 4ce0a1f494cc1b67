// The statistics of the API as the series of charts: a value for each step, also where nothing happened.

import type { z } from 'zod';
import type { Series } from '../kernel/view/chart.ts';
import { address } from '../kernel/view/links.ts';
import { exact } from '../kernel/view/numbers.ts';
import type { Stats } from '../statistics/contract.ts';

export type StatsAnswer = z.output<typeof Stats>;
type Item = StatsAnswer['items'][number];
type Waits = StatsAnswer['waits'][number];

/** What happened in one step, at all sources together, and what waited. Without an item nothing did; without `waits` nobody looked. */
export type Step = {
  readonly at: string;
  readonly item: Item | undefined;
  readonly waits: Waits | undefined;
};

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
export function stepsOf({ from, to, step, items, waits }: StatsAnswer): Step[] {
  const byTime = new Map(items.map((item) => [Date.parse(item.at), item]));
  const waitsByTime = new Map(waits.map((each) => [Date.parse(each.at), each]));
  const steps: Step[] = [];
  for (let at = Date.parse(from); at < Date.parse(to); at += step * 1_000) {
    steps.push({ at: new Date(at).toISOString(), item: byTime.get(at), waits: waitsByTime.get(at) });
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
  { total, from, to, step }: StatsAnswer,
  source: string | undefined,
): Series[] {
  const listOf = (name: string, range: { from: string; to: string }) =>
    listAddress(counted, { [counted === 'deliveries' ? 'outcome' : 'result']: name, source, ...range });
  return COUNTS[counted]
    .filter(([name]) => (total[counted][name] ?? 0) > 0)
    .map(([name, form]) => ({
      name,
      form,
      values: steps.map(({ item }) => item?.[counted][name] ?? 0),
      total: exact(total[counted][name] ?? 0),
      // What was answered with 503 left no delivery.
      ...(name !== 'unavailable' && {
        href: listOf(name, { from, to }),
        hrefs: steps.map(({ at }) => listOf(name, { from: at, to: endOf(at, step) })),
      }),
    }));
}

/** What each step counts, whatever its outcome or result. */
export const stepLists = (
  counted: keyof typeof COUNTS,
  steps: readonly Step[],
  { step }: StatsAnswer,
  source: string | undefined,
): string[] => steps.map(({ at }) => listAddress(counted, { source, from: at, to: endOf(at, step) }));

const listAddress = (counted: keyof typeof COUNTS, filter: Readonly<Record<string, string | undefined>>) =>
  address(`/console/${counted}`, filter);

const endOf = (at: string, stepS: number) => new Date(Date.parse(at) + stepS * 1_000).toISOString();

const WAITS = [
  ['pending', 'events to publish', 'good'],
  ['returned', 'returned', 'warn'],
  ['parked', 'parked', 'bad'],
  ['quarantined', 'in quarantine', 'idle'],
] as const;

/** Of each kind, the most in each step, and how many it were in the last one. */
export function waitsSeries(steps: readonly Step[]): Series[] {
  const last = steps.findLast(({ waits }) => waits !== undefined)?.waits;
  return WAITS.map(([kind, name, form]) => ({
    name,
    form: `line ${form}`,
    values: steps.map(({ waits }) => waits?.[kind] ?? null),
    total: last === undefined ? undefined : exact(last[kind]),
    href: kind === 'quarantined' ? '/console/quarantine' : address('/console/outbox', { state: kind }),
  }));
}

/** For how long the oldest pending event had waited at most: in an outage nothing is published, and only this grows. */
export function oldestSeries(steps: readonly Step[], shown: (ms: number) => string | undefined): Series[] {
  const values = steps.map(({ waits }) => (waits === undefined ? null : waits.oldest_pending_s * 1_000));
  if (!values.some((value) => value !== null && value > 0)) return [];
  const most = Math.max(...values.map((value) => value ?? 0));
  return [{ name: 'oldest that waited', form: 'waits', values, total: shown(most) }];
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
