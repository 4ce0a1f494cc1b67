// Builds the answer of /readyz from the states of the parts.

import { cached } from './cached.ts';
import type { Connections, Readiness } from './http/index.ts';
import type { DatabaseConnection } from './ledger/index.ts';

/** Probes come from several places: not each one may cost a query. */
const POSTGRES_CACHE_MS = 1_000;

export function createReadiness(options: {
  database: DatabaseConnection;
  /** Of the write queue. */
  hasRoom: () => boolean;
  /** Of senders. */
  connections: Connections['state'];
  state: { readonly prepared: boolean; readonly draining: boolean };
  broker: () => { connected: boolean; blocked: boolean };
  now: () => number;
}): () => Promise<Readiness> {
  const { database, hasRoom, connections, state, broker, now } = options;
  const isPostgresUp = cached({
    maxAgeMs: POSTGRES_CACHE_MS,
    ask: () =>
      database.execute({ name: 'health', text: 'select 1' }, []).then(
        () => true,
        () => false,
      ),
    now,
  });
  return async () => {
    const isUp = await isPostgresUp();
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
