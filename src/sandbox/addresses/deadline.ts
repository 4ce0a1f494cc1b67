// Work that somebody can cancel and that has its time, as all does here that waits for others.

export type Deadline = {
  /** Cancels the work. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** What it fails with when its time is over. */
  readonly late: () => Error;
};

/**
 * `work` must end soon after the signal that it is given says so.
 * @throws the signal's reason, `late()`, or what `work` throws of its own.
 */
export async function withDeadline<T>(
  { signal, timeoutMs, late }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const overdue = AbortSignal.timeout(timeoutMs);
  try {
    return await work(AbortSignal.any([signal, overdue]));
  } catch (error) {
    signal.throwIfAborted();
    if (overdue.aborted) throw late();
    throw error;
  }
}

/** For a sentence: `2 minutes`, `1.5 seconds`. */
export function inWords(ms: number): string {
  const [amount, unit] = ms % 60_000 === 0 ? [ms / 60_000, 'minute'] : [ms / 1_000, 'second'];
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`;
}
