// A database that went back in time: restored from a copy of its folder, or from a dump, while subscribers go on.

import { renameSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BusMessage, listen, newExchange } from '../support/bus.ts';
import { visitConsole } from '../support/console.ts';
import { createTestDatabase } from '../support/database.ts';
import { operators } from '../support/operators.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/own-servers.ts';
import { readMetric } from '../support/requests.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/waits.ts';

let postgres: OwnPostgres;

beforeAll(async () => {
  postgres = await startOwnPostgres();
});

afterAll(() => postgres[Symbol.asyncDispose]());

/** Each until it is acknowledged: Postgres may just have been started. @returns the ids of the events */
async function sendFive({ webhooks }: Pick<TestService, 'webhooks'>): Promise<string[]> {
  const jobs = Array.from({ length: 5 }, newJobId);
  for (const job of jobs) {
    await waitFor(
      async () => expect(await deliver(webhooks, completed(job))).toMatchObject({ status: 202 }),
      {
        timeout: 15_000,
        interval: 100,
      },
    );
  }
  return jobs.map((job) => `default:${job}:completed`);
}

const sequence = ({ event }: BusMessage) => String(event['sequence']);

/** Which of `later` a subscriber takes that drops what is not above all that it had before. Between jobs there is no order. */
function takenBySequence(
  messages: readonly BusMessage[],
  before: readonly string[],
  later: readonly string[],
): string[] {
  const had = messages.filter(({ id }) => before.includes(id)).map(sequence);
  const highest = had.toSorted().at(-1) ?? '';
  return later.filter((id) => messages.some((message) => message.id === id && sequence(message) > highest));
}

const losses = (service: Pick<TestService, 'operators'>) =>
  readMetric(service.operators, 'tallyhook_database_losses_total');

test('after a restore of the data folder a subscriber that goes by sequence misses nothing, and operators learn of the loss', async () => {
  const exchange = newExchange();
  await using database = await postgres.createDatabase();
  await using bus = await listen(exchange);
  await using service = await startTestService({ database, exchange, env: { MIGRATE_ON_START: 'true' } });
  const data = join(postgres.server.dir, 'data');

  const kept = await sendFive(service);
  await bus.received(5);
  await postgres.server.stop();
  spawnSync('cp', ['-a', data, `${data}.backup`]);
  await postgres.server.start();
  const lost = await sendFive(service);
  await bus.received(10);
  expect(await losses(service)).toBe(0); // a restart alone is no loss

  await postgres.server.stop();
  renameSync(data, `${data}.lost`);
  renameSync(`${data}.backup`, data);
  await postgres.server.start();
  const later = await sendFive(service);

  await waitFor(() => expect(new Set(bus.ids())).toEqual(new Set([...kept, ...lost, ...later])));
  expect(takenBySequence(bus.messages, [...kept, ...lost], later)).toEqual(later);
  await expect.poll(() => losses(service)).toBe(1);
  expect(service.log).toContainEqual(
    expect.objectContaining({
      msg: 'the database went back in time: deliveries that were acknowledged are gone (docs/backup.md)',
      deliveryId: expect.any(String),
      keptUntil: expect.any(String),
    }),
  );
  const api = await operators(service, { role: 'admin' });
  await expect
    .poll(async () => (await api.get<{ loss: unknown }>('/replicas')).body.loss)
    .toEqual({
      at: expect.any(String),
      acknowledged_at: expect.any(String),
      kept_until: expect.any(String),
    });
  const page = await (await visitConsole(service)).get('/console');
  expect(page.text).toContain('The database went back in time');
  expect(await api.get('/operator-log?action=database.loss')).toMatchObject({
    body: {
      items: [{ actor: expect.stringMatching(/^replica /), detail: { acknowledgedAt: expect.any(String) } }],
    },
  });
});

test('a copy of the database, as a dump is, gives no number that its original has given since', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using original = await createTestDatabase({ empty: true });
  const settings = { exchange, env: { MIGRATE_ON_START: 'true' } };
  const service = await startTestService({ database: original, ...settings });
  const kept = await sendFive(service);
  await service.service.stop();
  await using copy = await createTestDatabase({ of: original });
  {
    await using again = await startTestService({ database: original, ...settings });
    kept.push(...(await sendFive(again)));
    await bus.received(10);
  }

  await using restored = await startTestService({ database: copy, ...settings });
  const later = await sendFive(restored);

  await waitFor(() => expect(bus.ids()).toEqual(expect.arrayContaining(later)));
  expect(takenBySequence(bus.messages, kept, later)).toEqual(later);
});
