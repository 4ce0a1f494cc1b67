// Lets the relay keep up with the intake. Both need the same processors, and an event that is handed over from memory costs
// half of one that the relay has to read from the outbox. So while the relay has much to publish, a write waits until it has less.
//
// A sender does not wait long for that: a write begins anyway when its oldest delivery has waited as long as a few writes take.
// So a broker that is slow, or away, holds up nobody, and the outbox takes what the relay cannot.

/** What has to be done behind the writes (relay/relay.ts). */
export type Backpressure = {
  readonly isFull: () => boolean;
  /** Calls `listener` when it may have less to do. */
  readonly onEase: (listener: () => void) => void;
};

/** Of all deliveries that wait, also for a write of their job. On the clock of `now`. */
type Oldest = { readonly sinceMs: number; readonly deadlineMs: number };

export type Patience = {
  /** Whether the next write has to wait. If so, `onOver` is called when it need not any longer, or before. */
  readonly mustWait: (oldest: Oldest) => boolean;
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
  let dueMs = Infinity; // when the timer ends

  function wakeAt(ms: number): void {
    if (ms >= dueMs) return;
    rest();
    dueMs = ms;
    timer = setTimeout(() => {
      dueMs = Infinity;
      onOver();
    }, ms - now());
  }

  function rest(): void {
    clearTimeout(timer);
    dueMs = Infinity;
  }

  function overAtMs({ sinceMs, deadlineMs }: Oldest): number {
    return sinceMs + Math.min(WAIT_PART * (deadlineMs - sinceMs), WAIT_WRITES * writeMs);
  }

  backpressure.onEase(onOver);

  return {
    mustWait: (oldest) => {
      const untilMs = backpressure.isFull() ? overAtMs(oldest) : -Infinity;
      const waits = untilMs > now();
      if (waits) wakeAt(untilMs);
      else rest();
      return waits;
    },
    noteWrite: (ms) => {
      writeMs = ms;
    },
  };
}
