// Builds the answer of /readyz from the states of the parts.

import type { Connections } from './connections.ts';
import type { Readiness } from './health.ts';

export function createReadiness(options: {
  /** Whether Postgres takes deliveries. */
  canRecord: () => Promise<boolean>;
  /** Of the write queue. */
  hasRoom: () => boolean;
  /** Of senders. */
  connections: Connections['state'];
  state: { readonly prepared: boolean; readonly draining: boolean };
  broker: () => { connected: boolean; blocked: boolean };
}): () => Promise<Readiness> {
  const { canRecord, hasRoom, connections, state, broker } = options;
  return async () => {
    const isUp = await canRecord();
    const { connected, blocked } = broker();
    const { prepared, draining } = state;
    return {
      ready: isUp && prepared && hasRoom() && connections() === 'room' && !draining,
      postgres: isUp ? 'up' : 'down',
      queue: hasRoom() ? 'room' : 'full',
      connections: connections(),
      draining,
      rabbitmq: !connected ? 'disconnected' : blocked ? 'blocked' : 'connected',
    };
  };
}
