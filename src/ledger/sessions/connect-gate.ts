// Lets one connection at a time be made for a pool, with pauses after failures: a server that is frozen queues each attempt, and
// opens them all when it goes on.

/** After the first failure; it doubles. */
const FIRST_PAUSE_MS = 50;

/** Says whether the attempt succeeded, which lets the next one begin. */
export type LeaveGate = (failure?: Error) => void;

/**
 * `enter` resolves when it is this attempt's turn. It rejects with the error of the one that failed while it waited. It does not
 * begin when `isOver` says so at its turn: then it resolves with undefined.
 */
export function createConnectGate({
  maxPauseMs,
  now,
  sleep,
}: {
  maxPauseMs: number;
  /** Monotonic milliseconds. */
  now: () => number;
  sleep: (ms: number) => Promise<unknown>;
}): { readonly enter: (isOver: () => boolean) => Promise<LeaveGate | undefined> } {
  let last: Promise<Error | undefined> = Promise.resolve(undefined);
  let underWay = 0;
  let pauseMs = 0;
  let notBeforeMs = Number.NEGATIVE_INFINITY;

  async function enter(isOver: () => boolean): Promise<LeaveGate | undefined> {
    const before = last;
    const { promise, resolve: open } = Promise.withResolvers<Error | undefined>();
    const isWaiting = underWay > 0;
    underWay += 1;
    last = promise;
    const failed = await before;
    if (isWaiting && failed !== undefined) {
      leave(failed);
      throw failed;
    }
    const restMs = notBeforeMs - now();
    if (restMs > 0) await sleep(restMs);
    if (isOver()) {
      leave(undefined);
      return undefined;
    }
    return (failure) => {
      pauseMs = failure === undefined ? 0 : Math.min(maxPauseMs, Math.max(FIRST_PAUSE_MS, pauseMs * 2));
      notBeforeMs = now() + pauseMs;
      leave(failure);
    };

    function leave(failure: Error | undefined): void {
      underWay -= 1;
      open(failure);
    }
  }

  return { enter };
}
