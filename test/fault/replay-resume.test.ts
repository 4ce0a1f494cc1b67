import { randomBytes } from 'node:crypto';
import { connect } from 'amqplib';
import { expect, onTestFinished, test } from 'vitest';
import { amqpUrl, listen, newExchange } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { outboxCount } from '../support/facts.ts';
import { operators } from '../support/operators.ts';
import { startReplica } from '../support/replica.ts';
import { countsOf, seedEvents, stateOf } from '../support/replays.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { waitFor } from '../support/waits.ts';

const EVENTS = 10_000;
const RATE_PER_SECOND = 1_000;
/** The most copies in flight when the relay was killed: their share of RELAY_IN_FLIGHT. */
const MOST_IN_FLIGHT = 250;

/** A durable queue that is not bound to any exchange. */
async function addQueue() {
  const connection = await connect(amqpUrl());
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue(`test.refill.${randomBytes(6).toString('hex')}`, {
    durable: true,
  });
  onTestFinished(async () => {
    await channel.deleteQueue(queue);
    await connection.close();
  });
  return {
    queue,
    count: async () => (await channel.checkQueue(queue)).messageCount,
    drain: async (count: number) => {
      const ids: string[] = [];
      const { promise, resolve } = Promise.withResolvers<void>();
      await channel.consume(
        queue,
        (message) => {
          ids.push(String(message?.properties.messageId));
          if (ids.length >= count) resolve();
        },
        { noAck: true },
      );
      await promise;
      return ids;
    },
  };
}

test('a replay of 10,000 events to one queue is killed half-way and resumed, and each id is exactly where it should be', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const refill = await addQueue();
  let live = 0;
  const sendLive = async (webhooks: string) => {
    const { status } = await deliver(webhooks, completed(newJobId()));
    if (status === 202) live += 1;
  };

  await using first = await startReplica({ databaseUrl: database.url, exchange });
  const ids = await seedEvents(database, EVENTS);
  const operator = await operators({ operators: first.operators, database }, { role: 'operator' });
  const { status, body } = await operator.post<{ id: string }>('/replays', {
    filter: { source: 'default', job_id_prefix: 'job_0' },
    queue: refill.queue,
    rate_per_second: RATE_PER_SECOND,
  });
  expect(status).toBe(202);
  await waitFor(
    async () => {
      await sendLive(first.webhooks);
      expect(await refill.count()).toBeGreaterThan(EVENTS / 3);
    },
    { timeout: 20_000, interval: 50 },
  );
  first.kill('SIGKILL');
  await first.exited;
  const atTheKill = await countsOf(database, body.id);
  expect(atTheKill['confirmed']).toBeLessThan(EVENTS);

  await using second = await startReplica({ databaseUrl: database.url, exchange });
  await waitFor(
    async () => {
      await sendLive(second.webhooks);
      expect(await stateOf(database, body.id)).toMatchObject({ state: 'finished' });
    },
    { timeout: 30_000, interval: 100 },
  );

  // Each is counted once, though some were sent twice.
  expect(await countsOf(database, body.id)).toEqual({
    matched: EVENTS,
    queued: EVENTS,
    confirmed: EVENTS,
    returned: 0,
    failed: 0,
    skipped: 0,
  });
  const count = await refill.count();
  const arrived = await refill.drain(count);
  expect([...new Set(arrived)].toSorted()).toEqual(ids);
  expect(count - EVENTS).toBeLessThanOrEqual(MOST_IN_FLIGHT);
  // The subscribers of the exchange received every live event, and nothing else.
  await waitFor(async () => expect(await outboxCount(database)).toBe(0));
  await bus.received(live);
  expect(new Set(bus.ids()).size).toBe(live);
  expect(bus.ids().filter((id) => ids.includes(id))).toEqual([]);
});
