// One answer for all callers at about the same time.

/** Asks at most once in `maxAgeMs`, for all callers. A failure is kept as long as an answer. */
export function cached<T>(options: {
  maxAgeMs: number;
  ask: () => Promise<T>;
  /** Monotonic milliseconds. */
  now: () => number;
}): () => Promise<T> {
  const { maxAgeMs, ask, now } = options;
  let answer: Promise<T> | undefined;
  let askedMs = 0;
  return () => {
    if (answer === undefined || now() - askedMs > maxAgeMs) {
      askedMs = now();
      answer = ask();
    }
    return answer;
  };
}
