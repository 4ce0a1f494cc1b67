import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { NACKED_ATTEMPTS_MAX, RETRY_MAX_MS, retryDelayMs } from '../../../src/relay/backoff.ts';

/** Minutes until an event is parked, with 20 attempts. */
const total = (random: number) =>
  Array.from({ length: 19 }, (_, index) => retryDelayMs(index + 1, random)).reduce((sum, ms) => sum + ms, 0) /
  60_000;

test('the waits are the ones of the table in the source', () => {
  const longest = Array.from({ length: 12 }, (_, index) => retryDelayMs(index + 1, 0) / 1_000);

  expect(longest).toEqual([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60, 60, 60]);
});

const longestAfter = (cause: 'nack' | 'route', count: number) =>
  Array.from({ length: count }, (_, index) => retryDelayMs(index + 1, 0, cause) / 1_000);

test('after a nack the waits are few and long, and for a slow route they begin with five seconds', () => {
  expect(longestAfter('nack', NACKED_ATTEMPTS_MAX - 1)).toEqual([2, 8, 50, 600]);
  expect(longestAfter('nack', 30).at(-1)).toBe(600);
  expect(longestAfter('route', 6)).toEqual([5, 10, 20, 30, 30, 30]);
});

test('the 20 attempts of the default take 9 to 12 minutes', () => {
  expect(total(0)).toBeLessThanOrEqual(12);
  expect(total(0.999_999)).toBeGreaterThanOrEqual(8.5);
});

test('property: jitter takes off up to a quarter and never adds, however many attempts there were', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempts, random) => {
        const longest = retryDelayMs(attempts, 0);
        const wait = retryDelayMs(attempts, random);
        expect(Number.isInteger(wait)).toBe(true);
        expect(wait).toBeLessThanOrEqual(longest);
        expect(wait).toBeGreaterThanOrEqual(longest * 0.75 - 1);
        expect(longest).toBeLessThanOrEqual(RETRY_MAX_MS);
      },
    ),
  );
});
