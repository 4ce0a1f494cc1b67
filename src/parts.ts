// What the composition root hands to every room.

import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

export type Parts = {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly replicaId: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Taken down in reverse order. */
  readonly started: AsyncDisposableStack;
  /** What is left of the grace time, once it runs. */
  readonly graceMs: () => number;
};
