// One service for the tests of a file, in which each test has a source of its own: a token that is limited to it shows nothing of the
// other tests. For tests of what comes from a sender; where rows are put in by hand, any name of a source will do.

import { test } from 'vitest';
import { type Bus, listen, newExchange } from './bus.ts';
import { createFolder } from './folder.ts';
import { SECRET } from './sender.ts';
import { startTestService, type TestService } from './service.ts';

export type Apart = {
  readonly relay: TestService;
  /** Of this test alone. */
  readonly source: string;
  /** Where its sender delivers, with the usual secret. */
  readonly webhooks: string;
};

type Shared = { readonly relay: TestService; readonly takeSource: () => string };

/** More than a file has tests. */
const SOURCES = 30;

export const testApart = test.extend<{ shared: Shared; apart: Apart }>({
  shared: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      const names = Array.from({ length: SOURCES }, (_, at) => `team-${at}`);
      const content = Object.fromEntries(names.map((name) => [name, { secrets: [SECRET] }]));
      await using folder = await createFolder();
      const file = await folder.write('sources.json', JSON.stringify(content));
      const exchange = newExchange();
      await using _ = await listen(exchange, { bindings: [] });
      await using relay = await startTestService({ exchange, env: { SOURCES_FILE: file } });
      const takeSource = () => {
        const name = names.shift();
        if (name === undefined) throw new Error(`a file has at most ${SOURCES} tests apart`);
        return name;
      };
      await use({ relay, takeSource });
    },
    { scope: 'file' },
  ],
  apart: async ({ shared: { relay, takeSource } }, use) => {
    const source = takeSource();
    await use({ relay, source, webhooks: `${relay.webhooks}/${source}` });
  },
});

/** Receives what is published of the test's source from now on: these kinds. */
export async function listenApart({ relay, source }: Apart, kinds: readonly string[] = ['*']): Promise<Bus> {
  const bus = await listen(newExchange(), { bindings: [] });
  for (const kind of kinds) await bus.channel.bindQueue(bus.queue, relay.exchange, `job.${kind}.${source}`);
  return bus;
}
