// Rate limits per token by the tier of its account (service interface 8): one per hour and one per minute. Each window starts
// with its first request. Requests without a valid token count for their IP address. Counts are in memory, so a restart resets
// them.

import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { TierName, TierRules, Tiers } from './tiers.ts';

/** The window that is closest to its limit, as the three response headers report it. */
export type RateState = {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds since the epoch, rounded up, so that a client that waits until then is not early. */
  readonly resetS: number;
  /** Whether this request is over the limit. */
  readonly exceeded: boolean;
};

/** What a window has counted so far. */
export type WindowUse = {
  readonly windowS: number;
  readonly limit: number;
  readonly used: number;
  /** Milliseconds until it is empty again; 0 if it is. */
  readonly msLeft: number;
};

export type Limits = {
  readonly spendToken: (tokenId: string, tier: TierName) => Promise<RateState>;
  readonly spendAddress: (address: string) => Promise<RateState>;
  /** Counts nothing. A tier without a limit per hour has no window of an hour. */
  readonly usesOf: (tokenId: string, tier: TierName) => Promise<readonly WindowUse[]>;
};

const HOUR_S = 60 * 60;
const MINUTE_S = 60;

/** Relative to the tier Free. An address can be shared by many people. */
const ADDRESS_FACTOR = 10;

/** Bounds the memory, since there are too many addresses. Two addresses can share a bucket and its count. */
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
    spendToken: (tokenId, tier) => ofTier[tier].spend(tokenId),
    spendAddress: (address) => ofAddress.spend(bucketOf(address)),
    usesOf: (tokenId, tier) => ofTier[tier].uses(tokenId),
  };
}

type Window = RateState & { readonly msLeft: number };

function createWindows(
  { requestsPerHour, burstPerMinute }: Pick<TierRules, 'requestsPerHour' | 'burstPerMinute'>,
  now: () => number,
): { spend: (key: string) => Promise<RateState>; uses: (key: string) => Promise<readonly WindowUse[]> } {
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

  async function spendBoth(key: string): Promise<RateState> {
    const burst = toWindow(minute, await spend(minute, key));
    if (hour === undefined) return burst;
    // A request over the burst limit does not count for the hour.
    const found = burst.exceeded ? await hour.get(key) : await spend(hour, key);
    return found === null ? burst : nearest(burst, toWindow(hour, found));
  }

  const uses = (key: string) =>
    Promise.all([minute, ...(hour === undefined ? [] : [hour])].map((limiter) => useOf(limiter, key)));

  return { spend: spendBoth, uses };
}

async function useOf(limiter: RateLimiterMemory, key: string): Promise<WindowUse> {
  const { points: limit, duration: windowS } = limiter;
  const found = await limiter.get(key);
  const isOpen = found !== null && found.msBeforeNext > 0;
  return {
    windowS,
    limit,
    used: isOpen ? Math.min(limit, found.consumedPoints) : 0,
    msLeft: isOpen ? found.msBeforeNext : 0,
  };
}

/** The library rejects when the limit is exceeded; here that is a normal result. */
async function spend(limiter: RateLimiterMemory, key: string): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(key);
  } catch (rejected) {
    if (rejected instanceof RateLimiterRes) return rejected;
    throw rejected;
  }
}

/** If both are used up, the one with the longer wait, so that a client that returns at the reset succeeds. */
function nearest(left: Window, right: Window): Window {
  const isLeft =
    left.remaining === right.remaining ? left.msLeft > right.msLeft : left.remaining < right.remaining;
  return { ...(isLeft ? left : right), exceeded: left.exceeded || right.exceeded };
}

function bucketOf(address: string): string {
  const digest = createHash('sha256').update(address).digest();
  return String(digest.readUInt32BE(0) % ADDRESS_BUCKETS);
}
