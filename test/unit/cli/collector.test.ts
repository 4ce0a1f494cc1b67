import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { IS_SHORT_RUN } from '../../only-in-all.ts';
import { collectorFlags } from '../../../src/cli/collector.ts';

const run = promisify(execFile);

/** Allocates 1 GiB of bodies of 64 KiB beside what lives, of which 64 are alive at a time, and prints how often V8 looked at all objects. */
const SCRIPT = `
  const { constants, PerformanceObserver } = require('node:perf_hooks');
  const { NODE_PERFORMANCE_GC_MAJOR: MAJOR } = constants;
  let times = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === MAJOR) times += 1;
  }).observe({ entryTypes: ['gc'] });
  const lives = Array.from({ length: 200_000 }, (_, id) => ({ id, text: 'job ' + id }));
  const bodies = [];
  let left = 16_384;
  const turn = () => {
    for (let each = 0; each < 64; each++) bodies[each] = Buffer.alloc(65_536);
    left -= 64;
    if (left > 0) setImmediate(turn);
    else setTimeout(() => console.log(lives.length > 0 && times), 50);
  };
  turn();`;

async function collections(flags: readonly string[]): Promise<number> {
  const { stdout } = await run(process.execPath, [...flags, '-e', SCRIPT]);
  return Number(stdout);
}

test.skipIf(IS_SHORT_RUN)(
  'buffers that are gone make V8 look at all objects less often than it would',
  async () => {
    const [before, after] = await Promise.all([collections([]), collections(collectorFlags())]);
    expect(before).toBeGreaterThan(8);
    expect(after).toBeLessThan(before / 2);
  },
);

test('the V8 that runs here knows each flag', async () => {
  const { stderr } = await run(process.execPath, [...collectorFlags(), '-e', '0']);
  expect(stderr).toBe('');
});

test.each([
  ['12.4.254.21-node.33', 1],
  ['13.6.233.17-node.53', 2],
  ['14.7.1', 2],
  ['14.8.0', 1],
  ['15.0.0', 1],
])('V8 %s gets %i flags: a later one counts live buffers by itself', (version, count) => {
  expect(collectorFlags(version)).toHaveLength(count);
});
