// What an account's tier allows: how many requests (service interface 8), and which formats. The interface says that a tier can
// forbid something (service interface 7), but not what; formats are our choice.

export const TIER_NAMES = ['free', 'basic', 'pro', 'enterprise'] as const;
export type TierName = (typeof TIER_NAMES)[number];

export type TierRules = {
  /** null: unlimited. */
  readonly requestsPerHour: number | null;
  readonly burstPerMinute: number;
  /** null: all. */
  readonly formats: readonly string[] | null;
};

export type Tiers = Readonly<Record<TierName, TierRules>>;

export const TIERS: Tiers = {
  free: { requestsPerHour: 100, burstPerMinute: 10, formats: ['mp4', 'webm', 'mp3', 'gif'] },
  basic: { requestsPerHour: 1_000, burstPerMinute: 50, formats: null },
  pro: { requestsPerHour: 10_000, burstPerMinute: 200, formats: null },
  enterprise: { requestsPerHour: null, burstPerMinute: 1_000, formats: null },
};
