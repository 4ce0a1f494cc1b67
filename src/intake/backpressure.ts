// Lets the relay keep up with the intake. Both need the same processors, and an event that is handed over from memory costs
// half of one that the relay has to read from the outbox. So while the relay has much to publish, a write waits until it has less.
//
// A sender does not wait long for that: a write begins anyway when its oldest delivery has waited as long as a few writes take.
// So a broker that is slow, or away, holds up nobody, and the outbox takes what the relay cannot.

/** What has to be done behind the writes (relay/relay.ts). */
export type Backpressure = {
  readonly isFull: () => boolean;
  /** Calls `listener` when that may have changed. */
  readonly onEase: (listener: () => void) => void;
};

export type Patience = {
  /**
   * Whether the next write has to wait, whose oldest delivery waits since `sinceMs`. If so, `onOver` is called when it need not any
   * longer, or before.
   */
  readonly mustWait: (oldest: { readonly sinceMs: number; readonly deadlineMs: number }) => boolean;
  /** How long the last write took. */
  readonly noteWrite: (ms: number) => void;
};

/** The longest wait of a delivery, in writes: then at least a fifth of the time is left to the writes. */
const WAIT_WRITES = 4;
/** And as a part of the time that it has: the rest is for a ledger that is slow, too. */
const WAIT_PART = 1 / 8;

/** `now`: monotonic milliseconds. */
export function createPatience(options: {
  backpressure: Backpressure;
  now: () => number;
  onOver: () => void;
}): Patience {
  const { backpressure, now, onOver } = options;
  let writeMs = 0;
  let timer: NodeJS.Timeout | undefined;

  function wakeAfter(ms: number): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      onOver();
    }, ms);
  }

  backpressure.onEase(onOver);

  return {
    mustWait: ({ sinceMs, deadlineMs }) => {
      if (!backpressure.isFull()) return false;
      const waitMs = Math.min(WAIT_PART * (deadlineMs - sinceMs), WAIT_WRITES * writeMs);
      const leftMs = sinceMs + waitMs - now();
      if (leftMs <= 0) return false;
      wakeAfter(leftMs);
      return true;
    },
    noteWrite: (ms) => {
      writeMs = ms;
    },
  };
}
