// What happens to an outbox entry after a publish attempt. Pure.

import { NACKED_ATTEMPTS_MAX } from './backoff.ts';
import type { Publication } from './publication.ts';
import type { Entry } from './entry.ts';

/**
 * - `delete`: its entry leaves the outbox.
 * - `return`: no queue received it; it is published again when an operator retries or replays it.
 * - `retry`: it failed, and is due again after a while.
 * - `park`: its attempts are used up; an operator decides.
 * - `keep`: the attempt does not count; it is published again as soon as the broker accepts messages.
 */
export type NextStep = 'delete' | 'return' | 'retry' | 'park' | 'keep';

/**
 * Only a failure that the entry caused can park it.
 * @param alone no other message was in flight, so if the channel was closed because of a message, it was this one
 */
export function nextStep(
  { attempts, replay }: Pick<Entry, 'attempts' | 'replay'>,
  publication: Publication,
  { alone, maxAttempts }: { alone: boolean; maxAttempts: number },
): NextStep {
  const isLive = replay === undefined;
  const isForQueue = typeof replay?.queue === 'string';
  if (publication.result === 'confirmed') return 'delete';
  // A live event waits for a queue that may be bound later. A copy for the exchange was asked for now, and is not kept.
  // A copy for one queue is kept: that queue has to exist.
  if (publication.result === 'returned') return isLive || isForQueue ? 'return' : 'delete';
  // Waiting cures it, and nobody can decide anything better.
  if (publication.blame === 'route') return 'retry';
  if (publication.blame === 'queue') return isForQueue ? 'return' : 'keep';
  const isOwnFault = publication.blame === 'event' || (publication.blame === 'unknown' && alone);
  if (!isOwnFault) return 'keep';
  // The broker closes the channel because of this queue, and everything in flight fails with it: do not try again.
  if (isForQueue && publication.blame === 'unknown') return 'return';
  const limit = publication.result === 'nacked' ? Math.min(maxAttempts, NACKED_ATTEMPTS_MAX) : maxAttempts;
  if (attempts + 1 < limit) return 'retry';
  return isLive ? 'park' : 'delete';
}
