// The deadlines of requests: of bodies that are on their way, and of answers that wait for a write. One sweep looks at all of them
// every now and then. A timer for each request would cost more than all that is decided here, and nearly none ever goes off.

import { createLinkedList, type Linked } from '../base/collections/linked-list.ts';

export interface Deadline extends Linked<Deadline> {
  readonly atMs: number;
  readonly onOver: () => void;
}

export type Deadlines = {
  /** `onOver` is called once, when `atMs` on the clock of `now` is over, or up to SWEEP_MS later. */
  readonly add: (atMs: number, onOver: () => void) => Deadline;
  /** It is met. May be called again, and after it was over. */
  readonly remove: (deadline: Deadline) => void;
};

/** An answer may be as much later than its deadline. That is a tenth of the shortest one. */
const SWEEP_MS = 50;

/** @param options.now monotonic milliseconds */
export function createDeadlines({ now }: { now: () => number }): Deadlines {
  // Bounded by the connections and by the requests of each.
  const open = createLinkedList<Deadline>();
  let isDue = false;

  function sweep(): void {
    isDue = false;
    const present = now();
    for (const deadline of open) {
      if (deadline.atMs <= present && open.delete(deadline)) deadline.onOver();
    }
    if (open.size() > 0) plan();
  }

  /** There is no sweep while nothing waits. */
  function plan(): void {
    if (isDue) return;
    isDue = true;
    setTimeout(sweep, SWEEP_MS).unref();
  }

  return {
    add: (atMs, onOver) => {
      const deadline: Deadline = { atMs, onOver, previous: undefined, next: undefined };
      open.add(deadline);
      plan();
      return deadline;
    },
    remove: (deadline) => void open.delete(deadline),
  };
}
