// What a sender sends again and when, as the conversion service would (service interface 6.1 leaves its schedule open): after a
// delay that grows with each failure. Each delay has a queue of its own, which is therefore ordered by time. The number of
// entries is bounded; beyond it the sender gives up.

import { createQueue } from '../../bench/load/queue.ts';

export type Retry = { readonly place: number; readonly attempt: number };

type Timed = { readonly retry: Retry; readonly dueMs: number };

type Retries = {
  /** `attempt`: how often it was sent so far, from 1. @returns false if there is no room. */
  readonly add: (retry: Retry, nowMs: number) => boolean;
  /** One that is due, if any. */
  readonly takeDue: (nowMs: number) => Retry | undefined;
  readonly size: () => number;
};

/** From half a second, doubled each time, to at most 16 s: hours in reality, scaled down to faults of seconds. */
const DELAYS_MS = [500, 1_000, 2_000, 4_000, 8_000, 16_000] as const;

export function createRetries(options: { max: number }): Retries {
  const queues = DELAYS_MS.map(() => createQueue<Timed>());
  const size = () => queues.reduce((sum, queue) => sum + queue.length(), 0);
  const indexOf = (attempt: number) => Math.min(attempt, DELAYS_MS.length) - 1;
  return {
    add: (retry, nowMs) => {
      if (size() >= options.max) return false;
      const index = indexOf(retry.attempt);
      queues[index]?.add({ retry, dueMs: nowMs + (DELAYS_MS[index] ?? 0) });
      return true;
    },
    takeDue: (nowMs) => {
      for (const queue of queues) {
        const first = queue.first();
        if (first !== undefined && first.dueMs <= nowMs) return queue.take()?.retry;
      }
      return undefined;
    },
    size,
  };
}
