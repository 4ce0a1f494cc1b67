// What comes and goes with each delivery must not be kept by the garbage collector: it would copy it twice, and pause for that.
// A Set or a Map does keep it (src/linked-list.ts), and so does V8 at times where it is not told as `serve` tells it.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ALL_IS_SHORT_LIVED } from '../../src/cli/serve.ts';
import { HELD_BYTES, PART_NAMES } from '../support/leftovers.ts';

const run = promisify(execFile);
const script = new URL('../support/leftovers.ts', import.meta.url).pathname;

test.each(PART_NAMES)('what leaves the %s leaves the young generation with it', async (part) => {
  const { stdout } = await run(process.execPath, ['--expose-gc', ALL_IS_SHORT_LIVED, script, part]);
  expect(Number(stdout)).toBeLessThan(HELD_BYTES / 4);
});
