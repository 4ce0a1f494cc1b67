import { expect, test } from 'vitest';
import { createRateCap } from '../../../src/operators/replays/feeder/rate-cap.ts';

function capOf(perSecond: number) {
  let nowMs = 5_000;
  const cap = createRateCap({ perSecond, now: () => nowMs });
  return {
    /** Takes all that there is after so long. */
    after: (ms: number) => {
      nowMs += ms;
      const count = cap.available();
      cap.take(count);
      return count;
    },
  };
}

test.for([1, 7, 100, 1_000])('at %i a second no second sees more, and each gets them all', (perSecond) => {
  const { after } = capOf(perSecond);
  const parts = Array.from({ length: 200 }, () => after(50));

  const seconds = parts.map((_, from) => parts.slice(from, from + 20).reduce((sum, part) => sum + part, 0));

  expect(Math.max(...seconds.slice(0, -20))).toBeLessThanOrEqual(perSecond + 1);
  expect(parts.reduce((sum, part) => sum + part, 0)).toBeGreaterThanOrEqual(perSecond * 10 - 1);
});

test('nothing is there at the begin, and no more than a tenth of a second is saved up', () => {
  const { after } = capOf(200);

  expect(after(0)).toBe(0);
  expect(after(60_000)).toBe(21);
  expect(after(0)).toBe(0);
});
