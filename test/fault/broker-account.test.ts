// What the broker does not let an account do: connect, or one right after the other.

import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect } from 'amqplib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import type { Publisher } from '../../src/relay/publisher.ts';
import { relaySays, subscriberSays } from '../support/broker-says.ts';
import { listen, newExchange } from '../support/bus.ts';
import { copies } from '../support/facts.ts';
import { operators } from '../support/operators.ts';
import { createTestPublisher, newMessage } from '../support/relay.ts';
import { seedEvents } from '../support/replays.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { createTestLog, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { waitFor } from '../support/waits.ts';

let broker: RabbitmqServer;

const PASSWORD = 'careful-password';
const PATIENCE = { timeout: 20_000, interval: 50 };
const EXCHANGE = newExchange();
const ONLY = `^${EXCHANGE.replace('.', '\\.')}$`;

type Rights = [configure: string, write: string, read: string];

/** Each account lacks one thing. */
const ACCOUNTS: Record<string, Rights | undefined> = {
  stranger: undefined,
  limited: undefined,
  service: [ONLY, ONLY, '^$'],
  'no-configure': ['^$', ONLY, '^$'],
  'no-write': [ONLY, '^$', '.*'],
  'no-topic': ['.*', '.*', '.*'],
  'no-queues': ['.*', '^test\\.', '.*'],
};

/** All at once: each call of rabbitmqctl takes a second and more. */
const DEFINITIONS = {
  users: Object.keys(ACCOUNTS).map((name) => ({
    name,
    password: PASSWORD,
    tags: '',
    limits: name === 'limited' ? { 'max-connections': 0 } : {},
  })),
  vhosts: [{ name: 'small' }],
  parameters: [
    { component: 'vhost-limits', vhost: 'small', name: 'limits', value: { 'max-connections': 0 } },
  ],
  permissions: Object.entries(ACCOUNTS).flatMap(([user, rights]) => {
    const [configure, write, read] = rights ?? [];
    return rights === undefined ? [] : [{ user, vhost: '/', configure, write, read }];
  }),
  topic_permissions: [
    { user: 'no-topic', vhost: '/', exchange: EXCHANGE, write: '^job\\.failed\\.', read: '.*' },
  ],
};

beforeAll(async () => {
  broker = await startRabbitmq();
  const file = join(broker.dir, 'definitions.json');
  await writeFile(file, JSON.stringify(DEFINITIONS));
  // rabbitmqctl has been seen to succeed without effect.
  await until(
    'the accounts can log in',
    async () => {
      await broker.ctl('import_definitions', file);
      await (await connect(urlOf('service'))).close();
      return true;
    },
    { limitMs: 90_000 },
  );
});

afterAll(() => broker.close());

function urlWith(change: (url: URL) => void): string {
  const url = new URL(broker.url);
  change(url);
  return url.href;
}

const urlOf = (user: string, virtualHost = '/') =>
  urlWith((url) => {
    [url.username, url.password] = [user, PASSWORD];
    url.pathname = `/${encodeURIComponent(virtualHost)}`;
  });

const grantAll = (user: string) => broker.ctl('set_permissions', '-p', '/', user, '.*', '.*', '.*');

const untilReady = (publisher: Publisher) => waitFor(() => expect(publisher.isReady()).toBe(true), PATIENCE);

test('who is refused a connection learns why in one sentence, from the relay and the subscriber alike', async () => {
  const http = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => http.once('listening', resolve));
  const httpPort = String((http.address() as AddressInfo).port);
  const refused: [url: string, code: string, sentence: string][] = [
    [
      urlWith((url) => (url.password = 'wrong')),
      'access_refused',
      "the name or the password of the account 'tallyhook'",
    ],
    [urlOf('service', 'no/where'), 'access_refused', "the virtual host 'no/where' in the URL does not exist"],
    [
      urlOf('stranger'),
      'access_refused',
      "the account 'stranger' has no permissions on the virtual host '/'",
    ],
    [urlOf('limited'), 'limit_reached', "the account 'limited' may not have more connections"],
    [urlOf('service', 'small'), 'limit_reached', "the virtual host 'small' may not have more connections"],
    [
      urlWith((url) => (url.protocol = 'amqps:')),
      'wrong_port',
      `127.0.0.1:${broker.port} does not speak TLS`,
    ],
    [urlWith((url) => (url.port = httpPort)), 'wrong_port', `127.0.0.1:${httpPort} speaks HTTP and not AMQP`],
  ];
  await Promise.all(
    refused.map(async ([url, code, sentence]) => {
      for (const says of [relaySays, subscriberSays]) {
        const said = await says(url);
        expect(said).toEqual({ code, message: expect.stringContaining(sentence) as string });
        expect(said.message).not.toContain(PASSWORD);
      }
    }),
  );
  http.close();
});

test('an account that may not declare the exchange uses one that is there, and says so if there is none', async () => {
  const url = urlOf('no-configure');
  expect(await relaySays(url)).toEqual({
    code: 'access_refused',
    message: expect.stringContaining('does not exist, and our account may not declare it') as string,
  });

  await using bus = await listen(EXCHANGE, { url: broker.url });
  const { log, lines } = createTestLog();
  const publisher = createTestPublisher({ exchange: EXCHANGE, url, log });
  try {
    await untilReady(publisher);
    expect(await publisher.publish(newMessage('a'))).toMatchObject({ result: 'confirmed' });
    expect(lines.map(({ msg }) => msg)).toContain(
      'the exchange exists and is used: our account may not declare it',
    );
    await bus.received(1);
  } finally {
    await publisher.close();
  }
});

test('the service needs to configure and write its exchange alone; without write no event is blamed', async () => {
  const { log } = createTestLog();
  const service = createTestPublisher({ exchange: EXCHANGE, url: urlOf('service'), log });
  const mute = createTestPublisher({ exchange: EXCHANGE, url: urlOf('no-write'), log });
  try {
    await untilReady(service);
    await using bus = await listen(EXCHANGE, { url: broker.url });
    expect(await service.publish(newMessage('a'))).toMatchObject({ result: 'confirmed' });
    await bus.received(1);

    await untilReady(mute);
    expect(await mute.publish(newMessage('b'))).toMatchObject({
      result: 'failed',
      blame: 'broker',
      detail: expect.stringContaining(`access to exchange '${EXCHANGE}'`) as string,
    });
    await grantAll('no-write');
    await waitFor(
      async () => expect(await mute.publish(newMessage('b'))).toMatchObject({ result: 'confirmed' }),
      PATIENCE,
    );
  } finally {
    await Promise.all([service.close(), mute.close()]);
  }
});

test('a routing key that the account may not use is tried apart, and the others go on over the same connection', async () => {
  await using bus = await listen(EXCHANGE, { url: broker.url });
  const { log, lines } = createTestLog();
  const publisher = createTestPublisher({ exchange: EXCHANGE, url: urlOf('no-topic'), log });
  const refused = () => publisher.publish(newMessage('a'));
  const allowed = (id: string) => publisher.publish({ ...newMessage(id), routingKey: 'job.failed.default' });
  const connected = () => lines.filter(({ msg }) => msg === 'broker connected').length;
  try {
    await untilReady(publisher);
    expect(await refused()).toMatchObject({ result: 'failed', blame: 'route' });
    await untilReady(publisher);
    for (const id of ['b', 'c', 'd']) {
      const [bad, good] = await Promise.all([refused(), allowed(id)]);
      expect(bad).toMatchObject({ result: 'failed', blame: 'route' });
      expect(good).toMatchObject({ result: 'confirmed' });
    }

    await broker.ctl('clear_topic_permissions', '-p', '/', 'no-topic');
    await waitFor(async () => expect(await refused()).toMatchObject({ result: 'confirmed' }), PATIENCE);
    await bus.received(4);
    expect(bus.ids()).toEqual(['b', 'c', 'd', 'a']);
    expect(connected()).toBe(2);
  } finally {
    await publisher.close();
  }
});

test('a replay to a queue that the broker refuses us is paused, and live events go on over their channel', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { url: broker.url });
  const { queue } = await bus.channel.assertQueue('test.refill', { exclusive: true });
  await using service = await startTestService({ exchange, env: { AMQP_URL: urlOf('no-queues') } });
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 400);

  const { body } = await api.post<{ id: string }>('/replays', {
    filter: { job_id_prefix: 'job_0' },
    queue,
    rate_per_second: 1_000,
  });
  const live = Array.from({ length: 30 }, newJobId);
  for (const job of live) await deliver(service.webhooks, completed(job));

  await waitFor(
    async () =>
      expect((await api.get(`/replays/${body.id}`)).body).toMatchObject({
        state: 'paused',
        paused_because: expect.stringContaining('ACCESS_REFUSED') as string,
        counts: { confirmed: 0, returned: 0, failed: 0 },
      }),
    { timeout: 20_000, interval: 100 },
  );
  await waitFor(
    () => expect(new Set(bus.ids())).toEqual(new Set(live.map((job) => `default:${job}:completed`))),
    { timeout: 20_000, interval: 50 },
  );
  const failed = await service.database.query(
    `select from publications where replay_id is null and result <> 'confirmed'`,
  );
  expect(failed).toEqual([]);
  expect(service.log.filter(({ msg }) => msg === 'broker connected')).toHaveLength(1);
  const more = newJobId();
  await deliver(service.webhooks, completed(more));
  await waitFor(() => expect(copies(bus.messages).get(`default:${more}:completed`)).toBe(1), {
    timeout: 5_000,
  });

  // The broker's operator allows it, and ours resumes it.
  await grantAll('no-queues');
  await waitFor(
    async () => {
      await api.post(`/replays/${body.id}/resume`);
      expect((await api.get(`/replays/${body.id}`)).body).toMatchObject({ state: 'finished' });
    },
    { timeout: 30_000, interval: 500 },
  );
  expect((await bus.channel.checkQueue(queue)).messageCount).toBe(400);
});
