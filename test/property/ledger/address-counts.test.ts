import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  ADDRESSES_MAX,
  type AddressCounts,
  busiest,
  countAddress,
} from '../../../src/ledger/counts/address-counts.ts';
import { runs } from '../../only-in-all.ts';

test('a million addresses take the room of a thousand, and hide none that comes often', () => {
  const counts: AddressCounts = new Map();
  let greatest = 0;
  for (let n = 0; n < 1_000_000; n++) {
    countAddress(counts, n % 100 === 0 ? 'knocks' : `passer-by ${n}`);
    greatest = Math.max(greatest, counts.size);
  }

  expect(greatest).toBe(ADDRESSES_MAX);
  const [first] = busiest(counts, 1);
  expect(first?.address).toBe('knocks');
  expect(first?.count).toBeLessThanOrEqual(10_000);
  expect(first?.count).toBeGreaterThanOrEqual(10_000 - 1_000_000 / (ADDRESSES_MAX + 1));
});

test('whatever is counted, one by one or together, a count is never too high and never lower than its bound', () => {
  const visits = fc.array(
    fc.record({ address: fc.nat(3 * ADDRESSES_MAX), times: fc.integer({ min: 1, max: 50 }) }),
    { minLength: ADDRESSES_MAX, maxLength: 4 * ADDRESSES_MAX, size: 'max' },
  );
  fc.assert(
    fc.property(visits, (counted) => {
      const counts: AddressCounts = new Map();
      const truth = new Map<string, number>();
      let all = 0;
      for (const { address, times } of counted) {
        countAddress(counts, String(address), times);
        truth.set(String(address), (truth.get(String(address)) ?? 0) + times);
        all += times;
      }
      const off = Array.from(truth, ([address, times]) => times - (counts.get(address) ?? 0));
      expect(counts.size).toBeLessThanOrEqual(ADDRESSES_MAX);
      expect(Math.min(...off)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...off)).toBeLessThanOrEqual(all / (ADDRESSES_MAX + 1));
    }),
    { numRuns: runs(30) },
  );
});
