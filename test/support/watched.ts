// A service with its database and a subscriber, for tests that check all three.

import { type Bus, listen, newExchange } from './bus.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { holdOutbox } from './ledger.ts';
import { completed, deliver, newJobId, SECRET } from './sender.ts';
import { startTestService, type TestService } from './service.ts';
import { OUTBOX } from './outbox.ts';
import { waitFor } from './waits.ts';

/** The prefix of jobs that are sent only to see that everything before them was published. */
export const SENTINEL = 'sentinel_';
const PATIENCE = { timeout: 10_000, interval: 20 };

export type WatchedService = AsyncDisposable & {
  readonly relay: TestService;
  readonly database: TestDatabase;
  readonly bus: Bus;
  /** Waits until everything is published, and returns all ids that were on the bus, or those of one job. */
  readonly published: (jobId?: string) => Promise<string[]>;
  /** Lets the relay publish after `holdsOutbox`. */
  readonly letGo: () => Promise<void>;
};

/** With `holdsOutbox` the relay publishes nothing until `letGo` or `published`, so that the test can read the outbox. */
export async function startWatchedService(
  options: { env?: Record<string, string>; holdsOutbox?: boolean } = {},
): Promise<WatchedService> {
  const stack = new AsyncDisposableStack();
  try {
    const exchange = newExchange();
    const bus = stack.use(await listen(exchange));
    const database = stack.use(await createTestDatabase());
    const hold = options.holdsOutbox ? await holdOutbox(database) : undefined;
    const relay = stack.use(await startTestService({ env: options.env ?? {}, database, exchange }));
    const letGo = () => hold?.letGo() ?? Promise.resolve();
    const sentinels = new Set<string>();
    return {
      relay,
      database,
      bus,
      letGo,
      published: async (ofJob) => {
        await letGo();
        // Jobs do not wait for each other: all else must be confirmed before the sentinel is sent. The queue keeps the order.
        await waitFor(async () => {
          const [row] = await database.query<{ pending: string }>(
            `select count(*) as pending from ${OUTBOX} where state = 'pending' and attempts = 0`,
          );
          if (row?.pending !== '0') throw new Error(`${row?.pending} events are still to be published`);
        }, PATIENCE);
        const jobId = `${SENTINEL}${newJobId()}`;
        const sentinel = `default:${jobId}:completed`;
        sentinels.add(sentinel);
        await deliver(relay.webhooks, completed(jobId), { secret: SECRET });
        await waitFor(() => {
          if (!bus.ids().includes(sentinel)) throw new Error('not all is published yet');
        }, PATIENCE);
        const isWanted = (id: string) => ofJob === undefined || id.includes(`:${ofJob}:`);
        return bus.ids().filter((id) => !sentinels.has(id) && isWanted(id));
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
