// Liveness and readiness. Live: the process answers. Ready: Postgres takes deliveries, the write queue has room, and a sender can
// connect. RabbitMQ's state is shown, but it does not make us unready: its trouble is never the sender's (guarantee 7).

import type { RequestHandler } from 'express';

export type Readiness = {
  readonly ready: boolean;
  readonly postgres: 'up' | 'down';
  readonly queue: 'room' | 'full';
  /** Of senders. `full`: each has a whole request under way, so the next one is rejected. */
  readonly connections: 'room' | 'full';
  readonly draining: boolean;
  readonly rabbitmq: 'connected' | 'blocked' | 'disconnected';
};

export const livez: RequestHandler = (_request, response) => {
  response.json({ live: true });
};

export function readyz(readiness: () => Promise<Readiness>): RequestHandler {
  return async (_request, response) => {
    const state = await readiness();
    response.status(state.ready ? 200 : 503).json(state);
  };
}
