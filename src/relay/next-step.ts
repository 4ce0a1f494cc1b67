// What becomes of an entry after a publish attempt. Pure.

import type { Publication } from './publisher.ts';
import type { Entry, Settlement } from './outbox.ts';

/**
 * `alone`: nothing else was in flight, so a channel that closed over some message closed over this one.
 * Only what is the entry's own fault counts as an attempt.
 */
export function judge(
  { attempts, replay }: Pick<Entry, 'attempts' | 'replay'>,
  publication: Publication,
  { alone, maxAttempts }: { alone: boolean; maxAttempts: number },
): Settlement['next'] {
  const toQueue = typeof replay?.queue === 'string';
  if (publication.result === 'confirmed') return 'delete';
  // Who was not there for a live event may come later. A copy for the exchange was asked for now, and one for a
  // queue was meant for somebody who has to be there.
  if (publication.result === 'returned') return replay === undefined || toQueue ? 'return' : 'delete';
  const isOwnFault = publication.blame === 'event' || (publication.blame === 'unknown' && alone);
  if (!isOwnFault) return 'keep';
  // It closes the channel on all others: not once more than it takes to know.
  if (toQueue && publication.blame === 'unknown') return 'return';
  if (attempts + 1 < maxAttempts) return 'retry';
  return replay === undefined ? 'park' : 'delete';
}
