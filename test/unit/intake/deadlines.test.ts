import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDeadlines } from '../../../src/intake/deadlines.ts';

const now = () => performance.now();
/** An answer may be as much later than its deadline. */
const COARSE_MS = 50;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a deadline is over at its time or up to a sweep later, once, and never before', () => {
  const deadlines = createDeadlines({ now });
  const over: string[] = [];
  deadlines.add(now() + 5_000, () => over.push('long'));
  vi.advanceTimersByTime(990);
  deadlines.add(now() + 510, () => over.push('short'));

  vi.advanceTimersByTime(509);
  expect(over).toEqual([]);
  vi.advanceTimersByTime(1 + COARSE_MS);
  expect(over).toEqual(['short']);
  vi.advanceTimersByTime(10_000);
  expect(over).toEqual(['short', 'long']);
});

test('one that is met in time is never over, also if another deadline meets it', () => {
  const deadlines = createDeadlines({ now });
  const over: string[] = [];
  const met = deadlines.add(now() + 100, () => over.push('met'));
  deadlines.remove(met);
  deadlines.add(now() + 100, () => {
    over.push('first');
    deadlines.remove(second);
  });
  const second = deadlines.add(now() + 100, () => over.push('second'));

  vi.advanceTimersByTime(1_000);
  deadlines.remove(met);
  expect(over).toEqual(['first']);
});

test('however many wait there is one timer, and none while nothing waits', () => {
  const deadlines = createDeadlines({ now });
  expect(vi.getTimerCount()).toBe(0);
  const many = Array.from({ length: 1_000 }, () => deadlines.add(now() + 5_000, () => {}));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1_000);
  expect(vi.getTimerCount()).toBe(1);

  for (const deadline of many) deadlines.remove(deadline);
  vi.advanceTimersByTime(COARSE_MS);
  expect(vi.getTimerCount()).toBe(0);
});
