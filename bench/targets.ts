// The targets, and whether a run met them by its own figures. Pure. A target whose case was not measured is unknown, and not
// met.

import {
  type Case,
  type Figures,
  type Run,
  type Served,
  type Spread,
  spreadOf,
  type SubjectName,
} from './results.ts';
import { RATED_PER_S } from './scale.ts';

type Target = {
  readonly name: string;
  readonly wanted: string;
  /** Undefined if it was not measured. */
  readonly found: string | undefined;
  readonly isMet: boolean | undefined;
  readonly from: string;
};

const RSS_MAY_DIFFER = 0.1;
const P99_MAX_MS = 50;
/** Well below the ten seconds that a sender waits, and the few seconds of an orchestrator's probe. */
const FLOOD_ANSWER_MAX_MS = 1_500;
/** 250 MB. */
const FLOOD_RSS_MAX_MIB = 238;

type Figure = (figures: Figures) => number | undefined;

export const acks: Figure = ({ acksPerS }) => acksPerS;
export const confirmed: Figure = ({ confirmedPerS }) => confirmedPerS;

export function targetsOf(runs: readonly Run[]): Target[] {
  const find = (name: Case, subject: SubjectName, figure: Figure, variant?: string) =>
    spreadOf(
      runs,
      variant === undefined ? { case: name, subject } : { case: name, subject, variant },
      figure,
    );
  const verify = find('bus', 'verify route', acks);
  return [
    ratio('Accepted and confirmed on the bus, against the baseline', 5, {
      ours: find('bus', 'tallyhook', confirmed),
      theirs: find('bus', 'baseline', confirmed),
    }),
    ratio('Ack rate with the broker stopped, against pgbench single-row at 32 clients', 0.8, {
      ours: find('intake', 'tallyhook, broker down', acks),
      theirs: find('intake', 'pgbench', acks),
    }),
    ratio('Ack rate with everything running, against the bare verify route', 0.7, {
      ours: find('bus', 'tallyhook', acks),
      theirs: verify,
    }),
    ratio('Ack rate with the longest ledger, against an empty one', 0.9, ledgers(runs)),
    drain(runs),
    halfOfPeak(runs),
    flatMemory(runs),
    ...FLOOD_LIMITS.map((limit) => worstFlood(runs, limit)),
  ];
}

function ratio(
  name: string,
  wanted: number,
  { ours, theirs, note = '' }: { ours: Spread | undefined; theirs: Spread | undefined; note?: string },
): Target {
  const target = { name, wanted: `≥ ${wanted} ×` };
  if (ours === undefined || theirs === undefined || theirs.median === 0)
    return { ...target, found: undefined, isMet: undefined, from: 'not measured' };
  const found = ours.median / theirs.median;
  return {
    ...target,
    found: `${found.toFixed(2)} ×`,
    isMet: found >= wanted,
    from: `${perS(ours.median)} / ${perS(theirs.median)}${note}`,
  };
}

function ledgers(runs: readonly Run[]): Parameters<typeof ratio>[2] {
  const variants = runs.filter((run) => run.case === 'growth').map(({ variant }) => variant);
  const sizes = [...new Set(variants)].toSorted((a, b) => sizeOf(a) - sizeOf(b));
  const [smallest, largest] = [sizes[0], sizes.at(-1)];
  if (smallest === undefined || largest === undefined || smallest === largest)
    return { ours: undefined, theirs: undefined };
  return {
    ours: spreadOf(runs, { case: 'growth', variant: largest }, acks),
    theirs: spreadOf(runs, { case: 'growth', variant: smallest }, acks),
    note: ` with ${largest}`,
  };
}

export const sizeOf = (variant: string) => Number(variant.replaceAll(/[^\d.]/g, ''));

function drain(runs: readonly Run[]): Target {
  const target = {
    name: 'Drain rate of a backlog, against the rated intake at the same time',
    wanted: '≥ 2 ×',
  };
  const found = spreadOf(runs, { case: 'backlog' }, ({ drainedPerS }) => drainedPerS);
  if (found === undefined) return { ...target, found: undefined, isMet: undefined, from: 'not measured' };
  const variant = runs.find((run) => run.case === 'backlog')?.variant;
  return {
    ...target,
    found: `${(found.median / RATED_PER_S).toFixed(2)} ×`,
    isMet: found.median >= 2 * RATED_PER_S,
    from: `${perS(found.median)} of the backlog alone (${variant})`,
  };
}

function halfOfPeak(runs: readonly Run[]): Target {
  const target = {
    name: 'p99 of the answer at half of the peak rate, open loop',
    wanted: `< ${P99_MAX_MS} ms`,
  };
  const where = { case: 'rates', subject: 'tallyhook', variant: '50 % of the peak' } as const;
  const found = spreadOf(runs, where, ({ answer }) => answer?.p99Ms);
  const rate = spreadOf(runs, where, acks);
  if (found === undefined || rate === undefined)
    return { ...target, found: undefined, isMet: undefined, from: 'not measured' };
  return {
    ...target,
    found: `${found.median.toFixed(1)} ms`,
    isMet: found.median < P99_MAX_MS,
    from: `at ${perS(rate.median)}; worst run ${found.max.toFixed(1)} ms`,
  };
}

function flatMemory(runs: readonly Run[]): Target {
  const target = { name: 'Memory over an outage of the broker', wanted: '± 10 %' };
  const run = runs.find((each) => each.case === 'outage');
  const { rssSecondTenthMiB: second, rssLastTenthMiB: last } = run?.figures ?? {};
  if (second === undefined || last === undefined)
    return { ...target, found: undefined, isMet: undefined, from: 'not measured' };
  const change = last / second - 1;
  return {
    ...target,
    found: `${change > 0 ? '+' : ''}${(change * 100).toFixed(1)} %`,
    isMet: Math.abs(change) <= RSS_MAY_DIFFER,
    from: `${second.toFixed(0)} MiB in the second tenth, ${last.toFixed(0)} MiB in the last (${run?.variant})`,
  };
}

type FloodLimit = {
  readonly short: string;
  readonly name: string;
  readonly below: number;
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

/** The limits for each flood. */
const FLOOD_LIMITS: readonly FloodLimit[] = [
  {
    short: 'answer',
    name: 'Worst answer to a valid sender during floods, each a 2xx',
    below: FLOOD_ANSWER_MAX_MS,
    unit: 'ms',
    of: ({ kept, fresh }) => worstOf(kept, fresh),
  },
  {
    short: 'livez',
    name: 'Worst answer of `/livez` during floods',
    below: FLOOD_ANSWER_MAX_MS,
    unit: 'ms',
    of: ({ livez }) => worstOf(livez),
  },
  {
    short: 'RSS',
    name: 'Growth of memory in a flood',
    below: FLOOD_RSS_MAX_MIB,
    unit: 'MiB',
    of: ({ rssGrowthMiB }) => rssGrowthMiB,
  },
];

/** The targets that a flood missed. */
export function missedIn(figures: Figures): string[] {
  return FLOOD_LIMITS.filter(({ of, below }) => !((of(figures) ?? NaN) < below)).map(({ short }) => short);
}

function worstFlood(runs: readonly Run[], { name, below, unit, of }: FloodLimit): Target {
  const target = { name, wanted: `< ${below.toLocaleString('en')} ${unit}` };
  const found = runs
    .filter((run) => run.case === 'floods')
    .map(({ variant, figures }) => ({ variant, value: of(figures) ?? NaN }))
    .toSorted((a, b) => b.value - a.value);
  const [worst] = found;
  if (worst === undefined) return { ...target, found: undefined, isMet: undefined, from: 'not measured' };
  return {
    ...target,
    found: Number.isFinite(worst.value) ? `${worst.value.toFixed(0)} ${unit}` : 'not all answered',
    isMet: worst.value < below,
    from: `${worst.variant}; the worst of ${found.length}`,
  };
}

function perS(rate: number): string {
  return `${Math.round(rate).toLocaleString('en')}/s`;
}
