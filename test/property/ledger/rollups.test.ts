import { assert, double, property } from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../only-in-all.ts';
import { bucketMs, bucketOf, SHORTEST_MS } from '../../../src/ledger/counts/rollups.ts';

const DAYS_13_MS = 13 * 24 * 60 * 60 * 1_000;

test('property: a bucket stands for each of its times with an error of at most 9.1 %', () => {
  assert(
    property(double({ min: SHORTEST_MS, max: DAYS_13_MS, noNaN: true }), (ms) => {
      const shown = bucketMs(bucketOf(ms));
      expect(Math.abs(shown / ms - 1)).toBeLessThan(0.0911);
    }),
    { numRuns: runs(5_000) },
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
