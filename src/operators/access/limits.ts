// How many requests a token may make in a minute that begins with its first one. Requests without a known token count
// for the address that they come from, and only they. Counts live in memory, for each replica: a restart forgives.

import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

/** As the three headers tell it (spec 8). */
export type RateState = {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds since the epoch, rounded up: whoever waits until then is not early. */
  readonly resetS: number;
  /** Seconds until then; at least one, so that nobody comes back at once. */
  readonly retryAfterS: number;
  /** This request was one too many. */
  readonly exceeded: boolean;
};

export type Limits = {
  readonly spendToken: (tokenId: string) => Promise<RateState>;
  readonly spendAddress: (address: string) => Promise<RateState>;
};

const MINUTE_S = 60;

/** An address can be many people's, and open metrics are read without a token. */
const ADDRESS_FACTOR = 10;

/** There are more addresses than memory. Two that share a bucket share its count, at odds of one in so many. */
const ADDRESS_BUCKETS = 65_536;

/** `now`: wall clock in milliseconds. */
export function createLimits(options: { requestsPerMinute: number; now: () => number }): Limits {
  const { requestsPerMinute, now } = options;
  const tokens = new RateLimiterMemory({ points: requestsPerMinute, duration: MINUTE_S });
  const addresses = new RateLimiterMemory({
    points: requestsPerMinute * ADDRESS_FACTOR,
    duration: MINUTE_S,
  });

  async function spend(limiter: RateLimiterMemory, key: string): Promise<RateState> {
    const { consumedPoints, msBeforeNext } = await consume(limiter, key);
    const msLeft = Math.max(0, msBeforeNext);
    return {
      limit: limiter.points,
      remaining: Math.max(0, limiter.points - consumedPoints),
      resetS: Math.ceil((now() + msLeft) / 1_000),
      retryAfterS: Math.max(1, Math.ceil(msLeft / 1_000)),
      exceeded: consumedPoints > limiter.points,
    };
  }

  return {
    spendToken: (tokenId) => spend(tokens, tokenId),
    spendAddress: (address) => spend(addresses, bucketOf(address)),
  };
}

/** Too many is an answer here, and no error. */
async function consume(limiter: RateLimiterMemory, key: string): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(key);
  } catch (rejected) {
    if (rejected instanceof RateLimiterRes) return rejected;
    throw rejected;
  }
}

function bucketOf(address: string): string {
  const digest = createHash('sha256').update(address).digest();
  return String(digest.readUInt32BE(0) % ADDRESS_BUCKETS);
}
