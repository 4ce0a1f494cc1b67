import { expect, test, vi } from 'vitest';
import { recordDeliveries } from '../../../src/ledger/index.ts';
import type { DatabaseConnection } from '../../../src/ledger/database.ts';
import { amqpUrl, listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase } from '../../support/database.ts';
import { outboxCount, outOfOrder } from '../../support/facts.ts';
import { startProxy } from '../../support/proxy.ts';
import { eventRecord } from '../../support/records.ts';
import {
  addEntry,
  connectTestDatabase,
  createTestRelay,
  retry,
  type TestRelay,
} from '../../support/relay.ts';
import { hold } from '../../support/outbox.ts';
import { newJobId, progress } from '../../support/sender.ts';

const idsOf = (relay: TestRelay) => relay.published.map(({ messageId }) => messageId);
const idOf = (jobId: string, percent: number) => `default:${jobId}:processing:${percent}`;

/** One write for each, as the intake of this replica does it. */
async function write(
  { handOff }: Pick<TestRelay, 'handOff'>,
  connection: Pick<DatabaseConnection, 'execute'>,
  jobId: string,
  ...percents: number[]
): Promise<void> {
  for (const percent of percents) {
    const batch = [eventRecord(progress(jobId, percent))];
    await handOff.write(batch, (mark) => recordDeliveries(connection, batch, mark));
  }
}

test('guarantee 5: events that waited behind a parked one follow it when an operator sends it again', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await using bus = await listen(exchange);
  const jobId = newJobId();
  const parked = await addEntry(database, { jobId, percent: 1 });
  await addEntry(database, { jobId: newJobId() });
  await addEntry(database, { jobId, percent: 2 });
  await hold(database, { state: 'parked', attempts: 20 }, `e.sequence = ${parked}`);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  await relay.relay.runOnce();
  expect(relay.published).toHaveLength(1);
  expect(await retry(connection.db, 'parked')).toBe(1);
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
  await bus.received(3);
  expect(outOfOrder(bus.messages)).toEqual([]);
});

test('what an operator parks or discards does not go out, though the relay had read it before', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const jobId = newJobId();
  const sequences: string[] = [];
  for (const percent of [1, 2, 3]) sequences.push(await addEntry(database, { jobId, percent }));
  const others = Array.from({ length: 20 }, () => newJobId());
  for (const job of others) await addEntry(database, { jobId: job });
  let aheadMs = 0;
  await using relay = await createTestRelay({
    database,
    exchange,
    limits: { inFlight: 15 },
    now: () => performance.now() + aheadMs,
  });
  await relay.lease.attempt();
  const letGo = relay.holdPublishes();
  await relay.relay.runOnce();
  expect(relay.published).toHaveLength(15);

  // In memory, behind the first of its job and not on its way; and one that waits for its turn.
  await hold(database, { state: 'parked' }, `e.sequence = ${sequences[1]}`);
  await database.query(
    'delete from outbox_batches where sequences = array(select sequence from events where job_id = $1)',
    [others.at(-1)],
  );
  aheadMs = 10_000;
  await relay.relay.runOnce();
  letGo();

  await relay.runUntil(async () => (await outboxCount(database)) === 2);
  await bus.received(20);
  expect(bus.ids()).not.toContain(`default:${others.at(-1)}:completed`);
  expect(bus.ids().filter((id) => id.includes(jobId))).toEqual([`default:${jobId}:processing:1`]);
});

test('what an operator parks does not go out, though the relay has no room to load anything', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using connection = connectTestDatabase(database);
  await using relay = await createTestRelay({ database, exchange, limits: { inFlight: 1 } });
  await relay.lease.attempt();
  await relay.relay.runOnce();
  const jobId = newJobId();
  const letGo = relay.holdPublishes();
  await write(relay, connection, jobId, 10, 20);
  await hold(database, { state: 'parked' }, 'e.progress_percentage = 20');

  await relay.relay.runOnce();
  letGo();
  await relay.runUntil(async () => (await outboxCount(database)) === 1);
  await relay.relay.runOnce();

  await bus.received(1);
  expect(idsOf(relay)).toEqual([idOf(jobId, 10)]);
});

test('what an operator parks does not go out, though the relay reads its whole outbox again', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using connection = connectTestDatabase(database);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  await relay.relay.runOnce();
  const jobId = newJobId();
  const letGo = relay.holdPublishes();
  await write(relay, connection, jobId, 10, 20);
  await hold(database, { state: 'parked' }, 'e.progress_percentage = 20');
  // Nobody knows whether this one was committed, so the next load begins anew.
  await expect(relay.handOff.write([], () => Promise.reject(new Error('no answer')))).rejects.toThrow(
    'no answer',
  );

  await relay.relay.runOnce();
  letGo();
  await relay.runUntil(async () => (await outboxCount(database)) === 1);
  await relay.relay.runOnce();

  await bus.received(1);
  expect(idsOf(relay)).toEqual([idOf(jobId, 10)]);
});

test('what an operator parks while it is on its way is not published again when the broker is back', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using connection = connectTestDatabase(database);
  await using proxy = await startProxy(amqpUrl(), { defaultPort: 5672, counts: 'bytes' });
  await using relay = await createTestRelay({ database, exchange, amqpUrl: proxy.url });
  await relay.lease.attempt();
  await relay.relay.runOnce();
  const [jobId, other] = [newJobId(), newJobId()];
  proxy.silence();
  await write(relay, connection, jobId, 10, 20);
  await write(relay, connection, other, 30, 40);
  await hold(database, { state: 'parked' }, 'e.progress_percentage in (10, 40)');
  await relay.relay.runOnce();
  proxy.reset();
  proxy.heal();
  await vi.waitFor(() => expect(relay.publisher.isReady()).toBe(false));
  await vi.waitFor(() => expect(relay.publisher.isReady()).toBe(true), { timeout: 10_000 });

  await relay.runUntil(async () => (await outboxCount(database)) === 3);
  await relay.relay.runOnce();

  await bus.received(1);
  expect(idsOf(relay)).toEqual([idOf(jobId, 10), idOf(other, 30), idOf(other, 30)]);
});

test('what an operator parks while the broker is away is not published when it is back', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using connection = connectTestDatabase(database);
  await using proxy = await startProxy(amqpUrl(), { defaultPort: 5672, counts: 'bytes' });
  await using relay = await createTestRelay({ database, exchange, amqpUrl: proxy.url });
  await relay.lease.attempt();
  await relay.relay.runOnce();
  const jobId = newJobId();
  proxy.silence();
  await write(relay, connection, jobId, 10, 20);
  proxy.refuse();
  proxy.reset();
  await vi.waitFor(() => expect(relay.publisher.isReady()).toBe(false));
  await hold(database, { state: 'parked' }, 'e.progress_percentage = 20');
  await write(relay, connection, newJobId(), 30);
  await relay.relay.runOnce();
  proxy.heal();

  await relay.runUntil(async () => (await outboxCount(database)) === 1);
  await relay.relay.runOnce();

  await bus.received(1);
  expect(idsOf(relay)).not.toContain(idOf(jobId, 20));
});
