import { expect, test } from 'vitest';
import { createSeen } from '../../src/base/collections/recent-ids.ts';

test('an id is known from the second time on, until so many others have come', () => {
  const isSeen = createSeen(2);
  expect(['a', 'a', 'b', 'a', 'c', 'b', 'a'].map(isSeen)).toEqual([
    false,
    true,
    false,
    true,
    false,
    true,
    false,
  ]);
});
