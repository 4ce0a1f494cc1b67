// Waits for a fact, with a limit. Without vitest, since the torture run and the soak use it too.

import { patience } from './patience.ts';

const POLL_MS = 50;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Calls `ask` until its result is not undefined, and returns that. An error that it throws counts as "not yet".
 * @param limitMs on a quiet machine: it only ends a test that hangs, and is longer on a slow one
 * @throws Error that names `what` after this time, with the last error as its cause.
 */
export async function until<T>(
  what: string,
  ask: () => T | undefined | Promise<T | undefined>,
  { limitMs, pollMs = POLL_MS }: { limitMs: number; pollMs?: number },
): Promise<T> {
  const patientMs = patience(limitMs);
  const deadlineMs = performance.now() + patientMs;
  let cause: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${patientMs} ms`, { cause });
    await pause(pollMs);
  }
}
