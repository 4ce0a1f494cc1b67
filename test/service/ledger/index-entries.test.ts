// How many index entries an event makes, from its delivery to the confirmed publication. Each one is written, logged, and read
// again by a vacuum, so their number is most of what an event costs in Postgres.

import { expect, test } from 'vitest';
import { readOutboxDepth } from '../../../src/ledger/index.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { batchesOf, countIndexEntries, keepVersions } from '../../support/index-entries.ts';
import { post } from '../../support/load.ts';
import { patience } from '../../support/patience.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { readMetrics } from '../../support/requests.ts';
import { completed, failed, newJobId, type Notification, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { openTransaction } from '../../support/transaction.ts';

/**
 * One more index makes one more entry of each event, which reaches the limit. Less than one is left for what a slow machine adds: a
 * further write of results, or an update that found its page full. Known is its job, first is the event of its job. All but `alone`
 * in batches of `BATCH_MIN`.
 */
const ENTRIES_BELOW = { knownProgress: 9, firstCompleted: 11, firstFailed: 16, alone: 17 } as const;

const BATCH_MIN = 20;
const MANY = 100;
const ALONE = 20;
/** On a busy machine. Each wait ends with its fact. */
const WAIT = { timeout: patience(15_000) };

type Send = (service: TestService, notifications: readonly Notification[]) => Promise<void>;

const newJobs = (count = MANY) => Array.from({ length: count }, newJobId);

test('an event makes few index entries, in a batch and alone', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  // The longest deadline, since writes wait for a lock here.
  const env = { ANSWER_DEADLINE_MS: '9500' };
  await using service = await startTestService({ exchange, env });
  // A job's new version needs room on its page, which a vacuum makes in a table that is in use.
  await service.database.query('alter table jobs set (fillfactor = 40)');
  const known = newJobs();
  const beginnings = known.map((job) => progress(job, 10));
  await together(service, beginnings);
  await using _ = await keepVersions(service.database);

  const loads: readonly (readonly [keyof typeof ENTRIES_BELOW, Send, Notification[]])[] = [
    ['knownProgress', together, known.map((job) => progress(job, 50))],
    ['firstCompleted', together, newJobs().map((job) => completed(job))],
    ['firstFailed', together, newJobs().map((job) => failed(job))],
    ['alone', oneByOne, newJobs(ALONE).map((job) => completed(job))],
  ];
  for (const [name, send, notifications] of loads) {
    const byIndex = await entriesOf(service, send, notifications);
    const entries = [...byIndex.values()].reduce((sum, each) => sum + each, 0);
    expect.soft(entries, `${name}, of ${JSON.stringify([...byIndex])}`).toBeLessThan(ENTRIES_BELOW[name]);
  }
  await bus.received(4 * MANY + ALONE); // none was returned, which would make other entries
});

/** New entries for each event, by index, when all are accepted, published and settled. */
async function entriesOf(
  service: TestService,
  send: Send,
  notifications: readonly Notification[],
): Promise<Map<string, number>> {
  const { database } = service;
  const before = await countIndexEntries(database);
  await send(service, notifications);
  const after = await countIndexEntries(database);
  const added = [...after].map(([name, entries]) => [name, entries - (before.get(name) ?? 0)] as const);
  return new Map(
    added
      .filter(([, entries]) => entries !== 0)
      .map(([name, entries]) => [name, entries / notifications.length]),
  );
}

/** While the first write waits for a lock, the others gather, and share the next ones. */
async function together(service: TestService, notifications: readonly Notification[]): Promise<void> {
  const { database, webhooks, operators } = service;
  const lock = await openTransaction(database);
  await lock.query('lock table deliveries in share mode');
  const answers = notifications.map((each) => post(webhooks, each));
  const waiting = async () => (await readMetrics(operators)).get('tallyhook_write_queue_deliveries');
  await expect.poll(waiting, WAIT).toBe(notifications.length);
  await lock.rollback();
  for (const { status } of await Promise.all(answers)) expect(status).toBe(202);
  await settled(service);
  const batches = await batchesOf(database, notifications.length);
  expect(notifications.length / batches).toBeGreaterThanOrEqual(BATCH_MIN);
}

async function oneByOne(service: TestService, notifications: readonly Notification[]): Promise<void> {
  const { database, webhooks } = service;
  for (const each of notifications) {
    expect((await post(webhooks, each)).status).toBe(202);
    await settled(service);
  }
  expect(await batchesOf(database, notifications.length)).toBe(notifications.length);
}

/** Nothing is left to publish, and what was published is written. */
async function settled({ database }: TestService): Promise<void> {
  await using connection = connectTestDatabase(database);
  const pending = async () => (await readOutboxDepth(connection.db, null)).counts.pending;
  await expect.poll(pending, WAIT).toBe(0);
}
