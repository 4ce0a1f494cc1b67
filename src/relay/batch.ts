// A row of outbox_batches, as far as it is in the relay's memory. It knows what may be done with the row: it is deleted as a whole
// once each of its events has a result, or events are taken out of it one by one.

import type { Linked } from '../base/collections/linked-list.ts';
import type { Settlement } from './entry.ts';

export interface Batch extends Linked<Batch> {
  /** Its key, decimal digits. */
  readonly first: string;
  /** A load has found one more of its events. */
  readonly find: () => void;
  /** False if the row may have an event that is not in memory: then events are taken out of it, and it is not deleted whole. */
  readonly isWhole: () => boolean;
  /** It is not whole any more, for good. */
  readonly split: () => void;
  /**
   * One of its entries has this result.
   * @returns false if it is to be written by itself. Otherwise it is kept for the write of the whole row
   */
  readonly settle: (settlement: Settlement) => boolean;
  /** Whether its row can be deleted: each of its events has a result, and some are confirmed. */
  readonly isDone: () => boolean;
  /** What is kept. */
  readonly confirmed: () => readonly Settlement[];
  /** Nothing is kept any more. @returns what was */
  readonly takeConfirmed: () => readonly Settlement[];
}

/**
 * @param size how many events the row has
 * @param found how many of them are in memory from the beginning
 */
export function createBatch(
  first: string,
  { size, found: known = size }: { size: number; found?: number },
): Batch {
  let found = known;
  let settled = 0;
  let isSplit = false;
  let confirmed: Settlement[] = [];

  const isWhole = () => !isSplit && found === size;

  return {
    first,
    find: () => {
      found += 1;
    },
    isWhole,
    split: () => {
      isSplit = true;
    },
    settle: (settlement) => {
      settled += 1;
      if (!isWhole() || settlement.next !== 'delete') return false;
      confirmed.push(settlement);
      return true;
    },
    isDone: () => isWhole() && settled === size && confirmed.length > 0,
    confirmed: () => confirmed,
    takeConfirmed: () => {
      const taken = confirmed;
      confirmed = [];
      return taken;
    },
    previous: undefined,
    next: undefined,
  };
}
