import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createEventLoopLoad } from '../../../src/intake/event-loop-load.ts';

/** Keeps the event loop from turning. */
function block(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test('a process whose event loop had no rest is busy, and one that waits is not', async () => {
  const { isBusy, close } = createEventLoopLoad({ sampleMs: 50 });
  expect(isBusy()).toBe(false);

  await expect
    .poll(
      async () => {
        block(100);
        await pause(1);
        return isBusy();
      },
      { interval: 1 },
    )
    .toBe(true);
  await expect.poll(isBusy, { interval: 60 }).toBe(false);
  close();
});
