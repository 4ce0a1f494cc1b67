// How many requests a token may make, by the tier of its account (spec 8): so many in an hour and so many in a minute,
// each window beginning with its first request. Requests without a valid token count for the address that they come
// from. Counts live in memory: a restart forgives.

import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { TierName, TierRules, Tiers } from './tiers.ts';

/** The window that is nearest to its end, as the three headers tell it. */
export type RateState = {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds since the epoch, rounded up: whoever waits until then is not early. */
  readonly resetS: number;
  /** This request was one too many. */
  readonly exceeded: boolean;
};

export type Limits = {
  readonly spendToken: (tokenId: string, tier: TierName) => Promise<RateState>;
  readonly spendAddress: (address: string) => Promise<RateState>;
};

const HOUR_S = 60 * 60;
const MINUTE_S = 60;

/** An address can be many people's; ten times what the smallest tier gives one token. */
const ADDRESS_FACTOR = 10;

/** There are more addresses than memory. Two that share a bucket share its count, at odds of one in so many. */
const ADDRESS_BUCKETS = 65_536;

export function createLimits({ tiers, now }: { tiers: Tiers; now: () => number }): Limits {
  const ofTier = {
    free: createWindows(tiers.free, now),
    basic: createWindows(tiers.basic, now),
    pro: createWindows(tiers.pro, now),
    enterprise: createWindows(tiers.enterprise, now),
  };
  const { requestsPerHour, burstPerMinute } = tiers.free;
  const ofAddress = createWindows(
    {
      requestsPerHour: requestsPerHour === null ? null : requestsPerHour * ADDRESS_FACTOR,
      burstPerMinute: burstPerMinute * ADDRESS_FACTOR,
    },
    now,
  );
  return {
    spendToken: (tokenId, tier) => ofTier[tier](tokenId),
    spendAddress: (address) => ofAddress(bucketOf(address)),
  };
}

type Window = RateState & { readonly msLeft: number };

function createWindows(
  { requestsPerHour, burstPerMinute }: Pick<TierRules, 'requestsPerHour' | 'burstPerMinute'>,
  now: () => number,
): (key: string) => Promise<RateState> {
  const minute = new RateLimiterMemory({ points: burstPerMinute, duration: MINUTE_S });
  const hour =
    requestsPerHour === null
      ? undefined
      : new RateLimiterMemory({ points: requestsPerHour, duration: HOUR_S });

  function toWindow(limiter: RateLimiterMemory, { consumedPoints, msBeforeNext }: RateLimiterRes): Window {
    const msLeft = Math.max(0, msBeforeNext);
    return {
      limit: limiter.points,
      remaining: Math.max(0, limiter.points - consumedPoints),
      resetS: Math.ceil((now() + msLeft) / 1_000),
      exceeded: consumedPoints > limiter.points,
      msLeft,
    };
  }

  return async (key) => {
    const burst = toWindow(minute, await spend(minute, key));
    if (hour === undefined) return burst;
    // What the burst limit turns away costs nothing of the hour.
    const found = burst.exceeded ? await hour.get(key) : await spend(hour, key);
    return found === null ? burst : nearest(burst, toWindow(hour, found));
  };
}

/** Too many is an answer here, and no error. */
async function spend(limiter: RateLimiterMemory, key: string): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(key);
  } catch (rejected) {
    if (rejected instanceof RateLimiterRes) return rejected;
    throw rejected;
  }
}

/** With both used up it is the longer wait: a client that comes back at the reset should get through. */
function nearest(left: Window, right: Window): Window {
  const isLeft =
    left.remaining === right.remaining ? left.msLeft > right.msLeft : left.remaining < right.remaining;
  return { ...(isLeft ? left : right), exceeded: left.exceeded || right.exceeded };
}

function bucketOf(address: string): string {
  const digest = createHash('sha256').update(address).digest();
  return String(digest.readUInt32BE(0) % ADDRESS_BUCKETS);
}
