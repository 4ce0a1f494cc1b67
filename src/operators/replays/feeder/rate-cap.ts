// A token bucket: allows at most so many a second, spread out. What is not taken is saved up for a tenth of a second at
// most.

export type RateCap = {
  /** How many may be taken now. */
  readonly available: () => number;
  readonly take: (count: number) => void;
};

/** Bounds the burst that a subscriber's queue gets. */
const SAVED_UP_S = 0.1;

/** `now` is monotonic, in milliseconds. The bucket is empty at the begin. */
export function createRateCap({ perSecond, now }: { perSecond: number; now: () => number }): RateCap {
  // One more, so that the fraction which `floor` cuts off is not lost while the bucket is full.
  const most = perSecond * SAVED_UP_S + 1;
  let tokens = 0;
  let atMs = now();
  return {
    available: () => {
      const nowMs = now();
      tokens = Math.min(most, tokens + ((nowMs - atMs) / 1_000) * perSecond);
      atMs = nowMs;
      return Math.floor(tokens);
    },
    take: (count) => {
      tokens -= count;
    },
  };
}
