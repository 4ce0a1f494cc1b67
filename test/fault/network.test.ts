import { connect } from 'node:net';
import { createServer } from 'node:tls';
import { expect, test } from 'vitest';
import { amqpUrl, listen, newExchange } from '../support/bus.ts';
import { selfSignedCertificate } from '../support/certificate.ts';
import { createTestDatabase } from '../support/database.ts';
import {
  altered,
  eventIds,
  outboxCount,
  outOfOrder,
  sessionsOf,
  untilOutboxEmpty,
} from '../support/facts.ts';
import { createFolder } from '../support/folder.ts';
import { startLoad } from '../support/load.ts';
import { listenOnFreePort } from '../support/origin.ts';
import { type Proxy, startProxy } from '../support/proxy.ts';
import { createTestPublisher, newMessage } from '../support/relay.ts';
import { startReplica } from '../support/replica.ts';
import { readMetric } from '../support/requests.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/waits.ts';

const AMQP_PORT = 5672;
const toBroker = () => startProxy(amqpUrl(), { defaultPort: AMQP_PORT });

/** They notice a broken connection quickly, so that the tests are quick too. */
const ALERT = { AMQP_HEARTBEAT_S: '1', AMQP_CONNECT_TIMEOUT_MS: '500' };
const QUICK = { heartbeatS: 1, connectTimeoutMs: 500, confirmDeadlineMs: 1_000 };

const breaks: [string, (proxy: Proxy) => void, (proxy: Proxy) => void][] = [
  ['cut', (proxy) => proxy.cut(), () => {}],
  [
    'cut and refused for a while',
    (proxy) => {
      proxy.refuse();
      proxy.cut();
    },
    (proxy) => proxy.heal(),
  ],
  ['gone silent, and only a new connection passes', (proxy) => proxy.silence(), () => {}],
  ['stalled for a while, for new connections too', (proxy) => proxy.stall(), (proxy) => proxy.heal()],
];

// Those under load one after another: with several at once, Postgres would have no processor for some of their writes.
test.for(breaks)(
  'guarantee 7: with the way to the broker %s under load, answers do not change and every event arrives in order',
  async ([, breakIt, mend]) => {
    const exchange = newExchange();
    await using proxy = await toBroker();
    await using bus = await listen(exchange);
    await using relay = await startTestService({ exchange, env: { ...ALERT, AMQP_URL: proxy.url } });
    await using load = startLoad(() => [relay.webhooks], { senders: 4, pauseMs: 5 });
    await load.reached(60);
    const before = proxy.accepted();

    breakIt(proxy);
    await load.reached(load.acknowledged().size + 60);
    // The publisher has noticed, and connects again.
    await waitFor(() => expect(proxy.accepted()).toBeGreaterThan(before), { timeout: 15_000 });
    mend(proxy);
    await load.reached(load.acknowledged().size + 60);
    await load.stop();

    expect(load.answers.filter(({ status }) => status !== 202)).toEqual([]);
    await untilOutboxEmpty(relay.database);
    proxy.heal(); // what was stalled on an old connection arrives late, as copies
    const tallied = new Set(await eventIds(relay.database));
    await waitFor(() => expect(new Set(bus.ids())).toEqual(tallied));
    expect(outOfOrder(bus.messages)).toEqual([]);
    expect(altered(bus.messages)).toEqual([]);
    expect(
      await relay.database.query(`select from publications where result = 'failed' and attempt > 1`),
    ).toEqual([]);
  },
);

test.concurrent.for(breaks.slice(2))(
  'with the way to Postgres %s, no sessions add up on the server, and all goes on by itself',
  async ([, breakIt, mend]) => {
    await using database = await createTestDatabase();
    await using proxy = await startProxy(database.url, { defaultPort: 5432 });
    await using relay = await startTestService({
      database: { ...database, url: proxy.url },
      env: { ANSWER_DEADLINE_MS: '1000' },
    });
    const send = async () => (await deliver(relay.webhooks, completed(newJobId()))).status;
    const max = await readMetric(relay.operators, 'tallyhook_database_sessions_max');
    const sessions: number[] = [];
    for (let round = 0; round < 3; round++) {
      await waitFor(async () => expect(await send()).toBe(202), { timeout: 20_000 });
      breakIt(proxy);
      expect(await send()).toBe(503);
      for (let sent = 0; sent < 3; sent++) {
        await send();
        sessions.push(await sessionsOf(database));
      }
      mend(proxy);
    }
    await waitFor(async () => expect(await send()).toBe(202), { timeout: 20_000 });
    sessions.push(await sessionsOf(database));
    expect(Math.max(...sessions)).toBeLessThanOrEqual(max + 1);
    // Those that were left behind in each round are gone.
    await waitFor(async () => expect(await sessionsOf(database, 'intake')).toBeLessThanOrEqual(2));
  },
);

test('guarantee 7: with a slow broker and little room in memory, answers do not change and every event arrives in order', async () => {
  const exchange = newExchange();
  await using proxy = await toBroker();
  await using bus = await listen(exchange);
  const env = { AMQP_URL: proxy.url, RELAY_IN_FLIGHT: '2' };
  await using relay = await startTestService({ exchange, env });
  await using load = startLoad(() => [relay.webhooks], { senders: 8, pauseMs: 1 });
  await load.reached(50);

  proxy.slow(200); // some ten events a second
  await load.reached(load.acknowledged().size + 400);
  const waiting = await outboxCount(relay.database);
  await load.stop();
  proxy.slow(0);

  expect(waiting).toBeGreaterThan(100);
  expect(load.answers.filter(({ status }) => status !== 202)).toEqual([]);
  await untilOutboxEmpty(relay.database);
  await waitFor(async () => expect(new Set(bus.ids())).toEqual(new Set(await eventIds(relay.database))));
  expect(outOfOrder(bus.messages)).toEqual([]);
});

// The broker's frames: Start, Tune, OpenOk, then those for the channel, confirm mode and the exchange.
const stages = [0, 1, 2, 3, 4, 5, 6].flatMap((frames) =>
  (['cut', 'stall'] as const).map((how): [number, 'cut' | 'stall'] => [frames, how]),
);

test.concurrent.for(stages)(
  'a connection that fails after %i frames of the broker (%s) is made anew by itself',
  async ([frames, how]) => {
    const exchange = newExchange();
    await using proxy = await toBroker();
    await using bus = await listen(exchange);
    proxy.failAfterFrames(frames, how);
    const publisher = createTestPublisher({ exchange, url: proxy.url, ...QUICK });
    try {
      // A second connection: it has recovered from the first failure.
      await waitFor(() => expect(proxy.accepted()).toBeGreaterThan(1), { timeout: 15_000 });
      proxy.heal();
      await waitFor(() => expect(publisher.isReady()).toBe(true), { timeout: 15_000 });
      await waitFor(
        async () => {
          const { result } = await publisher.publish(newMessage('a'));
          expect(result).toBe('confirmed');
        },
        { timeout: 15_000, interval: 100 },
      );
      await bus.received(1);
    } finally {
      await publisher.close();
    }
  },
);

test('a publish after the publisher was closed fails, and closing twice is one closing', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  const publisher = createTestPublisher({ exchange, ...QUICK });
  await waitFor(() => expect(publisher.isReady()).toBe(true));
  await Promise.all([publisher.close(), publisher.close()]);

  expect(publisher.isReady()).toBe(false);
  const publication = await publisher.publish(newMessage('a'));
  expect(publication).toMatchObject({ result: 'failed', blame: 'broker' });
  expect(bus.ids()).toEqual([]);
});

test('amqps:// works only with a certificate that the system trusts', async () => {
  const exchange = newExchange();
  const { key, cert } = selfSignedCertificate();
  await using folder = await createFolder();
  const authority = await folder.write('authority.pem', cert);
  const target = new URL(amqpUrl());
  const server = createServer({ key, cert }, (client) => {
    const broker = connect({ host: target.hostname, port: Number(target.port) || AMQP_PORT });
    for (const socket of [client, broker]) {
      socket.on('error', () => {
        client.destroy();
        broker.destroy();
      });
    }
    client.pipe(broker).pipe(client);
  });
  server.on('tlsClientError', () => {});
  const port = await listenOnFreePort(server);
  try {
    // With a host name without a dot. Built as text, since the protocol of such a URL cannot be set.
    const credentials = target.username ? `${target.username}:${target.password}@` : '';
    const url = `amqps://${credentials}localhost:${port}${target.pathname}`;
    await using database = await createTestDatabase();
    await using bus = await listen(exchange);
    await using stranger = await startReplica({
      databaseUrl: database.url,
      exchange,
      env: { AMQP_URL: url },
    });
    await waitFor(() => expect(JSON.stringify(stranger.log)).toContain('self-signed certificate'));
    const job = newJobId();
    expect((await deliver(stranger.webhooks, completed(job))).status).toBe(202);
    expect(await readMetric(stranger.operators, 'tallyhook_broker_connected')).toBe(0);
    stranger.kill('SIGTERM');
    await stranger.exited;

    await using replica = await startReplica({
      databaseUrl: database.url,
      exchange,
      env: { AMQP_URL: url, NODE_EXTRA_CA_CERTS: authority },
    });
    await bus.received(1);
    expect(replica.hasExited()).toBe(false);
    expect(bus.ids()).toEqual([`default:${job}:completed`]);
  } finally {
    server.close();
  }
});
