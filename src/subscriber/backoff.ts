// How long to wait before the next attempt: twice as long each time, up to a maximum, and never the same for all who wait.

export type Backoff = {
  /** Before the second attempt. */
  readonly firstMs: number;
  readonly maxMs: number;
};

/** Half of a wait is fixed, so that it is never short; half is random, so that many do not come back at the same moment. */
const FIXED_SHARE = 0.5;

/**
 * @param failed attempts that failed so far, from 1
 * @param random from 0 to 1
 * @returns milliseconds
 */
export function backoffMs({ firstMs, maxMs }: Backoff, failed: number, random = Math.random()): number {
  const fullMs = Math.min(maxMs, firstMs * 2 ** (failed - 1));
  return Math.round(fullMs * (FIXED_SHARE + (1 - FIXED_SHARE) * random));
}
