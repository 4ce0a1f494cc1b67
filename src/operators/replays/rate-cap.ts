// At most so many a second, spread out: what may be taken grows with the time, and what is not taken is not saved up
// beyond a tenth of a second. Pure but for the clock that it is given.

export type RateCap = {
  /** How many may be taken now. */
  readonly available: () => number;
  readonly take: (count: number) => void;
};

/** A subscriber's queue sees no more than this at once. */
const SAVED_UP_S = 0.1;

/** `now` is monotonic, in milliseconds. Nothing is there to take at the begin. */
export function createRateCap({ perSecond, now }: { perSecond: number; now: () => number }): RateCap {
  // And what it takes of the next one, or fractions would be lost again and again.
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
