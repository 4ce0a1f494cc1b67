// Events that go to the relay from memory, while other replicas write, loads run, publishes fail and leaders change.

import { expect, test } from 'vitest';
import type { Entry, Settlement } from '../../../src/relay/entry.ts';
import { amqpUrl, type Bus } from '../../support/bus.ts';
import { outboxCount } from '../../support/facts.ts';
import { hold } from '../../support/outbox.ts';
import { startProxy } from '../../support/proxy.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { createTestRelay, retry } from '../../support/relay.ts';
import { allPending, createStage, ids, idsOf, isEmpty, isIdle, write } from '../../support/relay-stage.ts';
import { newJobId, progress } from '../../support/sender.ts';
import { waitFor } from '../../support/waits.ts';

/** From now on the broker refuses each message, until the returned function is called. */
async function refuseAll({ channel }: Bus, exchange: string): Promise<() => Promise<void>> {
  const { queue } = await channel.assertQueue('', {
    exclusive: true,
    arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' },
  });
  channel.sendToQueue(queue, Buffer.from('a filler'));
  await waitFor(async () => expect((await channel.checkQueue(queue)).messageCount).toBe(1));
  await channel.bindQueue(queue, exchange, '#');
  return async () => {
    await channel.deleteQueue(queue);
  };
}

test('an event behind a gate stays behind the one before it that fails meanwhile', async () => {
  await using stage = await createStage();
  const { exchange, database, bus, connection } = stage;
  const leader = await stage.addRelay();
  const other = await stage.addRelay();
  await leader.lease.attempt();
  const accept = await refuseAll(bus, exchange);
  const jobId = newJobId();
  await write(other, connection, [progress(jobId, 10)]);
  const letGo = leader.holdPublishes();
  await leader.relay.runOnce();
  await write(leader, connection, [progress(jobId, 20)]);
  letGo();
  await isIdle(leader);

  await leader.relay.runOnce();
  await leader.relay.runOnce();
  await accept();
  await leader.runUntil(isEmpty(database));

  expect(idsOf(leader)).toEqual(ids(jobId, 10, 10, 20));
});

test('an event in a batch goes before a later one of its job that is held', async () => {
  await using stage = await createStage();
  const { exchange, database, bus, connection } = stage;
  const accept = await refuseAll(bus, exchange);
  const next = await stage.addRelay();
  const jobId = newJobId();
  {
    await using former = await createTestRelay({ database, exchange });
    await former.lease.attempt();
    await write(next, connection, [progress(jobId, 10)]);
    await former.relay.runOnce();
    await write(next, connection, [progress(jobId, 20)]);
    await isIdle(former);
    // It leads no more, writes its result, and loads nothing.
    await former.lease.release();
    await former.relay.runOnce();
  }
  await write(next, connection, [progress(jobId, 30)]);
  expect(await database.query('select count(*)::int as n from outbox_held')).toEqual([{ n: 2 }]);
  await accept();
  await waitFor(async () =>
    expect(await database.query('select from outbox_held where due_at > now()')).toEqual([]),
  );

  await next.lease.attempt();
  await next.runUntil(isEmpty(database));

  expect(idsOf(next)).toEqual(ids(jobId, 10, 20, 30));
});

test('an event that was handed over while a load ran stays behind the one that is held since', async () => {
  await using stage = await createStage();
  const { exchange, database, bus, connection } = stage;
  const leader = await stage.addLeader();
  const accept = await refuseAll(bus, exchange);
  const jobId = newJobId();
  const letGo = leader.holdPublishes();
  await write(leader, connection, [progress(jobId, 10)]);
  expect(idsOf(leader)).toEqual(ids(jobId, 10));
  const answer = Promise.withResolvers<void>();
  const committed = Promise.withResolvers<void>();
  const beforeAnswer = () => (committed.resolve(), answer.promise);
  const written = write(leader, connection, [progress(jobId, 20)], { beforeAnswer });
  await committed.promise;
  letGo();
  await isIdle(leader);
  // An unknown result makes the next load one of all that there is.
  await leader.handOff.write([], () => Promise.reject(new Error('the connection is lost'))).catch(() => {});

  const letLoad = leader.holdLoads();
  const loads = leader.loads();
  const round = leader.relay.runOnce();
  answer.resolve();
  await written;
  await waitFor(() => expect(leader.loads()).toBe(loads + 1));
  letLoad();
  await round;
  await leader.relay.runOnce();
  await accept();
  await leader.runUntil(isEmpty(database));

  expect(idsOf(leader)).toEqual(ids(jobId, 10, 10, 20));
});

test('an event whose write had no answer when an earlier one of its job was parked waits behind that one', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const leader = await stage.addLeader();
  const jobId = newJobId();
  const letGo = leader.holdPublishes();
  await write(leader, connection, [progress(jobId, 10)]);
  await write(leader, connection, [progress(jobId, 20)]);
  const answer = Promise.withResolvers<void>();
  const committed = Promise.withResolvers<void>();
  const beforeAnswer = () => (committed.resolve(), answer.promise);
  const written = write(leader, connection, [progress(jobId, 30)], { beforeAnswer });
  await committed.promise;
  await hold(database, { state: 'parked' }, 'e.progress_percentage = 20');

  const round = leader.relay.runOnce();
  answer.resolve();
  await written;
  await round;
  letGo();
  await leader.runUntil(async () => (await outboxCount(database)) === 2);
  await leader.relay.runOnce();

  expect(idsOf(leader)).toEqual(ids(jobId, 10));
  await retry(connection.db, 'parked');
  await leader.runUntil(isEmpty(database));
  expect(idsOf(leader)).toEqual(ids(jobId, 10, 20, 30));
});

test('a committed write whose answer is lost is found, and before what its job has later', async () => {
  await using stage = await createStage();
  const { database, bus, connection } = stage;
  const leader = await stage.addLeader();
  const jobId = newJobId();
  const answer = Promise.withResolvers<void>();
  const committed = Promise.withResolvers<void>();
  const beforeAnswer = () => (committed.resolve(), answer.promise);
  const written = write(leader, connection, [progress(jobId, 10)], { beforeAnswer });
  await committed.promise;
  // This load leaves the write out, since it will be handed over.
  await leader.relay.runOnce();
  answer.reject(new Error('the connection is lost'));
  await expect(written).rejects.toThrow('the connection is lost');

  await write(leader, connection, [progress(jobId, 20)]);
  await leader.runUntil(isEmpty(database));

  await bus.received(2);
  expect(idsOf(leader)).toEqual(ids(jobId, 10, 20));
});

test('events that wait for a load do not use up the room of that load', async () => {
  await using stage = await createStage();
  const { database, bus, connection } = stage;
  const leader = await stage.addLeader({ limits: { inFlight: 2 } });
  const other = await stage.addRelay();
  const jobs = Array.from({ length: 9 }, newJobId);
  await write(
    other,
    connection,
    jobs.map((jobId) => progress(jobId, 10)),
  );
  await write(
    leader,
    connection,
    jobs.map((jobId) => progress(jobId, 20)),
  );

  await leader.runUntil(isEmpty(database));

  await bus.received(18);
  for (const jobId of jobs) {
    expect(idsOf(leader).filter((id) => id.includes(jobId))).toEqual(ids(jobId, 10, 20));
  }
});

test('two replicas that take turns with the events of one job publish each once, and in order', async () => {
  await using stage = await createStage();
  const { bus, connection } = stage;
  const leader = await stage.addRelay();
  const other = await stage.addRelay();
  await leader.lease.attempt();
  leader.relay.start();
  other.relay.start();
  const jobId = newJobId();
  const percents = Array.from({ length: 60 }, (_, percent) => percent);
  const startedMs = performance.now();

  for (const percent of percents) {
    await write(percent % 2 === 0 ? leader : other, connection, [progress(jobId, percent)]);
  }
  await bus.received(percents.length);

  expect(bus.ids()).toEqual(ids(jobId, ...percents));
  expect(idsOf(leader)).toHaveLength(percents.length);
  // A load for each event of its own that is behind one of another, and the polls.
  expect(leader.loads()).toBeLessThan(30 + (performance.now() - startedMs) / 50 + 5);
});

test('an idle relay loads once a poll, and one whose own events come from memory does not load for them', async () => {
  await using stage = await createStage();
  const { bus, connection } = stage;
  const pollMs = 200;
  const leader = await stage.addRelay({ limits: { pollMs } });
  await leader.lease.attempt();
  const startedMs = performance.now();
  leader.relay.start();
  await waitFor(() => expect(leader.loads()).toBeGreaterThan(1));

  for (let count = 0; count < 100; count++) await write(leader, connection, [progress(newJobId(), count)]);
  await bus.received(100);

  expect(leader.loads()).toBeLessThan((performance.now() - startedMs) / pollMs + 3);
});

test('a former leader that writes its results late takes nothing from the next one', async () => {
  await using stage = await createStage();
  const { exchange, database, bus, connection } = stage;
  const former = await stage.addRelay();
  const next = await stage.addRelay();
  await former.lease.attempt();
  await former.relay.runOnce();
  const accept = await refuseAll(bus, exchange);
  const jobId = newJobId();
  await write(former, connection, [progress(jobId, 10)]);
  await write(former, connection, [progress(jobId, 20)]);
  await isIdle(former);
  await former.lease.release();
  await accept();
  const letGo = next.holdPublishes();
  await next.lease.attempt();
  await next.relay.runOnce();

  // The first one has failed there, and both are held from now on. Here they are in memory.
  await former.relay.runOnce();
  letGo();
  await next.runUntil(isEmpty(database));

  expect(idsOf(former)).toEqual(ids(jobId, 10));
  const [first, second, ...copies] = idsOf(next);
  expect([first, second]).toEqual(ids(jobId, 10, 20));
  expect(copies).toEqual(ids(jobId, 10, 20).slice(0, copies.length));
  expect(await database.query('select is_held from jobs')).toEqual([{ is_held: false }]);
});

test('results that are written again, also at the same time, change nothing', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const relay = await stage.addRelay();
  const [whole, single, failing] = [newJobId(), newJobId(), newJobId()];
  await write(relay, connection, [progress(whole, 1), progress(whole.replace('job', 'other'), 1)]);
  await write(relay, connection, [progress(single, 1), progress(failing, 1)]);
  const [a, b, c, d] = await allPending(relay);
  if (!a?.batch || !b || !c || !d) throw new Error('not all were loaded');
  const confirmed = {
    number: 1,
    publication: { result: 'confirmed', durationMs: 1 },
    next: 'delete',
    retryInMs: 0,
  } as const;
  const nacked = {
    number: 2,
    publication: { result: 'nacked', detail: 'a test', blame: 'event', durationMs: 1 },
    next: 'retry',
    retryInMs: 0,
  } as const;
  for (const entry of [a, b]) a.batch.settle({ entry, ...confirmed });
  const first = {
    single: [
      { entry: c, ...confirmed },
      { entry: d, ...nacked },
    ],
    whole: [a.batch],
    held: [],
  };
  const publications = () =>
    database.query<{ n: number }>(`select count(*)::int as n from ${PUBLICATIONS}`).then(([row]) => row?.n);
  const holds = () => database.query('select is_held, hold_version from jobs where job_id = $1', [failing]);

  await Promise.all([1, 2, 3, 4].map(() => relay.outbox.settle(first)));
  expect(await publications()).toBe(4);
  expect(await holds()).toEqual([{ is_held: true, hold_version: 1 }]);

  const [held] = await relay.outbox.loadHeld({ limit: 10, bytes: 1_000_000, except: [] });
  if (held === undefined) throw new Error('nothing is held');
  const again = { single: [], whole: [], held: [{ entry: held, ...nacked }] };
  await Promise.all([1, 2, 3, 4].map(() => relay.outbox.settle(again)));
  expect(await publications()).toBe(5);
  const last = { single: [], whole: [], held: [{ entry: { ...held, attempts: 2 }, ...confirmed }] };
  await Promise.all([1, 2, 3, 4].map(() => relay.outbox.settle(last)));
  expect(await publications()).toBe(6);
  expect(await holds()).toEqual([{ is_held: false, hold_version: 1 }]);
  expect(await outboxCount(database)).toBe(0);
});

test('an attempt that ends with the connection is on record, and does not count', async () => {
  await using stage = await createStage();
  const { database, bus, connection } = stage;
  await using proxy = await startProxy(amqpUrl(), { defaultPort: 5672, counts: 'bytes' });
  const leader = await stage.addLeader({ amqpUrl: proxy.url });
  proxy.silence();
  await write(leader, connection, [progress(newJobId(), 10)]);
  proxy.reset();
  proxy.heal();

  await leader.runUntil(isEmpty(database), 20_000);

  await bus.received(1);
  expect(await database.query(`select attempt, result from ${PUBLICATIONS} p order by published_at`)).toEqual(
    [
      { attempt: 1, result: 'failed' },
      { attempt: 1, result: 'confirmed' },
    ],
  );
});

const uncounted = (entry: Entry, number: number, durationMs: number): Settlement => ({
  entry,
  number,
  next: 'keep',
  publication: { result: 'failed', detail: 'a test', blame: 'broker', durationMs },
  retryInMs: 0,
});

test('attempts that do not count are on record once, also if the answer of their write is lost', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const relay = await stage.addRelay();
  await write(relay, connection, [progress(newJobId(), 10), progress(newJobId(), 20)]);
  await hold(database, { state: 'pending' }, 'e.progress_percentage = 20');
  const [single] = await allPending(relay);
  const [held] = await relay.outbox.loadHeld({ limit: 10, bytes: 1_000_000, except: [] });
  if (!single || !held) throw new Error('not all were loaded');
  const attempt = (number: number, durationMs: number) => ({
    single: [uncounted(single, number, durationMs)],
    whole: [],
    held: [uncounted(held, number, durationMs)],
  });

  await relay.outbox.settle(attempt(1, 5));
  await relay.outbox.settle(attempt(1, 5)); // the first answer was lost
  await relay.outbox.settle(attempt(2, 9)); // the next attempt
  await relay.outbox.settle(attempt(3, 9)); // and one that takes as long

  const recorded = `select attempt, duration_ms from ${PUBLICATIONS} p order by duration_ms, attempt`;
  expect(await database.query(recorded)).toEqual([
    { attempt: 1, duration_ms: 5 },
    { attempt: 2, duration_ms: 5 },
    { attempt: 1, duration_ms: 9 },
    { attempt: 1, duration_ms: 9 },
    { attempt: 2, duration_ms: 9 },
    { attempt: 2, duration_ms: 9 },
  ]);
});
