import { expect, test } from 'vitest';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase } from '../../support/database.ts';
import { outboxCount, outOfOrder } from '../../support/facts.ts';
import { addEntry, connectTestDatabase, createTestRelay, retry } from '../../support/relay.ts';
import { hold } from '../../support/outbox.ts';
import { newJobId } from '../../support/sender.ts';

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
