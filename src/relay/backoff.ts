// The backoff: when a failed entry is published again. Pure.

import type { Publication } from './publication.ts';

export const RETRY_FIRST_MS = 200;
export const RETRY_MAX_MS = 60_000;

/**
 * After a nack. RabbitMQ nacks a message if one of its queues refused it, and does not say which: all others may have taken it, so
 * each attempt may be a copy for their subscribers. The first pauses are for a queue that was full for a moment, the last one for
 * somebody who makes room. In all they are as long as the others' 20 attempts.
 */
const NACK_PAUSES_MS = [2_000, 8_000, 50_000, 600_000] as const;

/** Then an operator decides. */
export const NACKED_ATTEMPTS_MAX = NACK_PAUSES_MS.length + 1;

/** A route is slow for all its events: most of them would be written again for nothing, and some copied. */
const ROUTE_FIRST_MS = 5_000;
/** Once it is not slow any more, its events wait for this long at most. */
const ROUTE_MAX_MS = 30_000;

/** What made an attempt fail, as far as the pause depends on it. */
export type Cause = 'nack' | 'route' | 'other';

export function causeOf(publication: Publication): Cause {
  if (publication.result === 'nacked') return 'nack';
  return publication.result === 'failed' && publication.blame === 'route' ? 'route' : 'other';
}

/**
 * Milliseconds until the next attempt after `attempts` failed ones, less a random part of up to a quarter, so that entries which
 * failed together are not due together. They double from 0.2 s up to 60 s, for a slow route from 5 s up to 30 s. At most, in seconds:
 *
 * | after attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 and more |
 * |---|---|---|---|---|---|---|---|---|---|---|
 * | nacked | 2 | 8 | 50 | 600 | parked | | | | | |
 * | of a slow route | 5 | 10 | 20 | 30 | 30 | 30 | 30 | 30 | 30 | 30 |
 * | any other | 0.2 | 0.4 | 0.8 | 1.6 | 3.2 | 6.4 | 12.8 | 25.6 | 51.2 | 60 |
 *
 * So the 20 attempts of the default take 9 to 12 minutes, and the 5 of a nacked event 8 to 11.
 * @param random 0 ≤ random < 1
 */
export function retryDelayMs(attempts: number, random: number, cause: Cause = 'other'): number {
  return Math.round(longestMs(attempts, cause) * (1 - random / 4));
}

function longestMs(attempts: number, cause: Cause): number {
  if (cause === 'nack') return NACK_PAUSES_MS[Math.min(attempts, NACK_PAUSES_MS.length) - 1] as number;
  const [firstMs, maxMs] =
    cause === 'route' ? [ROUTE_FIRST_MS, ROUTE_MAX_MS] : [RETRY_FIRST_MS, RETRY_MAX_MS];
  return Math.min(maxMs, firstMs * 2 ** (attempts - 1));
}
