// What a sender sends again and when, as the conversion service would (spec 6.1 leaves its schedule open): later
// after each failure. Entries of one attempt wait equally long, so a queue for each attempt is in order of time by
// itself. Holds a bounded number; what goes beyond is given up, and counted.

import { createQueue } from '../../bench/load/queue.ts';

export type Retry = { readonly place: number; readonly attempt: number };

type Timed = { readonly retry: Retry; readonly dueMs: number };

type Retries = {
  /** `attempt`: how often it was sent so far, from 1. False if there is no room. */
  readonly add: (retry: Retry, nowMs: number) => boolean;
  /** One whose time has come. */
  readonly takeDue: (nowMs: number) => Retry | undefined;
  readonly size: () => number;
};

/** From half a second, doubled, to at most 16 s: a day in the life of a sender, scaled down to faults of seconds. */
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
