import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { bestPool, loadName, takeTurns, usefulPools } from '../../bench/compare.ts';
import { comparisonTable, costTable, tuningTable } from '../../bench/cost-tables.ts';
import { SECTIONS } from '../../bench/document.ts';
import { peakOf } from '../../bench/peaks.ts';
import type { Figures, Run, RunCase, SubjectName } from '../../bench/results.ts';
import { createSettling } from '../../bench/settling.ts';

function run(name: RunCase, subject: SubjectName, variant: string, figures: Figures): Run {
  return { case: name, subject, variant, round: 1, startedAt: '2026-11-22T00:00:00Z', figures };
}

/** Seconds of 1,000 answers each, which cost so many microseconds an event. */
function steadyAfter(costsUs: readonly number[]): number | undefined {
  const settle = createSettling();
  let cpuS = 3; // of the start
  const at = costsUs.findIndex((us) => {
    cpuS += us / 1_000;
    return settle({ answers: 1_000, cpuS });
  });
  return at === -1 ? undefined : at + 1;
}

/** A first second, and windows of four seconds. */
const windows = (...costsUs: number[]) => [900, ...costsUs.flatMap((us) => [us, us, us, us])];

describe('the warm-up', () => {
  test('ends when three windows of four seconds in a row cost the same', () => {
    expect(steadyAfter(windows(500, 300, 205, 200, 209))).toBe(21);
    expect(steadyAfter(windows(200, 204, 198))).toBe(13);
  });

  test('does not end while an event becomes cheaper, though two windows cost the same', () => {
    expect(steadyAfter(windows(500, 400, 395, 350, 345, 300))).toBeUndefined();
  });

  test('does not count the first second, and not one without answers', () => {
    expect(steadyAfter([200, 200, 200])).toBeUndefined();
    const settle = createSettling();
    const idle = Array.from({ length: 9 }, () => settle({ answers: 0, cpuS: 1 }));
    expect(idle).not.toContain(true);
  });
});

describe('the pool of the baseline', () => {
  test('is tried up to the first size that serves all connections at once', () => {
    const sizes = [90, 10, 40, 20];
    expect(usefulPools(sizes, 1)).toEqual([10]);
    expect(usefulPools(sizes, 32)).toEqual([10, 20, 40]);
    expect(usefulPools(sizes, 256)).toEqual([10, 20, 40, 90]);
    expect(usefulPools([], 256)).toEqual([]);
  });

  const tried = [
    ['bus: 64 connections', 20, 500],
    ['bus: 64 connections', 40, 400],
    ['commits: 10 ms longer, 256 connections', 20, 100],
    ['commits: 10 ms longer, 256 connections', 90, 300],
  ] as const;
  const runs = tried.map(([load, pool, confirmedPerS]) =>
    run('tuning', 'baseline', load, { pool, confirmedPerS }),
  );

  test('is the fastest under each load, and unknown where none was tried', () => {
    const commits = loadName({ case: 'commits', variant: '10 ms longer, 256 connections' });
    expect(bestPool(runs, loadName({ case: 'bus', variant: '64 connections' }))).toBe(20);
    expect(bestPool(runs, commits)).toBe(90);
    expect(bestPool(runs, 'lone: 20/s')).toBeUndefined();
  });

  test('the table has a row for each load, with a dash where a size was not tried', () => {
    expect(tuningTable(runs).split('\n').slice(2)).toEqual([
      '| bus: 64 connections | 500 | 400 | – |',
      '| commits: 10 ms longer, 256 connections | 100 | – | 300 |',
    ]);
  });
});

describe('costs', () => {
  const runs = [
    run('distance', 'tallyhook', '64 connections', {
      confirmedPerS: 300,
      cpuMsPer1000: { tallyhook: 90, postgres: 40, proxy: 5 },
      walBytesPerEvent: 2_345,
    }),
    run('distance', 'baseline', '64 connections', {
      confirmedPerS: 200,
      cpuMsPer1000: { baseline: 110, postgres: 80, proxy: 6 },
      pool: 90,
    }),
    run('distance', 'tallyhook', '256 connections', { confirmedPerS: 400 }),
  ];

  test('a row for each side says what each process used, and what was written', () => {
    const [head, , ...rows] = costTable(runs, 'distance').split('\n');
    expect(head).toBe('| for an event |  | itself µs | postgres µs | proxy µs | WAL bytes |');
    expect(rows).toEqual([
      '| 64 connections | tallyhook | 90 | 40 | 5 | 2,345 |',
      '| 64 connections | baseline | 110 | 80 | 6 | – |',
    ]);
  });

  test('a comparison shows both rates, their ratio and the pool, and nothing that has one side alone', () => {
    const rows = comparisonTable(runs, 'distance').split('\n').slice(2);
    expect(rows).toEqual(['| 64 connections | 300 | 200 | 1.50 × | 90 |']);
  });
});

test('the peak is the highest confirmed rate of a closed loop, by the median of its rounds', () => {
  const runs = [
    run('bus', 'tallyhook', '64 connections', { confirmedPerS: 100 }),
    run('concurrency', 'tallyhook', '256 connections', { confirmedPerS: 90, acksPerS: 900 }),
    run('concurrency', 'tallyhook', '256 connections', { confirmedPerS: 130 }),
    run('commits', 'tallyhook', '2 ms longer, 256 connections', { confirmedPerS: 999 }),
  ];
  expect(peakOf(runs, 'tallyhook')).toEqual({ case: 'concurrency', variant: '256 connections', perS: 110 });
  expect(peakOf(runs, 'baseline')).toBeUndefined();
});

test('the document has a place for the figures of every case', () => {
  const text = readFileSync(new URL('../../docs/performance.md', import.meta.url), 'utf8');
  const missing = SECTIONS.filter(({ name }) => !text.includes(`<!-- bench:${name} -->\n`));
  expect(missing.map(({ name }) => name)).toEqual([]);
});

test('every second round begins with the last of those that are compared', async () => {
  const order: string[] = [];
  const subject = (name: string) => async (round: number) => {
    order.push(`${name}${round}`);
  };
  await takeTurns(3, ['a', 'b', 'c'].map(subject));
  expect(order).toEqual(['a1', 'b1', 'c1', 'c2', 'b2', 'a2', 'a3', 'b3', 'c3']);
});
