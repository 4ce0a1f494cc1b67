// The routes whose confirms are overdue: the messages of a routing key, or those for one queue. RabbitMQ stops a channel that has
// some 60 to 300 unconfirmed messages for one queue, as for a quorum queue without a leader, and with it everything that is sent
// behind them. So these go by a channel of their own, with few in flight, until one of them is confirmed.

import type { Logger } from 'pino';

export type SlowRoutes = {
  readonly has: (route: string) => boolean;
  readonly isEmpty: () => boolean;
  /** Changes nothing if it is known. */
  readonly add: (route: string, because: string) => void;
  /** The broker confirmed a message of this route: it is slow no more. */
  readonly onConfirm: (route: string) => void;
};

/** Three kinds of events for each of a thousand sources. Beyond that, what is slow stays on the main channel. */
const ROUTES_MAX = 3_000;

export function createSlowRoutes(log: Logger): SlowRoutes {
  const routes = new Set<string>();
  return {
    has: (route) => routes.has(route),
    isEmpty: () => routes.size === 0,
    add: (route, because) => {
      if (routes.has(route) || routes.size >= ROUTES_MAX) return;
      routes.add(route);
      log.warn({ route, because }, 'events of this route are published apart from the others, few at a time');
    },
    onConfirm: (route) => {
      if (routes.delete(route)) log.info({ route }, 'the broker confirms events of this route again');
    },
  };
}
