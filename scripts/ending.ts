// Ends a script on a signal, or when the process that started it is gone: gracefully on the first request, at once on the
// second.

import { constants } from 'node:os';
import type { Guard } from './services/guard.ts';

export type Ending = {
  readonly isAsked: () => boolean;
  /** As shells have it: 128 and the signal's number. Undefined if nobody asked. */
  readonly exitCode: () => number | undefined;
};

/** npm and the terminal may both deliver the same Ctrl-C. */
const SAME_SIGNAL_MS = 500;

/** Closes the guard on the first request, and without grace on the second. */
export function endOnRequest(guard: Guard, onFirst: () => void = () => {}): Ending {
  let first: { signal: NodeJS.Signals; atMs: number } | undefined;

  function onSignal(signal: NodeJS.Signals): void {
    if (first === undefined) {
      first = { signal, atMs: performance.now() };
      onFirst();
      void guard.close();
    } else if (performance.now() - first.atMs > SAME_SIGNAL_MS) {
      void guard.closeAtOnce();
    }
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  process.on('disconnect', () => onSignal('SIGHUP'));
  // When nobody reads our output any more, writing to it fails. That must not stop us from ending.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => onSignal('SIGHUP'));
  // This listener must not keep the process alive.
  process.channel?.unref();
  return {
    isAsked: () => first !== undefined,
    exitCode: () => first && 128 + constants.signals[first.signal],
  };
}
