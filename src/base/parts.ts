// What the composition root gives to every room.

import type { Identity, Sessions } from '../ledger/index.ts';
import type { Logger } from './log/log.ts';
import type { Metrics } from './metrics.ts';

export type Parts = {
  readonly log: Logger;
  readonly metrics: Metrics;
  /** What its pools know together of their sessions with Postgres. */
  readonly sessions: Sessions;
  readonly replicaId: string;
  /** Of the database, for the connections that may draw numbers of events. */
  readonly identity: Identity;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** What to close at the end, in reverse order. */
  readonly started: AsyncDisposableStack;
  /** The rest of the grace time: all of it until the service stops. */
  readonly graceMs: () => number;
};
