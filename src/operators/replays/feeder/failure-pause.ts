// The pause of a replay whose turns fail: longer after each failure in a row.

export type FailurePause = {
  readonly isOver: () => boolean;
  readonly failed: () => void;
  readonly succeeded: () => void;
};

const FIRST_MS = 1_000;
/** Twenty failing replays write 20 lines a minute into the log. */
const MAX_MS = 60_000;

/** `now` is monotonic, in milliseconds. */
export function createFailurePause(now: () => number): FailurePause {
  let failures = 0;
  let endsMs = 0;
  return {
    isOver: () => now() >= endsMs,
    failed: () => {
      endsMs = now() + Math.min(MAX_MS, FIRST_MS * 2 ** failures);
      failures += 1;
    },
    succeeded: () => {
      failures = 0;
    },
  };
}
