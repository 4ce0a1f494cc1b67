// What the composition root gives to every room.

import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

export type Parts = {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly replicaId: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** What to close at the end, in reverse order. */
  readonly started: AsyncDisposableStack;
  /** The rest of the grace time: all of it until the service stops. */
  readonly graceMs: () => number;
};
