// The limits that hold in each flood. Pure.

import type { Figure } from './figures.ts';
import type { Figures, Run, Served } from './results.ts';
import { atMost, judge, type Target } from './verdicts.ts';

/** Well below the ten seconds that a sender waits, and the few seconds of an orchestrator's probe. */
const ANSWER_MAX_MS = 1_500;
/** 250 MB. */
const RSS_MAX_MIB = 238;

type FloodLimit = {
  readonly short: string;
  readonly name: string;
  readonly most: number;
  readonly unit: string;
  /** Infinity if there was no good answer at all. */
  readonly of: Figure;
};

const worstOf = (...served: readonly (Served | undefined)[]) =>
  Math.max(
    ...served.map((each) =>
      each === undefined ? NaN : each.good < each.sent ? Infinity : each.latency.maxMs,
    ),
  );

const FLOOD_LIMITS: readonly FloodLimit[] = [
  {
    short: 'answer',
    name: 'Worst answer to a valid sender during floods, each a 2xx',
    most: ANSWER_MAX_MS,
    unit: 'ms',
    of: ({ kept, fresh }) => worstOf(kept, fresh),
  },
  {
    short: 'livez',
    name: 'Worst answer of `/livez` during floods',
    most: ANSWER_MAX_MS,
    unit: 'ms',
    of: ({ livez }) => worstOf(livez),
  },
  {
    short: 'RSS',
    name: 'Growth of memory in a flood',
    most: RSS_MAX_MIB,
    unit: 'MiB',
    of: ({ rssGrowthMiB }) => rssGrowthMiB,
  },
];

/** The targets that a flood missed. */
export function missedIn(figures: Figures): string[] {
  return FLOOD_LIMITS.filter(({ of, most }) => !((of(figures) ?? NaN) <= most)).map(({ short }) => short);
}

export function floodTargets(runs: readonly Run[]): Target[] {
  const floods = runs.filter((run) => run.case === 'floods');
  return FLOOD_LIMITS.map(({ name, most, unit, of }) => {
    const found = floods
      .map(({ variant, figures }) => ({ variant, value: of(figures) ?? NaN }))
      .toSorted((a, b) => b.value - a.value);
    return judge(name, atMost(most), {
      value: found[0]?.value,
      from: `${found[0]?.variant}; the worst of ${found.length}`,
      show: (value) =>
        Number.isFinite(value) ? `${Math.round(value).toLocaleString('en')} ${unit}` : 'not all answered',
    });
  });
}
