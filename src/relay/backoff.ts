// The backoff: when a failed entry is published again. Pure.

export const RETRY_FIRST_MS = 200;
export const RETRY_MAX_MS = 60_000;

/**
 * Milliseconds until the next attempt after `attempts` failed ones: doubles from 0.2 s up to 60 s, less a random part of
 * up to a quarter, so that entries which failed together are not due together.
 *
 * | after attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 and more |
 * |---|---|---|---|---|---|---|---|---|---|---|
 * | wait at most, s | 0.2 | 0.4 | 0.8 | 1.6 | 3.2 | 6.4 | 12.8 | 25.6 | 51.2 | 60 |
 *
 * So the 20 attempts of the default take 9 to 12 minutes.
 * @param random 0 ≤ random < 1
 */
export function retryDelayMs(attempts: number, random: number): number {
  const longest = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (attempts - 1));
  return Math.round(longest * (1 - random / 4));
}
