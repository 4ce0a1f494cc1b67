// A service whose Postgres can be taken away.

import { createTestDatabase } from './database.ts';
import { startProxy } from './proxy.ts';
import { startTestService, type TestService } from './service.ts';

export type BehindProxy = AsyncDisposable & {
  /** Its `database` is still there for the test. */
  readonly relay: TestService;
  /** Its sessions end, and it gets no new ones. */
  readonly takeAway: () => void;
};

export async function startBehindProxy(): Promise<BehindProxy> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await createTestDatabase());
  const proxy = started.use(await startProxy(database.url, { defaultPort: 5432 }));
  const relay = started.use(await startTestService({ database, env: { DATABASE_URL: proxy.url } }));
  started.defer(proxy.heal); // a stop has things to write
  const all = started.move();
  return {
    relay,
    takeAway: () => {
      proxy.refuse();
      proxy.cut();
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
