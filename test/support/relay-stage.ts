// Relays in this process with a database, a bus and writes of their own, for a test that plays out one order of events.

import { expect } from 'vitest';
import { type DatabaseConnection, recordDeliveries } from '../../src/ledger/index.ts';
import { type Bus, listen, newExchange } from './bus.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { outboxCount } from './facts.ts';
import { eventRecord } from './records.ts';
import { connectTestDatabase, createTestRelay, type TestRelay } from './relay.ts';
import type { Notification } from './sender.ts';
import { waitFor } from './waits.ts';

type RelayOptions = Omit<Parameters<typeof createTestRelay>[0], 'database' | 'exchange'>;

export type Stage = AsyncDisposable & {
  readonly exchange: string;
  readonly database: TestDatabase;
  readonly bus: Bus;
  readonly connection: DatabaseConnection;
  /** It ends with the stage. It leads once its lease is taken, and works when it is told to. */
  readonly addRelay: (options?: RelayOptions) => Promise<TestRelay>;
  /** One that leads, and has read the outbox: what it writes goes from memory. */
  readonly addLeader: (options?: RelayOptions) => Promise<TestRelay>;
};

export async function createStage(): Promise<Stage> {
  await using stack = new AsyncDisposableStack();
  const exchange = newExchange();
  const database = stack.use(await createTestDatabase());
  const bus = stack.use(await listen(exchange));
  const connection = stack.use(connectTestDatabase(database));
  const all = stack.move();
  const addRelay = async (options: RelayOptions = {}) =>
    all.use(await createTestRelay({ ...options, database, exchange }));
  return {
    exchange,
    database,
    bus,
    connection,
    addRelay,
    addLeader: async (options) => {
      const leader = await addRelay(options);
      await leader.lease.attempt();
      await leader.relay.runOnce();
      return leader;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

type Write = {
  /** After the commit. The write has its answer when this resolves; it is lost if this rejects. */
  readonly beforeAnswer?: () => Promise<unknown>;
};

/** Records the notifications in one write, as the intake of this replica does. */
export async function write(
  { handOff }: Pick<TestRelay, 'handOff'>,
  connection: Pick<DatabaseConnection, 'execute'>,
  notifications: readonly Notification[],
  { beforeAnswer }: Write = {},
): Promise<void> {
  const batch = notifications.map((notification) => eventRecord(notification));
  await handOff.write(batch, async (mark) => {
    const recorded = await recordDeliveries(connection, batch, mark);
    await beforeAnswer?.();
    return recorded;
  });
}

/** Its lease has run out, as while it stalls. */
export async function endLease(database: TestDatabase): Promise<void> {
  await database.query('update relay_lease set expires_at = now()');
}

/** The ids of what was given to the broker, in order. */
export const idsOf = (relay: TestRelay): string[] => relay.published.map(({ messageId }) => messageId);

export const ids = (jobId: string, ...percents: number[]): string[] =>
  percents.map((percent) => `default:${jobId}:processing:${percent}`);

export const isIdle = (relay: TestRelay): Promise<void> =>
  waitFor(() => expect(relay.relay.inFlight()).toBe(0));

export const isEmpty = (database: TestDatabase) => async (): Promise<boolean> =>
  (await outboxCount(database)) === 0;

/** The entries of all events in batches, as a load finds them. */
export async function allPending({ outbox }: Pick<TestRelay, 'outbox'>) {
  const except = { batches: [], events: [] };
  const { found } = await outbox.loadPending({
    since: undefined,
    except,
    inFlight: [],
    limit: 10,
    bytes: 1_000_000,
  });
  return found.map(({ entry }) => entry);
}
