import { describe, expect, test } from 'vitest';
import type { Figures, Run, RunCase, SubjectName } from '../../bench/results.ts';
import { RATED_PER_S } from '../../bench/scale.ts';
import { targetsTable } from '../../bench/tables.ts';
import { targetsOf } from '../../bench/targets.ts';
import { atLeast, atMost, judge, verdictOf } from '../../bench/verdicts.ts';

const latency = { count: 1, p50Ms: 1, p90Ms: 1, p99Ms: 1, p999Ms: 1, maxMs: 1, meanMs: 1 };

function run(name: RunCase, subject: SubjectName, variant: string, figures: Figures): Run {
  return { case: name, subject, variant, round: 1, startedAt: '2026-11-22T00:00:00Z', figures };
}

/** The loads that are compared by their confirmed events, with floor and target. */
const CONFIRMED: readonly (readonly [RunCase, string, floor: number, target: number])[] = [
  ['concurrency', '1 connection', 1, 1.1],
  ['concurrency', '8 connections', 1, 1.1],
  ['concurrency', '32 connections', 1.15, 1.3],
  ['bus', '64 connections', 1.25, 1.5],
  ['concurrency', '256 connections', 1.25, 1.5],
  ['concurrency', '1,000 connections', 1.25, 1.5],
  ['commits', '2 ms longer, 64 connections', 1.2, 1.4],
  ['commits', '2 ms longer, 256 connections', 1.2, 1.4],
  ['commits', '10 ms longer, 256 connections', 1.3, 1.6],
  ['payload', '64 KiB', 1, 1],
  ['duplicates', '95 % duplicates', 1, 1],
];
const HALF = '50 % of the peak';

const cpu = (own: SubjectName, ownUs: number, postgres: number) => ({
  cpuMsPer1000: { [own]: ownUs, postgres },
});

/** Both sides of every comparison, each exactly at its limit, which `choose` names, and better by the factor. */
function measured(choose: (floor: number, target: number) => number, better: number): Run[] {
  const answered = (p99Ms: number, p50Ms: number) => ({
    acksPerS: 1,
    answer: { ...latency, p99Ms, p50Ms },
    receipt: { ...latency, p50Ms: p99Ms },
  });
  const [half, lone] = [49 / better, 1 / better];
  return [
    ...CONFIRMED.flatMap(([name, variant, floor, target]) => {
      const isBus = name === 'bus';
      const wanted = choose(floor, target) * better;
      return [
        run(name, 'tallyhook', variant, {
          confirmedPerS: 1_000 * wanted,
          ...(isBus &&
            cpu('tallyhook', (100 * choose(0.85, 0.75)) / better, (100 * choose(0.6, 0.5)) / better)),
          ...(isBus && { walBytesPerEvent: 2_400 / better, diskBytesPerEvent: 1_526 / better }),
        }),
        run(name, 'baseline', variant, { confirmedPerS: 1_000, ...(isBus && cpu('baseline', 100, 100)) }),
      ];
    }),
    ...['64 connections', '256 connections'].flatMap((variant) => [
      run('distance', 'tallyhook', variant, { confirmedPerS: 100 * choose(1.25, 1.5) * better ** 2 }),
      run('distance', 'baseline', variant, { confirmedPerS: 100 }),
    ]),
    run('rates', 'tallyhook', HALF, { ...answered(half, 1), receipt: { ...latency, p50Ms: 15 / better } }),
    run('rates', 'baseline', HALF, { ...answered(49, 1), receipt: { ...latency, p50Ms: 10 } }),
    run('lone', 'tallyhook', '20/s on one connection', answered(1, lone)),
    run('lone', 'baseline', '20/s on one connection', answered(1, 1)),
    run('intake', 'tallyhook, broker down', '64 connections', {
      acksPerS: 1_000 * choose(0.3, 0.33) * better,
    }),
    run('intake', 'tallyhook, broker down', '256 connections', {
      acksPerS: 1_000 * choose(0.33, 0.37) * better,
    }),
    run('intake', 'pgbench', '32 clients', { acksPerS: 1_000 }),
    run('growth', 'tallyhook', '0 events', { confirmedPerS: 1_000 }),
    run('growth', 'tallyhook', '10,000,000 events', { confirmedPerS: 950 * better }),
    run('backlog', 'tallyhook', '', { drainedPerS: 2 * RATED_PER_S * better }),
    run('outage', 'tallyhook, broker down', '', {
      rssSecondTenthMiB: 100,
      rssLastTenthMiB: 100 + 10 / better,
    }),
    besideFlood(1_500 / better, 238 / better),
  ];
}

function besideFlood(worstMs: number, rssGrowthMiB: number): Run {
  const served = { sent: 100, good: 100, latency: { ...latency, maxMs: worstMs } };
  return run('floods', 'tallyhook', '', { kept: served, fresh: served, livez: served, rssGrowthMiB });
}

const verdicts = (runs: readonly Run[]) => targetsOf(runs).map(({ verdict }) => verdict);
/** These have no floor below their target. */
const withFloor = (runs: readonly Run[]) => targetsOf(runs).filter(({ floor, target }) => floor !== target);
/** Rounding of numbers may be on either side of a limit. */
const JUST = 1.000_01;

/** The table of a run that has one comparison alone, with 100/s of the baseline. */
function shown(rate: number): string {
  const runs = [
    run('bus', 'tallyhook', '64 connections', { confirmedPerS: rate }),
    run('bus', 'baseline', '64 connections', { confirmedPerS: 100 }),
  ];
  return targetsTable({ runs } as unknown as Parameters<typeof targetsTable>[0]);
}

describe('targets', () => {
  test('a target that was not measured is unknown and never met', () => {
    expect(new Set(verdicts([]))).toEqual(new Set([undefined]));
    const alone = targetsOf([run('bus', 'tallyhook', '64 connections', { confirmedPerS: 5_000 })]);
    expect(alone.filter(({ verdict }) => verdict !== undefined)).toEqual([]);
  });

  test('every target is met at its limit', () => {
    expect(new Set(verdicts(measured((_floor, target) => target, JUST)))).toEqual(new Set(['target met']));
  });

  test('at the floor alone, what has a lower floor has met that, and no more', () => {
    const runs = measured((floor) => floor, JUST);
    expect(verdicts(runs)).not.toContain('missed');
    expect(new Set(withFloor(runs).map(({ verdict }) => verdict))).toEqual(new Set(['floor met']));
    expect(withFloor(runs)).toHaveLength(13);
  });

  test('below the floor every target is missed', () => {
    expect(new Set(verdicts(measured((floor) => floor, 0.95)))).toEqual(new Set(['missed']));
  });

  test('a distance is compared with loopback by the ratios to the baseline, not by the rates', () => {
    const runs = measured((_floor, target) => target, JUST);
    const found = targetsOf(runs).find(({ name }) => name.includes('1 ms away'));
    expect([found?.found, found?.from]).toEqual(['1.00 ×', '1.50 × / 1.50 ×']);
  });

  test('a missed target, a floor and a target that are met are shown as what they are', () => {
    expect(shown(120)).toContain('| ≥ 1.25 × | ≥ 1.50 × | 1.20 × | **missed** | 120/s / 100/s |');
    expect(shown(130)).toContain('| 1.30 × | floor met |');
    expect(shown(150)).toContain('| 1.50 × | target met |');
  });
});

describe('verdicts', () => {
  test('of two limits the nearer one is the floor, upwards and downwards', () => {
    expect([0.9, 1, 1.2, 1.3].map((value) => verdictOf(value, atLeast(1, 1.3)))).toEqual([
      'missed',
      'floor met',
      'floor met',
      'target met',
    ]);
    expect([0.9, 0.85, 0.8, 0.75].map((value) => verdictOf(value, atMost(0.85, 0.75)))).toEqual([
      'missed',
      'floor met',
      'floor met',
      'target met',
    ]);
  });

  test('a quotient that is no number is not measured', () => {
    const show = String;
    expect(judge('a', atLeast(1), { value: NaN, from: 'x', show }).verdict).toBeUndefined();
    expect(judge('a', atLeast(1), { value: Infinity, from: 'x', show }).verdict).toBe('target met');
  });
});
