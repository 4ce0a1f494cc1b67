// One service for all tests of a file that do not disturb each other, since starting a service takes longer than most of
// them.

import { test } from 'vitest';
import { type Bus, listen, newExchange } from './bus.ts';
import { startTestService, type TestService } from './service.ts';
import { startWatchedService, type WatchedService } from './watched.ts';

export const testWithService = test.extend<{ relay: TestService }>({
  relay: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      await using relay = await startTestService({ env: { REFUSED_ROWS_PER_MINUTE: '10000' } });
      await use(relay);
    },
    { scope: 'file' },
  ],
});

export const testWithWatched = test.extend<{ watched: WatchedService }>({
  watched: [
    // oxlint-disable-next-line no-empty-pattern -- as above
    async ({}, use) => {
      const env = { REFUSED_ROWS_PER_MINUTE: '10000', BODY_LIMIT_BYTES: '1024' };
      await using watched = await startWatchedService({ env });
      await use(watched);
    },
    { scope: 'file' },
  ],
});

/** `bus` receives all that `service` publishes. */
export const testWithBus = test.extend<{ running: { readonly service: TestService; readonly bus: Bus } }>({
  running: [
    // oxlint-disable-next-line no-empty-pattern -- as above
    async ({}, use) => {
      const exchange = newExchange();
      await using bus = await listen(exchange);
      await using service = await startTestService({ exchange });
      await use({ service, bus });
    },
    { scope: 'file' },
  ],
});
