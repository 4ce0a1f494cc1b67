import { assert, double, property } from 'fast-check';
import { expect, test } from 'vitest';
import { bucketMs, bucketOf, LAST_BUCKET, NO_TIME_BUCKET, SHORTEST_MS } from '../../../src/ledger/rollups.ts';

const DAYS_13_MS = 13 * 24 * 60 * 60 * 1_000;

test('property: a bucket stands for each of its times with an error of at most 9.1 %', () => {
  assert(
    property(double({ min: SHORTEST_MS, max: DAYS_13_MS, noNaN: true }), (ms) => {
      const shown = bucketMs(bucketOf(ms));
      expect(Math.abs(shown / ms - 1)).toBeLessThan(0.0911);
    }),
    { numRuns: 5_000 },
  );
});

test('property: a longer time is never in an earlier bucket', () => {
  const times = double({ min: 0, max: 1e12, noNaN: true });
  assert(
    property(times, times, (a, b) => {
      expect(Math.sign(bucketOf(b) - bucketOf(a)) * Math.sign(b - a)).toBeGreaterThanOrEqual(0);
    }),
  );
});

test.for([
  ['nothing', 0],
  ['the shortest', SHORTEST_MS],
  ['less than nothing, where clocks differ', -5],
  ['no number', Number.NaN],
] as const)('%s is in the first bucket that is a time', ([, ms]) => {
  expect(bucketOf(ms)).toBe(1);
  expect(bucketOf(ms)).not.toBe(NO_TIME_BUCKET);
  expect(bucketMs(1)).toBe(SHORTEST_MS);
});

test.for([1e10, Number.MAX_VALUE, Number.POSITIVE_INFINITY])('%s ms are in the last bucket', (ms) => {
  expect(bucketOf(ms)).toBe(LAST_BUCKET);
});
