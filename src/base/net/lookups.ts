// Looks names up, a few at a time: libuv has few threads for it, which all of the process share.

import type { LookupFunction } from 'node:net';

/** Those beyond `max` wait. */
export function limitLookups(lookup: LookupFunction, max: number): LookupFunction {
  const waiting: (() => void)[] = [];
  let running = 0;
  return (hostname, options, callback) => {
    const run = () => {
      running += 1;
      lookup(hostname, options, (...found) => {
        running -= 1;
        waiting.shift()?.();
        callback(...found);
      });
    };
    if (running < max) run();
    else waiting.push(run);
  };
}
