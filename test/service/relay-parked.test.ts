import { expect, test } from 'vitest';
import { listen, newExchange } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { outboxCount, outOfOrder } from '../support/facts.ts';
import { addEntry, connectTestDatabase, createTestRelay, retry } from '../support/relay.ts';
import { newJobId } from '../support/sender.ts';

test('guarantee 5: events that waited behind a parked one follow it when an operator sends it again', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await using bus = await listen(exchange);
  const jobId = newJobId();
  const parked = await addEntry(database, { jobId, percent: 1 });
  await addEntry(database, { jobId: newJobId() });
  await addEntry(database, { jobId, percent: 2 });
  await database.query("update outbox set attempts = 20, state = 'parked' where sequence = $1", [parked]);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  await relay.relay.runOnce();
  expect(relay.published).toHaveLength(1);
  expect(await retry(connection.db, 'parked')).toBe(1);
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
  await bus.received(3);
  expect(outOfOrder(bus.messages)).toEqual([]);
});
