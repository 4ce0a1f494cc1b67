// Signals that end the process: the first begins an orderly end, the second forces it.

import type { Host } from './io.ts';

/** npm, timeout and the like forward a signal that the terminal has already sent to the whole process group. */
const SAME_SIGNAL_MS = 500;

/** Resolves on the first of `signals`. `onFirst` returns what is called on the second. */
export function onFirstSignal(
  host: Pick<Host, 'on'>,
  signals: readonly NodeJS.Signals[],
  onFirst: (signal: NodeJS.Signals) => () => void,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let first: { atMs: number; onSecond: () => void } | undefined;
  for (const name of signals) {
    host.on(name, (signal) => {
      if (first === undefined) {
        first = { atMs: performance.now(), onSecond: onFirst(signal) };
        resolve();
      } else if (performance.now() - first.atMs > SAME_SIGNAL_MS) {
        first.onSecond();
      }
    });
  }
  return promise;
}
