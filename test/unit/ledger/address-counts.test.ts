import { expect, test } from 'vitest';
import { type AddressCounts, busiest, countAddress } from '../../../src/ledger/counts/address-counts.ts';

const countAll = (addresses: readonly string[]): AddressCounts => {
  const counts: AddressCounts = new Map();
  for (const address of addresses) countAddress(counts, address);
  return counts;
};

test('while there is room, each address has its count, and the busiest come first', () => {
  const counts = countAll(['a', 'b', 'c', 'b', 'c', 'c']);

  expect(busiest(counts, 2)).toEqual([
    { address: 'c', count: 3 },
    { address: 'b', count: 2 },
  ]);
});
