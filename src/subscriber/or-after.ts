// Waits for something, but not for ever.

import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves when `promise` does, or after so many milliseconds. Leaves no timer. */
export async function orAfter(promise: Promise<unknown>, ms: number): Promise<void> {
  const over = new AbortController();
  const late = sleep(ms, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([promise, late]);
  over.abort();
}
