// When a webhook that was not acknowledged is sent again.

export type RetryPlan = {
  /** The first one included. */
  readonly maxAttempts: number;
  readonly firstDelayMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  /** 0 to 1: the part of a delay that is random, so that webhooks that failed together are not repeated together. */
  readonly jitter: number;
};

/**
 * Of retries, service interface 6.1 says only that there are some. Eight attempts take 8 to 11 minutes: longer than a
 * receiver's restart or deployment, and short enough for a developer to wait.
 *
 * | after attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
 * |---|---|---|---|---|---|---|---|
 * | longest delay, s | 1 | 3 | 9 | 27 | 81 | 243 | 300 |
 */
export const DEFAULT_RETRY: RetryPlan = {
  maxAttempts: 8,
  firstDelayMs: 1_000,
  factor: 3,
  maxDelayMs: 300_000,
  jitter: 0.25,
};

/** The longest wait after each attempt but the last, in milliseconds. */
export function longestDelaysMs(plan: RetryPlan): readonly number[] {
  return Array.from({ length: plan.maxAttempts - 1 }, (_, index) => retryDelayMs(plan, index + 1, 0));
}

/** Milliseconds until the next attempt after `attempts` failed ones. `random`: 0 ≤ random < 1. */
export function retryDelayMs(plan: RetryPlan, attempts: number, random: number): number {
  const longest = Math.min(plan.maxDelayMs, plan.firstDelayMs * plan.factor ** (attempts - 1));
  return Math.round(longest * (1 - plan.jitter * random));
}
