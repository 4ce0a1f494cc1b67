import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { type Bus, listen, newExchange, subscribeDurably } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { altered, copies, eventIds, outboxCount, outOfOrder, untilOutboxEmpty } from '../support/facts.ts';
import { type Load, post, startLoad } from '../support/load.ts';
import { setMemoryAlarm } from '../support/own-servers.ts';
import {
  addEntries,
  addEntry,
  connectTestDatabase,
  createTestPublisher,
  createTestRelay,
  newMessage,
  retry,
} from '../support/relay.ts';
import { startProxy } from '../support/proxy.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { completed, deliver, newJobId, progress } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';
import { OUTBOX } from '../support/outbox.ts';
import { readMetric } from '../support/requests.ts';
import { waitFor } from '../support/waits.ts';
import { patience, promisedMs } from '../support/patience.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';

let broker: RabbitmqServer;

beforeAll(async () => {
  broker = await startRabbitmq();
});

afterAll(() => broker.close());

/** RabbitMQ's own default. */
const MAX_MESSAGE_BYTES = 134_217_728;

/** For channels that are opened from now on. The place of the setting depends on the version. */
function setMaxMessageSize(bytes: number): Promise<string> {
  return broker.ctl(
    'eval',
    `application:set_env(rabbit, max_message_size, ${bytes}), persistent_term:put(max_message_size, ${bytes}).`,
  );
}

const notAccepted = ({ answers }: Load) => answers.filter(({ status }) => status !== 202);

test.skipIf(IS_SHORT_RUN)(
  'guarantee 7: with the broker down at the start deliveries are answered as ever, and published when it is up',
  async () => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    // The durable queue stays.
    await (await subscribeDurably(broker.url, exchange))[Symbol.asyncDispose]();
    await broker.stop();
    await using replica = await startReplica({
      databaseUrl: database.url,
      exchange,
      env: { AMQP_URL: broker.url },
    });
    const jobs = Array.from({ length: 30 }, newJobId);
    const answers = await Promise.all(
      jobs.map(async (job) => [
        await post(replica.webhooks, progress(job, 10)),
        await post(replica.webhooks, completed(job)),
      ]),
    );
    expect(answers.flat().filter(({ status }) => status !== 202)).toEqual([]);
    expect(await replica.readiness()).toMatchObject({ status: 200, body: { rabbitmq: 'disconnected' } });
    expect(await replica.metric('tallyhook_outbox_pending')).toBeGreaterThan(0);

    await broker.start();

    await using subscriber = await subscribeDurably(broker.url, exchange);
    await subscriber.receivedAll(await eventIds(database));
    await untilOutboxEmpty(database);
    expect(outOfOrder(subscriber.messages)).toEqual([]);
    expect(await replica.readiness()).toMatchObject({ status: 200, body: { rabbitmq: 'connected' } });
  },
);

test('guarantee 7: with the broker killed under load answers do not change, and every event arrives in order', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using subscriber = await subscribeDurably(broker.url, exchange);
  await using replica = await startReplica({
    databaseUrl: database.url,
    exchange,
    env: { AMQP_URL: broker.url },
  });
  await using load = startLoad(() => [replica.webhooks], { senders: 6, pauseMs: 10 });
  await load.reached(150);

  await broker.kill('SIGKILL');
  await waitFor(async () => expect(await replica.metric('tallyhook_broker_connected')).toBe(0));
  await load.reached(load.acknowledged().size + 100);
  await broker.start();
  await waitFor(async () => expect(await replica.metric('tallyhook_broker_connected')).toBe(1), {
    timeout: 20_000,
  });
  await load.reached(load.acknowledged().size + 100);
  await load.stop();

  expect(notAccepted(load)).toEqual([]);
  await untilOutboxEmpty(database);
  const tallied = await eventIds(database);
  await subscriber.receivedAll(tallied);
  expect(new Set(subscriber.ids())).toEqual(new Set(tallied));
  expect(outOfOrder(subscriber.messages)).toEqual([]);
  expect(altered(subscriber.messages)).toEqual([]);
  expect(replica.hasExited()).toBe(false);
});

test.skipIf(IS_SHORT_RUN)(
  'guarantee 7: with the broker blocked by a memory alarm answers do not change, memory is bounded, and all is delivered after',
  async () => {
    const exchange = newExchange();
    const inFlight = 40;
    const confirmDeadlineMs = patience(1_000); // or a slow machine would take the broker for dead
    await using database = await createTestDatabase();
    await using subscriber = await subscribeDurably(broker.url, exchange);
    await using replica = await startReplica({
      databaseUrl: database.url,
      exchange,
      env: {
        AMQP_URL: broker.url,
        AMQP_HEARTBEAT_S: String(Math.ceil(patience(1))),
        AMQP_CONFIRM_DEADLINE_MS: String(confirmDeadlineMs),
        RELAY_IN_FLIGHT: String(inFlight),
        // An event that is blamed once would be parked.
        RELAY_MAX_ATTEMPTS: '1',
      },
    });
    await using load = startLoad(() => [replica.webhooks], { senders: 6, pauseMs: 10 });
    await load.reached(50);

    try {
      await setMemoryAlarm(broker, true);
      // It has no connection for seconds if the one before was lost meanwhile.
      await untilBlocked(replica, { timeout: 30_000 });
      // Longer than the confirm deadline, with more events than may be in flight.
      const blockedMs = performance.now();
      const peak = { inFlight: 0 };
      await waitFor(
        async () => {
          peak.inFlight = Math.max(peak.inFlight, await replica.metric('tallyhook_relay_in_flight'));
          expect(performance.now() - blockedMs).toBeGreaterThan(3 * confirmDeadlineMs);
          expect(await outboxCount(database)).toBeGreaterThan(3 * inFlight);
        },
        { timeout: 15_000, interval: 50 },
      );
      expect(peak.inFlight).toBeLessThanOrEqual(inFlight);
      expect(await replica.readiness()).toMatchObject({ status: 200, body: { rabbitmq: 'blocked' } });
    } finally {
      await setMemoryAlarm(broker, false);
    }
    await load.reached(load.acknowledged().size + 50);
    await load.stop();

    expect(notAccepted(load)).toEqual([]);
    await untilOutboxEmpty(database);
    await subscriber.receivedAll(await eventIds(database));
    expect(outOfOrder(subscriber.messages)).toEqual([]);
    expect(await database.query(`select from publications where result <> 'confirmed'`)).toEqual([]);
    expect([...copies(subscriber.messages).values()].filter((count) => count > 1)).toEqual([]);
  },
);

test.skipIf(IS_SHORT_RUN)(
  'a broker that is blocked does not keep us from ending, and the next leader publishes what is left',
  async () => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    await using subscriber = await subscribeDurably(broker.url, exchange);
    const start = () =>
      startReplica({
        databaseUrl: database.url,
        exchange,
        env: { AMQP_URL: broker.url, SHUTDOWN_GRACE_MS: '1000' },
      });
    const jobs = Array.from({ length: 20 }, newJobId);
    try {
      await setMemoryAlarm(broker, true);
      await using replica = await start();
      for (const job of jobs) expect((await post(replica.webhooks, completed(job))).status).toBe(202);
      await untilBlocked(replica);

      const signalledMs = performance.now();
      replica.kill('SIGTERM');

      expect(await replica.exited).toEqual({ code: 0, signal: null });
      expect(performance.now() - signalledMs).toBeLessThan(promisedMs(6_000));
    } finally {
      await setMemoryAlarm(broker, false);
    }
    await using next = await start();
    await subscriber.receivedAll(jobs.map((job) => `default:${job}:completed`));
    await untilOutboxEmpty(database);
    expect(next.hasExited()).toBe(false);
  },
);

test.skipIf(IS_SHORT_RUN)(
  'a confirm that is overdue because the broker was blocked is not held against its event',
  async () => {
    const exchange = newExchange();
    const confirmDeadlineMs = 1_000;
    await using proxy = await startProxy(broker.url, { defaultPort: 5672 });
    await using bus = await listen(exchange, { url: broker.url });
    const publisher = createTestPublisher({
      exchange,
      url: proxy.url,
      heartbeatS: 300, // so that the broker sends no other frames than the expected ones
      confirmDeadlineMs,
    });
    try {
      await waitFor(() => expect(publisher.isReady()).toBe(true));
      await setMemoryAlarm(broker, true);
      const publication = publisher.publish(newMessage('a')); // the broker says that it is blocked only after a publish
      await waitFor(() => expect(publisher.state().blocked).toBe(true));
      const publishedMs = performance.now();
      await waitFor(() => expect(performance.now() - publishedMs).toBeGreaterThan(2 * confirmDeadlineMs));

      // The broker unblocks the connection, but its confirm does not arrive.
      proxy.stallAfterFrames(1);
      await setMemoryAlarm(broker, false);

      expect(await publication).toMatchObject({ result: 'failed', blame: 'broker' });
      await bus.received(1); // "failed" means unknown: this one did arrive
    } finally {
      await setMemoryAlarm(broker, false);
      proxy.cut();
      await publisher.close();
    }
  },
);

test.skipIf(IS_SHORT_RUN)(
  'events in doubt go one by one, also those that are read anew when the one before them is confirmed',
  async () => {
    const exchange = newExchange();
    const limitBytes = 20_000;
    await using database = await createTestDatabase();
    await using bus = await listen(exchange, { url: broker.url });
    await setMaxMessageSize(limitBytes);
    try {
      await using parts = await createTestRelay({ database, exchange, amqpUrl: broker.url });
      const { relay } = parts;
      await parts.lease.attempt();
      const culprit = newJobId();
      await addEntries(database, [newJobId()]);
      await addEntry(database, { jobId: culprit, bytes: limitBytes });
      await addEntries(database, [newJobId()]);

      await relay.runOnce();
      expect(relay.inFlight()).toBe(3);
      // The broker closes the channel, and does not say because of which.
      await waitFor(() => expect(relay.inFlight() === 0 && parts.publisher.isReady()).toBe(true));
      const letPublish = parts.holdPublishes();
      await relay.runOnce();
      expect(relay.inFlight()).toBe(1);

      // As an operator's decision does: the entries in memory are read anew.
      await database.query('update outbox_version set version = version + 1');
      const letLoad = parts.holdLoads();
      const round = relay.runOnce();
      await waitFor(() => expect(parts.loads()).toBe(3));
      letPublish();
      await bus.received(1);
      await waitFor(() => expect(relay.inFlight()).toBe(0));
      letLoad();
      await round;

      expect(relay.inFlight()).toBe(1);
      await waitFor(() => expect(relay.inFlight()).toBe(0));
    } finally {
      await setMaxMessageSize(MAX_MESSAGE_BYTES);
    }
  },
);

test.skipIf(IS_SHORT_RUN)(
  'an event that is too large for the broker is parked alone, and the others are published',
  async () => {
    const exchange = newExchange();
    const limitBytes = 20_000;
    await using database = await createTestDatabase();
    await using bus = await listen(exchange, { url: broker.url });
    await setMaxMessageSize(limitBytes);
    try {
      await using relay = await startTestService({
        exchange,
        database,
        env: { AMQP_URL: broker.url, RELAY_MAX_ATTEMPTS: '2' },
      });
      // Innocent events before and after it, and two events of its job that must wait for it.
      const innocent = Array.from({ length: 60 }, newJobId);
      const culprit = newJobId();
      await addEntries(database, innocent.slice(0, 30));
      await addEntry(database, { jobId: culprit, percent: 10, bytes: limitBytes });
      await addEntry(database, { jobId: culprit, percent: 20 });
      await addEntries(database, innocent.slice(30));
      await deliver(relay.webhooks, completed(culprit));
      const startedMs = performance.now();

      await waitFor(
        () => expect(new Set(bus.ids())).toEqual(new Set(innocent.map((job) => `default:${job}:completed`))),
        { timeout: 20_000, interval: 50 },
      );
      expect(performance.now() - startedMs).toBeLessThan(promisedMs(20_000));
      const waiting = () =>
        database.query<{ state: string; attempts: number; last_error: string | null }>(
          `select state, attempts, last_error from ${OUTBOX} where job_id = $1 order by sequence`,
          [culprit],
        );
      await waitFor(async () => expect((await waiting())[0]?.state).toBe('parked'), {
        timeout: 20_000,
        interval: 50,
      });
      expect(await waiting()).toMatchObject([
        { state: 'parked', attempts: 2 },
        { state: 'pending', attempts: 0 },
        { state: 'pending', attempts: 0 },
      ]);
      expect((await waiting())[0]?.last_error).toContain('larger than configured max size');
      const blamed = await database.query<{ job_id: string }>(
        `select distinct job_id from ${OUTBOX} where attempts > 0 or state <> 'pending'`,
      );
      expect(blamed).toEqual([{ job_id: culprit }]);

      // The broker's operator allows it, and ours retries it.
      await setMaxMessageSize(MAX_MESSAGE_BYTES);
      await using connection = connectTestDatabase(database);
      await relay.service.stop();
      await using next = await startTestService({ exchange, database, env: { AMQP_URL: broker.url } });
      expect(next.exchange).toBe(exchange);
      expect(await retry(connection.db, 'parked')).toBe(1);
      await untilOutboxEmpty(database);
      await waitFor(() =>
        expect(bus.ids().filter((id) => id.includes(culprit))).toEqual([
          `default:${culprit}:processing:10`,
          `default:${culprit}:processing:20`,
          `default:${culprit}:completed`,
        ]),
      );
      expect(outOfOrder(bus.messages)).toEqual([]);
    } finally {
      await setMaxMessageSize(MAX_MESSAGE_BYTES);
    }
  },
);

/** A quorum queue for completed events; `stop` takes its leader, so that it confirms nothing, and `restart` gives it back. */
/** By its own word. A failure says what the relay does instead. */
async function untilBlocked(replica: Replica, wait?: { timeout: number }): Promise<void> {
  await waitFor(async () => {
    const { body } = await replica.readiness();
    const leads = await replica.metric('tallyhook_relay_lease_held');
    const inFlight = await replica.metric('tallyhook_relay_in_flight');
    expect(body, `leads ${leads}, in flight ${inFlight}`).toMatchObject({ rabbitmq: 'blocked' });
  }, wait);
}

async function addQuorumQueue({ channel }: Bus, exchange: string) {
  const queue = `${exchange}.quorum`;
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
  await channel.bindQueue(queue, exchange, 'job.completed.#');
  const tell = (what: string) =>
    broker.ctl('eval', `ra:${what}_server(quorum_queues, {list_to_atom("%2F_${queue}"), node()}).`);
  return {
    stop: () => tell('stop'),
    restart: () => tell('restart'),
    depth: async () => (await channel.checkQueue(queue)).messageCount,
    [Symbol.asyncDispose]: async () => {
      await channel.deleteQueue(queue);
    },
  };
}

test.skipIf(IS_SHORT_RUN)(
  'of a quorum queue without a leader few events are in flight, the others go on, and all arrive once it has one',
  async () => {
    const exchange = newExchange();
    const count = 300; // three times what may be in flight
    // A quarter of it makes a route slow: no event of another one may take so long on a slow machine.
    const confirmDeadlineMs = String(promisedMs(8_000));
    await using bus = await listen(exchange, { url: broker.url, bindings: ['job.progress.#'] });
    await using queue = await addQuorumQueue(bus, exchange);
    await using relay = await startTestService({
      exchange,
      env: { AMQP_URL: broker.url, AMQP_CONFIRM_DEADLINE_MS: confirmDeadlineMs, RELAY_IN_FLIGHT: '100' },
    });
    const inFlight = () => readMetric(relay.operators, 'tallyhook_relay_in_flight');
    // Of a leader that a channel knew, RabbitMQ waits for the answer; a message for one that it does not know is nacked.
    await deliver(relay.webhooks, completed(newJobId()));
    await untilOutboxEmpty(relay.database);
    await queue.stop();
    const jobs = Array.from({ length: count }, newJobId);
    await Promise.all(
      jobs.flatMap((job) => [
        deliver(relay.webhooks, completed(job)),
        deliver(relay.webhooks, progress(newJobId(), 10)),
      ]),
    );

    await bus.received(count, 30_000);
    await waitFor(async () => expect(await inFlight()).toBeLessThanOrEqual(8), {
      timeout: 15_000,
      interval: 50,
    });
    for (let arrived = count + 1; arrived <= count + 30; arrived += 1) {
      await deliver(relay.webhooks, progress(newJobId(), 20));
      await bus.received(arrived);
      expect(await inFlight()).toBeLessThanOrEqual(9);
    }
    const delayed = await relay.database.query(
      `select p.result, p.detail, p.attempt, p.duration_ms from publications p join events e on e.sequence = p.event_sequence
     where e.progress_percentage = 20 and p.result <> 'confirmed'`,
    );
    expect(delayed).toEqual([]);

    await queue.restart();
    // Instead of waiting for up to 30 s.
    await relay.database.query('update outbox_held set due_at = now() where due_at > now()');
    await untilOutboxEmpty(relay.database, 40_000);
    expect(await queue.depth()).toBeGreaterThan(count);
    expect(relay.log.filter(({ msg }) => msg === 'event parked')).toEqual([]);
  },
);

test.skipIf(IS_SHORT_RUN)(
  'virtual hosts, users and passwords with special characters work, and so does a host name without a dot',
  async () => {
    const [vhost, user, password] = ['a b/ü%&', 'us:er@x', 'p@ss/w#rd:?%'];
    await broker.ctl('add_vhost', vhost);
    await broker.ctl('add_user', user, password);
    await broker.ctl('set_permissions', '-p', vhost, user, '.*', '.*', '.*');
    const url = `amqp://${[user, password].map(encodeURIComponent).join(':')}@localhost:${broker.port}/${encodeURIComponent(vhost)}`;
    const exchange = newExchange();
    await using bus = await listen(exchange, { url });
    await using relay = await startTestService({ exchange, env: { AMQP_URL: url } });
    const job = newJobId();

    await deliver(relay.webhooks, completed(job));

    await bus.received(1);
    expect(bus.ids()).toEqual([`default:${job}:completed`]);
    const printed = JSON.stringify(relay.log);
    expect(printed).not.toContain(password);
    expect(printed).not.toContain(encodeURIComponent(password));
  },
);
