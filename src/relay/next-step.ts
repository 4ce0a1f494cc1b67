// What becomes of an outbox entry after a publish attempt. Pure.

import type { Publication } from './publisher.ts';
import type { Entry } from './outbox.ts';

/**
 * - `delete`: its entry leaves the outbox.
 * - `return`: nobody was bound for it; it is published again when an operator retries or replays it.
 * - `retry`: it failed, and is due again after a while.
 * - `park`: its attempts are used up; an operator decides.
 * - `keep`: the attempt does not count; it is published again as soon as the broker takes messages.
 */
export type NextStep = 'delete' | 'return' | 'retry' | 'park' | 'keep';

/**
 * Only a failure of the entry's own counts as an attempt.
 * @param alone no other message was in flight, so a channel that closed over some message closed over this one
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
  const isOwnFault = publication.blame === 'event' || (publication.blame === 'unknown' && alone);
  if (!isOwnFault) return 'keep';
  // The broker closes the channel for this queue, and all that is in flight fails with it: do not try again.
  if (isForQueue && publication.blame === 'unknown') return 'return';
  if (attempts + 1 < maxAttempts) return 'retry';
  return isLive ? 'park' : 'delete';
}
