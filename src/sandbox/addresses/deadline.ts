// Runs work that can be cancelled and has a time limit.

export type Deadline = {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** The error when the time is over. */
  readonly late: () => Error;
};

/**
 * `work` must end soon after the signal that it gets is aborted.
 * @throws the reason of `signal`, `late()`, or what `work` throws.
 */
export async function withDeadline<T>(
  { signal, timeoutMs, late }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await work(AbortSignal.any([signal, timeout]));
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) throw late();
    throw error;
  }
}

/** `2 minutes`, `1.5 seconds` */
export function inWords(ms: number): string {
  const [amount, unit] = ms % 60_000 === 0 ? [ms / 60_000, 'minute'] : [ms / 1_000, 'second'];
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`;
}
