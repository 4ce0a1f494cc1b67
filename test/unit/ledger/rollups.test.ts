import { expect, test } from 'vitest';
import {
  bucketMs,
  bucketOf,
  LAST_BUCKET,
  NO_TIME_BUCKET,
  SHORTEST_MS,
} from '../../../src/ledger/counts/rollups.ts';

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
