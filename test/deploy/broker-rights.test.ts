// The accounts of deploy/rights/rabbitmq.sh, made by the commands of docs/deploy.md: each does its work, and what stops when one
// right after the other is taken away. And what a broker says to an account that may not connect.

import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect } from 'amqplib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import type { Publisher } from '../../src/relay/publisher.ts';
import { createSubscriber, RejectError } from '../../src/subscriber/index.ts';
import { messageOf, sampleEvent } from '../../src/testing/index.ts';
import { relaySays, subscriberSays } from '../support/broker-says.ts';
import { listen, newExchange } from '../support/bus.ts';
import { startCommand } from '../support/cli.ts';
import { runCommandsUnder } from '../support/deploy-commands.ts';
import { copies } from '../support/facts.ts';
import { type Account, enableManagement, type Management } from '../support/management.ts';
import { operators } from '../support/operators.ts';
import { patience } from '../support/patience.ts';
import { createTestPublisher, newMessage } from '../support/relay.ts';
import { INHERITED } from '../support/replica.ts';
import { seedEvents } from '../support/replays.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { createTestLog, startTestService } from '../support/service.ts';
import { waitFor } from '../support/waits.ts';

let broker: RabbitmqServer;
let management: Management;
/** For the script: where its `rabbitmqctl` is, and our exchange. */
let scriptEnv: { PATH: string; AMQP_EXCHANGE: string };
/** What the script gave to each account. */
let given: Definitions;

const PASSWORD = 'careful-password';
const PATIENCE = { timeout: 20_000, interval: 50 };
const EXCHANGE = newExchange();
const VHOST = 'tallyhook';
/** The account's name and the queue's. */
const QUEUE = 'billing';
/** As the script names the service's account, the one that watches, and the one that the service looks with. */
const [SERVICE, MONITOR, LOOK] = ['tallyhook_run', 'tallyhook_monitor', 'tallyhook_look'];

type Rights = { configure: string; write: string; read: string };
type Permission = Rights & { user: string; vhost: string };
type TopicPermission = { user: string; vhost: string; exchange: string; write: string; read: string };
type Definitions = { permissions: Permission[]; topic_permissions: TopicPermission[] };

const WATCHING = { user: MONITOR, password: PASSWORD };
const LOOKING = { user: LOOK, password: PASSWORD };
const NOTHING = '^$';
const quoted = (name: string) => name.replaceAll('.', '\\.');
const X = quoted(EXCHANGE);

/** Each lacks one right of the service: the rest is as the script gives it. */
const SERVICE_WITHOUT: Readonly<Record<string, Partial<Rights>>> = {
  'no-configure': { configure: NOTHING },
  'no-write': { write: '^amq\\.default$' },
  'no-queues': { write: `^${X}$` },
  'no-topic': {},
};

/** The same of the subscriber, with what the broker then refuses. */
const SUBSCRIBER_WITHOUT: readonly (readonly [lacks: string, rights: Partial<Rights>, refused: string])[] = [
  ['configure the queue', { configure: `^${QUEUE}\\.dead$` }, `access to queue '${QUEUE}'`],
  ['configure its dead letters', { configure: `^${QUEUE}$` }, `access to exchange '${QUEUE}.dead'`],
  ['write to the queue', { write: `^${QUEUE}\\.dead$` }, `access to queue '${QUEUE}'`],
  ['write to its dead letters', { write: `^${QUEUE}$` }, `access to queue '${QUEUE}.dead'`],
  ['read the queue', { read: `^(${QUEUE}\\.dead|${X})$` }, `access to queue '${QUEUE}'`],
  ['read its dead letters', { read: `^(${QUEUE}|${X})$` }, `access to exchange '${QUEUE}.dead'`],
  ['read the exchange', { read: `^${QUEUE}(\\.dead)?$` }, `access to exchange '${EXCHANGE}'`],
];
const subscriberWithout = (lacks: string) => `subscriber-without-${lacks.replaceAll(' ', '-')}`;

/** Has the subscriber's rights, and no topic. */
const BINDS_NOTHING = 'binds-nothing';

/** Other accounts of the tests. */
const STRANGERS = ['stranger', 'limited'];

beforeAll(async () => {
  broker = await startRabbitmq();
  management = await enableManagement(broker);
  scriptEnv = {
    PATH: `${await folderOfRabbitmqctl()}:${process.env['PATH'] ?? ''}`,
    AMQP_EXCHANGE: EXCHANGE,
  };
  await runCommandsUnder('Accounts at RabbitMQ', {
    ...scriptEnv,
    PUBLISH_PASSWORD: PASSWORD,
    SUBSCRIBE_PASSWORD: PASSWORD,
    MONITOR_PASSWORD: PASSWORD,
    LOOK_PASSWORD: PASSWORD,
  });
  given = (await administer('definitions')) as Definitions;
  await administer('definitions', 'POST', variants());
}, patience(240_000));

afterAll(() => broker.close());

const administer: Management['administer'] = (...asked) => management.administer(...asked);
const manage: Management['ask'] = (...asked) => management.ask(...asked);

/** A program `rabbitmqctl` that finds the node of this test, as Debian's finds that of the machine. */
async function folderOfRabbitmqctl(): Promise<string> {
  const { program, args, env } = broker.ctlCommand();
  const folder = join(broker.dir, 'bin');
  await mkdir(folder);
  const words = [...Object.entries(env).map(([name, value]) => `${name}=${value ?? ''}`), program, ...args];
  await writeFile(
    join(folder, 'rabbitmqctl'),
    `#!/bin/sh\nexec env ${words.map((word) => `'${word}'`).join(' ')} "$@"\n`,
  );
  await chmod(join(folder, 'rabbitmqctl'), 0o755);
  return folder;
}

const givenTo = (user: string) => {
  const rights = given.permissions.find(
    (permission) => permission.user === user && permission.vhost === VHOST,
  );
  const keys = given.topic_permissions.find((permission) => permission.user === user);
  if (rights === undefined || keys === undefined) throw new Error(`the script gives ${user} nothing`);
  return { rights, keys };
};

function variants() {
  const [service, subscriber] = [givenTo(SERVICE), givenTo(QUEUE)];
  const without = [
    ...Object.entries(SERVICE_WITHOUT).map(([user, rights]) => ({
      rights: { ...service.rights, ...rights, user },
      keys: { ...service.keys, user, ...(user === 'no-topic' && { write: '^job\\.failed\\.' }) },
    })),
    ...SUBSCRIBER_WITHOUT.map(([lacks, rights]) => {
      const user = subscriberWithout(lacks);
      return { rights: { ...subscriber.rights, ...rights, user }, keys: { ...subscriber.keys, user } };
    }),
    {
      rights: { ...subscriber.rights, user: BINDS_NOTHING },
      keys: { ...subscriber.keys, user: BINDS_NOTHING, read: NOTHING },
    },
  ];
  return {
    users: [...STRANGERS, ...without.map(({ rights }) => rights.user)].map((name) => ({
      name,
      password: PASSWORD,
      tags: '',
      limits: name === 'limited' ? { 'max-connections': 0 } : {},
    })),
    vhosts: [{ name: 'small' }],
    parameters: [
      { component: 'vhost-limits', vhost: 'small', name: 'limits', value: { 'max-connections': 0 } },
    ],
    permissions: [
      ...without.map(({ rights }) => rights),
      ...[VHOST, 'small'].map((vhost) => ({
        user: vhost === 'small' ? SERVICE : new URL(broker.url).username,
        vhost,
        configure: '.*',
        write: '.*',
        read: '.*',
      })),
    ],
    topic_permissions: without.map(({ keys }) => keys),
  };
}

function urlWith(change: (url: URL) => void): string {
  const url = new URL(broker.url);
  url.pathname = `/${VHOST}`;
  change(url);
  return url.href;
}

/** Of the administrator. */
const ownUrl = () => urlWith(() => {});

const urlOf = (user: string, virtualHost = VHOST) =>
  urlWith((url) => {
    [url.username, url.password] = [user, PASSWORD];
    url.pathname = `/${encodeURIComponent(virtualHost)}`;
  });

/** What it lacks of the service's rights. */
async function restore(user: string): Promise<void> {
  const { configure, write, read } = givenTo(SERVICE).rights;
  await administer(`permissions/${VHOST}/${user}`, 'PUT', { configure, write, read });
}

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
    [urlOf(SERVICE, 'no/where'), 'access_refused', "the virtual host 'no/where' in the URL does not exist"],
    [
      urlOf('stranger'),
      'access_refused',
      "the account 'stranger' has no permissions on the virtual host 'tallyhook'",
    ],
    [urlOf('limited'), 'limit_reached', "the account 'limited' may not have more connections"],
    [urlOf(SERVICE, 'small'), 'limit_reached', "the virtual host 'small' may not have more connections"],
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

  await using bus = await listen(EXCHANGE, { url: ownUrl() });
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
  const service = createTestPublisher({ exchange: EXCHANGE, url: urlOf(SERVICE), log });
  const mute = createTestPublisher({ exchange: EXCHANGE, url: urlOf('no-write'), log });
  try {
    await untilReady(service);
    await using bus = await listen(EXCHANGE, { url: ownUrl() });
    expect(await service.publish(newMessage('a'))).toMatchObject({ result: 'confirmed' });
    await bus.received(1);

    await untilReady(mute);
    expect(await mute.publish(newMessage('b'))).toMatchObject({
      result: 'failed',
      blame: 'broker',
      detail: expect.stringContaining(`access to exchange '${EXCHANGE}'`) as string,
    });
    await restore('no-write');
    await waitFor(
      async () => expect(await mute.publish(newMessage('b'))).toMatchObject({ result: 'confirmed' }),
      PATIENCE,
    );
  } finally {
    await Promise.all([service.close(), mute.close()]);
  }
});

test('a routing key that the account may not use is tried apart, and the others go on over the same connection', async () => {
  await using bus = await listen(EXCHANGE, { url: ownUrl() });
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

    await administer(`topic-permissions/${VHOST}/no-topic`, 'DELETE');
    await waitFor(async () => expect(await refused()).toMatchObject({ result: 'confirmed' }), PATIENCE);
    await bus.received(4);
    expect(bus.ids()).toEqual(['b', 'c', 'd', 'a']);
    expect(connected()).toBe(2);
  } finally {
    await publisher.close();
  }
});

test('a replay to a queue that the broker refuses us is paused, and live events go on over their channel', async () => {
  const exchange = EXCHANGE;
  await using bus = await listen(exchange, { url: ownUrl() });
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
  await restore('no-queues');
  await waitFor(
    async () => {
      await api.post(`/replays/${body.id}/resume`);
      expect((await api.get(`/replays/${body.id}`)).body).toMatchObject({ state: 'finished' });
    },
    { timeout: 30_000, interval: 500 },
  );
  expect((await bus.channel.checkQueue(queue)).messageCount).toBe(400);
});

type Handlers = Parameters<typeof createSubscriber>[0]['on'];

/** Of the queue that the script made its account for. */
const subscribe = (user: string, on: Handlers) =>
  createSubscriber({ url: urlOf(user), queue: QUEUE, exchange: EXCHANGE, on, attempts: 1 });

/** As the service's account. */
async function publishSamples(kinds: readonly ('completed' | 'failed')[]): Promise<void> {
  const connection = await connect(urlOf(SERVICE));
  const channel = await connection.createConfirmChannel();
  for (const kind of kinds) {
    const { routingKey, content, properties } = messageOf(sampleEvent({ kind, job: `job_${kind}` }));
    channel.publish(EXCHANGE, routingKey, content, properties);
  }
  await channel.waitForConfirms();
  await connection.close();
}

const queuePath = (queue: string) => `queues/${VHOST}/${queue}`;

test('a subscriber’s account receives, dead-letters, and binds no event of other kinds than it was given', async () => {
  await using admin = await listen(EXCHANGE, { url: ownUrl() });
  const handled: string[] = [];
  const subscriber = await subscribe(QUEUE, {
    completed: ({ id }) => void handled.push(id),
    failed: () => {
      throw new RejectError('for a test');
    },
  });
  try {
    await publishSamples(['completed', 'failed']);
    await waitFor(async () => {
      expect(handled).toEqual(['default:job_completed:completed']);
      expect(await admin.channel.checkQueue(`${QUEUE}.dead`)).toMatchObject({ messageCount: 1 });
    }, PATIENCE);
  } finally {
    await subscriber.stop();
  }
  await expect(subscribe(QUEUE, { progress: () => {} })).rejects.toMatchObject({
    code: 'access_refused',
    message: expect.stringMatching(
      /access to topic 'job\.progress\.\*' .* of this subscriber alone: rabbitmqctl /s,
    ),
  });
});

test('what a subscriber that may not bind says is enough, and no more than it binds', async () => {
  await using _ = await listen(EXCHANGE, { url: ownUrl() });
  const on: Handlers = { completed: () => {}, progress: () => {} };
  const { message } = await subscribe(BINDS_NOTHING, on).then(
    () => expect.fail('it may bind'),
    (error: unknown) => error as Error,
  );
  const [, exchange, write, read] =
    / set_topic_permissions -p 'tallyhook' 'binds-nothing' '(.*)' '(.*)' '(.*)'$/.exec(message) ?? [];
  expect(read).toBe('^(job\\.completed\\.[^.]+|job\\.progress\\.[^.]+)$');
  await administer(`topic-permissions/${VHOST}/${BINDS_NOTHING}`, 'PUT', { exchange, write, read });

  await (await subscribe(BINDS_NOTHING, on)).stop();

  await expect(subscribe(BINDS_NOTHING, { failed: () => {} })).rejects.toThrow(
    "access to topic 'job.failed.*'",
  );
});

test('tail as the service is told to take an account and a queue of its own, with which it shows events', async () => {
  await using _ = await listen(EXCHANGE, { url: ownUrl() });
  const tail = (user: string, ...args: string[]) =>
    startCommand(['tail', ...args], { env: { AMQP_URL: urlOf(user), AMQP_EXCHANGE: EXCHANGE } });
  await using refused = tail(SERVICE);
  expect(await refused.exited).not.toBe(0);
  expect(refused.stderr()).toMatch(
    /access to queue 'tallyhook\.subscriber\.\w+' .*deploy\/rights\/rabbitmq\.sh subscribe watch, .*tail --queue watch/s,
  );
  expect(refused.stderr()).not.toContain('rabbitmqctl');

  await promisify(execFile)('sh', ['deploy/rights/rabbitmq.sh', 'subscribe', 'watch'], {
    env: { ...INHERITED, ...scriptEnv, PASSWORD },
  });
  await using own = tail('watch', '--queue', 'watch');
  await waitFor(() => expect(own.stderr()).toContain('listening on queue watch'), PATIENCE);
  await publishSamples(['completed']);
  await waitFor(() => expect(own.stdout()).toContain('default:job_completed:completed'), PATIENCE);
  own.signal('SIGTERM');
  expect(await own.exited).toBe(0);
});

test.for(SUBSCRIBER_WITHOUT)(
  'a subscriber that may not %s does not start, and says what it needs',
  async ([lacks, , refused]) => {
    await using _ = await listen(EXCHANGE, { url: ownUrl() });
    const user = subscriberWithout(lacks);
    const start = subscribe(user, { completed: () => {} });
    await expect(start).rejects.toMatchObject({
      code: 'access_refused',
      message: expect.stringContaining(refused),
    });
    await expect(start).rejects.toThrow(
      `of this subscriber alone: rabbitmqctl set_permissions -p '${VHOST}' '${user}' '`,
    );
  },
);

test('the account that watches sees nodes and queues, and takes no message, publishes none and deletes nothing', async () => {
  await waitFor(async () => {
    expect(await manage(WATCHING, queuePath(`${QUEUE}.dead`))).toMatchObject({
      status: 200,
      body: { messages: 1 },
    });
  }, PATIENCE);
  expect(await manage(WATCHING, 'nodes')).toMatchObject({ status: 200, body: [{ running: true }] });

  await expectHarmless(WATCHING);
});

test('the account that looks tells the service its destinations, sees no node, and can do as little', async () => {
  await using service = await startTestService({
    exchange: EXCHANGE,
    env: { AMQP_URL: urlOf(SERVICE), BROKER_MANAGEMENT_URL: management.urlFor(LOOKING) },
  });
  const { body } = await (await operators(service, { role: 'viewer' })).get('/destinations');
  expect(body).toMatchObject({
    state: 'answered',
    virtual_host: VHOST,
    queues: expect.arrayContaining([QUEUE]) as string[],
  });
  expect(await manage(LOOKING, 'nodes')).toMatchObject({ status: 401, body: { reason: 'Not monitor user' } });
  expect(await manage(LOOKING, 'queues/%2F')).toMatchObject({ status: 401 });
  await expectHarmless(LOOKING);
});

/** It takes no message, publishes none and deletes nothing. */
async function expectHarmless(account: Account): Promise<void> {
  const take = { count: 1, ackmode: 'ack_requeue_true', encoding: 'auto' };
  const send = {
    properties: {},
    routing_key: 'job.completed.default',
    payload: '',
    payload_encoding: 'string',
  };
  for (const [path, init] of [
    [`${queuePath(`${QUEUE}.dead`)}/get`, { method: 'POST', body: JSON.stringify(take) }],
    [`exchanges/${VHOST}/${QUEUE}.dead/publish`, { method: 'POST', body: JSON.stringify(send) }],
    [`${queuePath(`${QUEUE}.dead`)}/contents`, { method: 'DELETE' }],
    [queuePath(`${QUEUE}.dead`), { method: 'DELETE' }],
    [queuePath('another'), { method: 'PUT', body: '{}' }],
    ['users', {}],
  ] as const) {
    const { status, body } = await manage(account, path, init);
    expect({ path, isRefused: status >= 400, body }).toEqual({
      path,
      isRefused: true,
      body: expect.objectContaining({
        reason: expect.stringMatching(/ACCESS_REFUSED|access refused|Not admin/i) as string,
      }) as object,
    });
  }
}

test('without its permissions, or its tag, the account that watches is refused, and is told why', async () => {
  await administer(`permissions/${VHOST}/${MONITOR}`, 'DELETE');
  expect(await manage(WATCHING, queuePath(QUEUE))).toMatchObject({
    status: 401,
    body: { reason: 'User not authorised to access virtual host' },
  });
  await administer(`users/${MONITOR}`, 'PUT', { password: PASSWORD, tags: 'management' });
  expect(await manage(WATCHING, 'nodes')).toMatchObject({
    status: 401,
    body: { reason: 'Not monitor user' },
  });
  await administer(`users/${MONITOR}`, 'PUT', { password: PASSWORD, tags: '' });
  expect(await manage(WATCHING, 'overview')).toMatchObject({
    status: 401,
    body: { reason: 'Not management user' },
  });
});
