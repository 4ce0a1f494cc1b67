// Waits for a fact in a test. The limit only ends a test that hangs: it grows with the machine.

import { vi } from 'vitest';
import { patience } from './patience.ts';

type Wait = {
  /** In ms on a quiet machine. */
  readonly timeout?: number;
  readonly interval?: number;
};

/** As long as vitest.config.ts lets `expect.poll` wait. */
const TIMEOUT_MS = 10_000;
const INTERVAL_MS = 50;

/** Calls `ask` until it throws nothing, and resolves with what it returns. @throws what `ask` threw last */
export function waitFor<T>(ask: () => T | Promise<T>, { timeout, interval }: Wait = {}): Promise<T> {
  return vi.waitFor(ask, {
    timeout: patience(timeout ?? TIMEOUT_MS),
    interval: interval ?? INTERVAL_MS,
  });
}
