import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { DatabaseConnection } from '../../../src/ledger/sessions/database.ts';
import { LOAD_COPIES } from '../../../src/relay/copies.ts';
import { changeReplay } from '../../../src/operators/replays/changes.queries.ts';
import { type Bus, listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { outboxCount } from '../../support/facts.ts';
import { hold } from '../../support/outbox.ts';
import {
  addEntries,
  addEntry,
  connectTestDatabase,
  createTestRelay,
  type TestRelay,
} from '../../support/relay.ts';
import {
  copiesInOutbox,
  countsOf,
  createTestFeeder,
  newReplay,
  seedEvents,
  stateOf,
  type TestFeeder,
} from '../../support/replays.ts';
import { newJobId } from '../../support/sender.ts';
import type { RelayLimits } from '../../../src/relay/relay.ts';
import { waitFor } from '../../support/waits.ts';

type World = AsyncDisposable & {
  database: TestDatabase;
  connection: DatabaseConnection;
  exchange: string;
  bus: Bus;
  relay: TestRelay;
  feeder: TestFeeder;
  /** Turns of the feeder and rounds of the relay until nothing is left in the outbox. */
  runUntilEmpty: () => Promise<void>;
  publications: (replayId: string) => Promise<{ result: string; queue: string | null }[]>;
};

/** A relay that leads and a feeder, both driven by hand, and a queue on the exchange. */
async function newWorld(limits: Partial<RelayLimits> = {}): Promise<World> {
  const exchange = newExchange();
  const stack = new AsyncDisposableStack();
  const database = stack.use(await createTestDatabase());
  const connection = stack.use(connectTestDatabase(database));
  const bus = stack.use(await listen(exchange));
  const relay = stack.use(await createTestRelay({ database, exchange, limits: { pollMs: 0, ...limits } }));
  await relay.lease.attempt();
  const feeder = createTestFeeder(connection);
  await feeder.after(0);
  return {
    database,
    connection,
    exchange,
    bus,
    relay,
    feeder,
    runUntilEmpty: () =>
      relay.runUntil(async () => {
        const fed = await feeder.after(100);
        return fed === 0 && (await outboxCount(database)) === 0;
      }),
    publications: (replayId) =>
      database.query('select result, queue from publications where replay_id = $1 order by id', [replayId]),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const newQueue = () => `test.queue.${randomBytes(6).toString('hex')}`;

/** A queue that no exchange knows, as a subscriber has one that is to be refilled. */
async function addQueue(bus: Bus, options: { full?: boolean } = {}): Promise<string> {
  const name = newQueue();
  await bus.channel.assertQueue(name, {
    exclusive: true,
    ...(options.full === true && { arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' } }),
  });
  if (options.full === true) {
    bus.channel.sendToQueue(name, Buffer.from('{}'));
    await waitFor(async () => {
      if ((await bus.channel.checkQueue(name)).messageCount !== 1) throw new Error('it is not full yet');
    });
  }
  return name;
}

/** Takes all that a queue holds. */
async function drain(bus: Bus, queue: string) {
  const messages = [];
  for (;;) {
    const message = await bus.channel.get(queue, { noAck: true });
    if (message === false) return messages;
    messages.push(message);
  }
}

test('a replay to a queue puts each id there once and nothing into the queues of the exchange', async () => {
  await using world = await newWorld();
  const { bus, database, connection } = world;
  const ids = await seedEvents(database, 250);
  const queue = await addQueue(bus);
  const replay = await newReplay(connection, { filter: { source: 'default' }, queue });
  await world.feeder.after(0);

  await world.runUntilEmpty();
  await world.feeder.after(100);

  const arrived = (await drain(bus, queue)).map(({ properties }) => String(properties.messageId));
  expect(arrived.toSorted()).toEqual(ids);
  expect(bus.messages).toEqual([]);
  expect(await countsOf(database, replay.id)).toEqual({
    matched: 250,
    queued: 250,
    confirmed: 250,
    returned: 0,
    failed: 0,
    skipped: 0,
  });
  expect(await stateOf(database, replay.id)).toMatchObject({ state: 'finished' });
  const publications = await world.publications(replay.id);
  expect(publications).toHaveLength(250);
  expect(new Set(publications.map(({ queue: to }) => to))).toEqual(new Set([queue]));
});

test('what was on its way when its replay was cancelled is counted when it has arrived', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay } = world;
  await seedEvents(database, 5);
  const queue = await addQueue(bus);
  const replay = await newReplay(connection, { filter: { source: 'default' }, queue });
  await world.feeder.after(0);
  expect(await world.feeder.after(100)).toBe(5);
  const letGo = relay.holdPublishes();
  await relay.runUntil(() => relay.published.length === 5);

  await connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, 'cancel'));
  letGo();

  await relay.runUntil(async () => (await world.publications(replay.id)).length === 5);
  expect(await drain(bus, queue)).toHaveLength(5);
  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 5, confirmed: 5 });
  expect(await stateOf(database, replay.id)).toMatchObject({ state: 'cancelled' });
});

test.for(['pause', 'cancel'] as const)(
  'what waits in memory when its replay gets a %s does not go, once the relay has read that',
  async (change) => {
    await using world = await newWorld();
    const { database, connection, relay, feeder } = world;
    const jobId = newJobId();
    for (const percent of [1, 2, 3]) await addEntry(database, { jobId, percent });
    await world.runUntilEmpty();
    const replay = await newReplay(connection, { filter: { source: 'default' } });
    await feeder.after(0);
    expect(await feeder.after(100)).toBe(3);
    const letGo = relay.holdPublishes();
    await relay.runUntil(() => relay.published.length === 4);

    await connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, change));
    await relay.relay.runOnce();
    letGo();
    await relay.runUntil(async () => (await world.publications(replay.id)).length === 1);
    await relay.relay.runOnce();

    expect(relay.published.map(({ messageId }) => messageId)).toEqual(
      [1, 2, 3, 1].map((percent) => `default:${jobId}:processing:${percent}`),
    );
  },
);

test('a copy waits for the live entries that its job had before it', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay, feeder } = world;
  const [id = ''] = await seedEvents(database, 1);
  for (const percent of [10, 20, 30]) await addEntry(database, { jobId: 'job_000001', percent });
  await newReplay(connection, { ids: [id] });
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(1);

  await relay.runUntil(async () => (await outboxCount(database)) === 0);

  await bus.received(4);
  expect(bus.ids()).toEqual([
    'default:job_000001:processing:10',
    'default:job_000001:processing:20',
    'default:job_000001:processing:30',
    id,
  ]);
});

test('a copy waits for live entries of its job that are beyond what the relay has in memory', async () => {
  await using world = await newWorld({ inFlight: 4 });
  const { bus, database, connection, relay, feeder } = world;
  const [id = ''] = await seedEvents(database, 1);
  await addEntries(database, Array.from({ length: 40 }, newJobId));
  await addEntry(database, { jobId: 'job_000001', percent: 10 });
  await newReplay(connection, { ids: [id] });
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(1);

  await relay.runUntil(async () => (await outboxCount(database)) === 0);

  await bus.received(42);
  expect(bus.ids().slice(-2)).toEqual(['default:job_000001:processing:10', id]);
});

test('a copy waits while a live entry of its job failed and is not due, and other jobs go on', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay, feeder } = world;
  const [waiting = '', going = ''] = await seedEvents(database, 2);
  const failed = await addEntry(database, { jobId: 'job_000001', percent: 10 });
  await hold(database, {}, `e.sequence = ${failed}`);
  await database.query(`update outbox_held set due_at = now() + interval '1 hour'`);
  await newReplay(connection, { ids: [waiting, going] });
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(2);

  await relay.runUntil(async () => (await outboxCount(database)) === 2);
  await bus.received(1);
  expect(bus.ids()).toEqual([going]);
  for (let round = 0; round < 5; round++) await relay.relay.runOnce();
  expect(relay.published).toHaveLength(1);

  await database.query('update outbox_held set due_at = now()');
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
  await bus.received(3);
  expect(bus.ids().slice(1)).toEqual(['default:job_000001:processing:10', waiting]);
});

test('a copy that fails holds back the later copies of its job in its replay, and no live event', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay, feeder } = world;
  const [first = ''] = await seedEvents(database, 1);
  const queue = await addQueue(bus, { full: true });
  const [second = ''] = await database
    .query<{ id: string }>(
      `insert into events (source, job_id, status, progress_percentage, late, occurred_at, recorded_at, delivery_id,
                         content_hash, repeats)
     select source, job_id, 'processing', 50, true, null, recorded_at, gen_random_uuid(), '', 0 from events
     returning source || ':' || job_id || ':processing:50' as id`,
    )
    .then((rows) => rows.map(({ id }) => id));
  await database.query(
    `insert into deliveries (id, received_at, source, outcome, http_status, job_id, status, path, headers, body)
     select delivery_id, recorded_at, source, 'accepted', 202, job_id, status, '/webhooks', '{}',
            convert_to(json_build_object('job_id', job_id, 'status', status, 'progress_percentage', 50)::text, 'UTF8')
     from events where status = 'processing'`,
  );
  const replay = await newReplay(connection, { ids: [first, second], queue });
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(2);
  // All three in the relay's memory at once: the copies and a live one behind them.
  const letGo = relay.holdPublishes();
  await relay.relay.runOnce();
  await addEntry(database, { jobId: 'job_000001', percent: 90 });
  await relay.relay.runOnce();
  letGo();

  await bus.received(1);

  expect(bus.ids()).toEqual(['default:job_000001:processing:90']);
  expect(relay.published.map(({ messageId }) => messageId)).toEqual([
    first,
    'default:job_000001:processing:90',
  ]);
  // Later live events go too, however long the copy has to wait.
  await relay.runUntil(async () => (await outboxCount(database)) === 2);
  await database.query(`update replay_copies set due_at = now() + interval '1 hour' where attempts > 0`);
  await addEntry(database, { jobId: 'job_000001', percent: 95 });
  await relay.runUntil(async () => (await outboxCount(database)) === 2);
  await bus.received(2);
  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual([first, second]);

  // With room again, both go in their order.
  await drain(bus, queue);
  await bus.channel.consume(queue, () => {}, { noAck: true });
  await database.query('update replay_copies set due_at = now()');
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
  const sent = relay.published
    .map(({ messageId }) => messageId)
    .filter((id) => id === first || id === second);
  expect(sent.at(-1)).toBe(second);
  expect(sent.indexOf(second)).toBeGreaterThan(sent.lastIndexOf(first));
  expect(await countsOf(database, replay.id)).toMatchObject({ confirmed: 2, failed: 0 });
});

test('a copy whose attempts are used up leaves the outbox and counts as failed', async () => {
  await using world = await newWorld({ maxAttempts: 2 });
  const { bus, database, connection, feeder } = world;
  const [id = ''] = await seedEvents(database, 1);
  const queue = await addQueue(bus, { full: true });
  const replay = await newReplay(connection, { ids: [id], queue });
  await feeder.after(0);

  expect(await feeder.after(100)).toBe(1);
  await world.runUntilEmpty();
  await feeder.after(100);

  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 1, confirmed: 0, failed: 1 });
  expect(await world.publications(replay.id)).toEqual([
    { result: 'nacked', queue },
    { result: 'nacked', queue },
  ]);
  expect(await stateOf(database, replay.id)).toMatchObject({ state: 'finished' });
});

test('a replay to a queue that is not there is paused, and goes on where it was once that is there', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay, feeder } = world;
  const ids = await seedEvents(database, 60);
  const queue = newQueue();
  const replay = await newReplay(connection, { filter: { source: 'default' }, queue });
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(60);

  await relay.runUntil(async () => (await stateOf(database, replay.id))?.state === 'paused');

  expect(await stateOf(database, replay.id)).toEqual({
    state: 'paused',
    paused_because: `there is no queue ${queue}`,
  });
  await relay.runUntil(() => relay.relay.inFlight() === 0);
  for (let round = 0; round < 5; round++) await relay.relay.runOnce();
  const tried = relay.published.length;
  for (let round = 0; round < 5; round++) await relay.relay.runOnce();
  expect(relay.published).toHaveLength(tried);
  expect(await copiesInOutbox(database)).toHaveLength(60);
  expect(await countsOf(database, replay.id)).toMatchObject({ confirmed: 0, returned: 0 });

  await bus.channel.assertQueue(queue, { exclusive: true });
  await connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, 'resume'));
  await world.runUntilEmpty();

  const arrived = (await drain(bus, queue)).map(({ properties }) => String(properties.messageId));
  expect(arrived.toSorted()).toEqual(ids);
  expect(await countsOf(database, replay.id)).toMatchObject({ confirmed: 60, returned: 0 });
});

test('a copy for the exchange that nobody is bound for is counted as returned and not kept', async () => {
  await using world = await newWorld();
  const { bus, database, connection, feeder } = world;
  const [id = ''] = await seedEvents(database, 1);
  await bus.channel.unbindQueue(bus.queue, world.exchange, 'job.#');
  const replay = await newReplay(connection, { ids: [id] });
  await feeder.after(0);

  expect(await feeder.after(100)).toBe(1);
  await world.runUntilEmpty();

  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 1, confirmed: 0, returned: 1 });
});

test('a returned event that is replayed to the exchange is in the outbox no more once it was sent', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay, feeder } = world;
  const [id = '', other = ''] = await seedEvents(database, 2);
  await addReturned(database, '{"as":"it was"}');
  await newReplay(connection, { ids: [id] });
  await feeder.after(0);

  expect(await feeder.after(100)).toBe(1);
  await relay.runUntil(async () => (await outboxCount(database)) === 1);

  await bus.received(1);
  expect(bus.ids()).toEqual([id]);
  expect(bus.messages[0]?.event.data).toEqual({ as: 'it was' });
  expect(
    await database.query(`select source || ':' || job_id || ':' || status as id from outbox_held`),
  ).toEqual([{ id: other }]);
});

/** All events as the relay leaves those behind that no queue was bound for. Without `data` they have only their bodies. */
function addReturned(database: TestDatabase, data: string | null): Promise<unknown> {
  return database.query(
    `insert into outbox_held (sequence, source, job_id, status, late, recorded_at, data, state, attempts)
     select sequence, source, job_id, status, late, recorded_at, $1, 'returned', 1 from events`,
    [data],
  );
}

test('a returned event that is replayed to a queue stays for the exchange', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay, feeder } = world;
  const [id = ''] = await seedEvents(database, 1);
  await addReturned(database, null);
  const queue = await addQueue(bus);
  const replay = await newReplay(connection, { ids: [id], queue });
  await feeder.after(0);

  expect(await feeder.after(100)).toBe(1);
  await relay.runUntil(async () => (await countsOf(database, replay.id))['confirmed'] === 1);

  expect((await drain(bus, queue)).map(({ properties }) => properties.messageId)).toEqual([id]);
  expect(await database.query('select state from outbox_held')).toEqual([{ state: 'returned' }]);
});

test('copies take a share of the relay’s window and never all of it', async () => {
  await using world = await newWorld({ inFlight: 20 });
  const { bus, database, connection, relay, feeder } = world;
  await seedEvents(database, 300);
  await newReplay(connection, { filter: { source: 'default' } });
  await feeder.after(0);
  for (let turn = 0; turn < 3; turn++) await feeder.after(100);
  const letGo = relay.holdPublishes();
  for (let round = 0; round < 5; round++) await relay.relay.runOnce();
  expect(relay.relay.inFlight()).toBe(10);

  // Copies are stuck; live events are on their way all the same.
  const live = Array.from({ length: 10 }, newJobId);
  await addEntries(database, live);
  await relay.relay.runOnce();
  expect(relay.published.slice(10).map(({ messageId }) => messageId)).toEqual(
    live.map((job) => `default:${job}:completed`),
  );

  letGo();
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
  await bus.received(310);
});

test('live events go on while the row of a replay is locked by somebody', async () => {
  await using world = await newWorld();
  const { bus, database, connection, relay, feeder } = world;
  const [id = ''] = await seedEvents(database, 1);
  const replay = await newReplay(connection, { ids: [id] });
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(1);
  await relay.relay.runOnce();
  await bus.received(1);

  await connection.db.transaction().execute(async (trx) => {
    await trx.selectFrom('replays').selectAll().where('id', '=', replay.id).forUpdate().execute();
    await addEntries(database, Array.from({ length: 5 }, newJobId));
    await relay.runUntil(async () => (await outboxCount(database)) === 1, 1_500);
  });

  await bus.received(6);
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
  expect(await countsOf(database, replay.id)).toMatchObject({ confirmed: 1 });
});

test('copies are found by their indexes though there were none when the statistics were taken', async () => {
  await using world = await newWorld();
  const { database, connection, feeder } = world;
  await seedEvents(database, 600);
  await database.query('analyze replay_copies, outbox_held, replays');
  for (let count = 0; count < 4; count++) await newReplay(connection, { filter: { source: 'default' } });
  await feeder.after(0);
  for (let turn = 0; turn < 6; turn++) await feeder.after(100);
  await addEntries(database, Array.from({ length: 500 }, newJobId));

  const plan = await connection.execute<{ 'QUERY PLAN': string }>(
    { name: 'explain-copies', text: `explain (analyze, costs off) ${LOAD_COPIES.text}` },
    [[], 250, 8_000_000, '1000000'],
  );

  const text = plan.map((row) => row['QUERY PLAN']).join('\n');
  expect(text).toMatch(/Index Scan using replay_copies_order/);
  expect(text).toMatch(/Index (Only )?Scan using outbox_held_job/);
  expect(text).toMatch(/Index (Only )?Scan using replay_copies_troubled/);
  expect(text).not.toMatch(/Seq Scan on (replay|outbox)/);
});
