// What comes and goes with each delivery must not be kept by the garbage collector: it would copy it twice, and pause for that.
// A Set or a Map does keep it (src/base/collections/linked-list.ts), and so does V8 at times where it is not told as `serve` tells it.

import { expect, test } from 'vitest';
import { cases } from '../only-in-all.ts';
import { HELD_BYTES, PART_NAMES } from '../support/leftovers.ts';
import { runLeftovers } from '../support/run-leftovers.ts';

test.each(cases(PART_NAMES.slice(0, 1), PART_NAMES.slice(1)))(
  'what leaves the %s leaves the young generation with it',
  async (part) => {
    expect(await runLeftovers(part)).toBeLessThan(HELD_BYTES / 4);
  },
);
