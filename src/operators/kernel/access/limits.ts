// Rate limits: how many requests a token may make in a minute, which begins with its first request. Requests without a
// known token count for their address instead. Each replica counts in memory, so a restart resets the counts.

import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

/** What the three headers show (service interface 8). */
export type RateState = {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds since the epoch, rounded up, so that a client that waits until then is not early. */
  readonly resetS: number;
  /** Seconds until then; at least one, so that no client comes back at once. */
  readonly retryAfterS: number;
  /** This request is beyond the limit. */
  readonly exceeded: boolean;
};

export type Limits = {
  readonly spendToken: (tokenId: string) => Promise<RateState>;
  readonly spendAddress: (address: string) => Promise<RateState>;
};

const MINUTE_S = 60;

/** Many people can share an address, and open metrics are read without a token. */
const ADDRESS_FACTOR = 10;

/** Bounds the memory, since a client can have any number of IPv6 addresses. Addresses in the same bucket share a count. */
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

/** The library rejects when the limit is exceeded; here that is a result and no error. */
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
