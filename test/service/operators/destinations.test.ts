// Where events go, asked of a real RabbitMQ with its management API, by an account that may look and nothing else.

import { randomBytes } from 'node:crypto';
import { type Channel, connect } from 'amqplib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../../scripts/services/rabbitmq.ts';
import type { DestinationList } from '../../../src/operators/destinations/contract.ts';
import { capitalized } from '../../../src/operators/kernel/view/texts.ts';
import { cliOf } from '../../support/cli.ts';
import { visitConsole } from '../../support/console.ts';
import { enableManagement, type Management } from '../../support/management.ts';
import { operators } from '../../support/operators.ts';
import { patience } from '../../support/patience.ts';
import { startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const EXCHANGE = 'conversion.events';
/** A name that has to be encoded. */
const VHOST = 'tally/hook';
const LOOK = { user: 'look', password: randomBytes(12).toString('hex') };
const path = encodeURIComponent;

const started = new AsyncDisposableStack();
let broker: RabbitmqServer;
let management: Management;
let channel: Channel;

const amqp = () => {
  const url = new URL(broker.url);
  url.pathname = `/${path(VHOST)}`;
  return url.href;
};
const envWith = (rest: Record<string, string> = {}) => ({
  AMQP_URL: amqp(),
  BROKER_MANAGEMENT_URL: management.urlFor(LOOK),
  ...rest,
});

beforeAll(async () => {
  broker = started.use(await startRabbitmq({ settings: { collect_statistics_interval: '1000' } }));
  management = await enableManagement(broker);
  const { administer } = management;
  await administer(`vhosts/${path(VHOST)}`, 'PUT', {});
  const everything = { configure: '.*', write: '.*', read: '.*' };
  await administer(`permissions/${path(VHOST)}/${new URL(broker.url).username}`, 'PUT', everything);
  await administer(`users/${LOOK.user}`, 'PUT', { password: LOOK.password, tags: 'management' });
  const nothing = { configure: '^$', write: '^$', read: '^$' };
  await administer(`permissions/${path(VHOST)}/${LOOK.user}`, 'PUT', nothing);
  const model = await connect(amqp());
  started.defer(() => model.close());
  model.on('error', () => {});
  channel = await model.createChannel();
  await channel.assertExchange(EXCHANGE, 'topic', { durable: true });
}, patience(120_000));

afterAll(async () => {
  await started.disposeAsync();
});

async function bindQueues(): Promise<void> {
  await channel.assertQueue('billing', { durable: true, arguments: { 'x-queue-type': 'quorum' } });
  await channel.bindQueue('billing', EXCHANGE, 'job.completed.*');
  await channel.bindQueue('billing', EXCHANGE, 'job.failed.default');
  await channel.consume('billing', () => {});
  await management.administer(`policies/${path(VHOST)}/short`, 'PUT', {
    pattern: '^alarms$',
    definition: { 'max-length': 2, overflow: 'reject-publish' },
    'apply-to': 'queues',
  });
  await channel.assertQueue('alarms', { durable: true });
  await channel.bindQueue('alarms', EXCHANGE, 'job.failed.#');
  for (const _ of [1, 2]) channel.sendToQueue('alarms', Buffer.from('waits'));
  await channel.assertQueue('spare', { durable: true });
}

test('which queues are bound for which events, how full they are, who consumes them, and what is wrong', async () => {
  await using service = await startTestService({ exchange: EXCHANGE, env: envWith() });
  const api = await operators(service, { role: 'viewer' });
  const read = async () => (await api.get<DestinationList>('/destinations')).body;

  const before = await read();
  expect(before).toMatchObject({ state: 'answered', because: null, exchange: EXCHANGE, virtual_host: VHOST });
  expect(before.items).toEqual([]);
  expect(before.warnings.map(({ warning, kind }) => [warning, kind])).toEqual([
    ['no_queue', 'completed'],
    ['no_queue', 'failed'],
    ['no_queue', 'progress'],
  ]);

  await bindQueues();
  const found = await waitFor(
    async () => {
      const now = await read();
      expect(now.warnings.map(({ message }) => message)).toEqual([
        'no queue is bound for progress events: they are returned',
        'queue alarms is full and refuses events (overflow=reject-publish)',
        'nobody consumes queue alarms, and 2 messages wait in it',
      ]);
      expect(now.items.map(({ consumers }) => consumers)).toEqual([0, 1]);
      return now;
    },
    { timeout: 30_000, interval: 200 },
  );
  expect(found.items).toEqual([
    {
      name: 'alarms',
      what: 'queue',
      receives: [{ kind: 'failed', sources: null }],
      binding_keys: ['job.failed.#'],
      type: 'classic',
      policy: 'short',
      messages: 2,
      max_length: 2,
      overflow: 'reject-publish',
      consumers: 0,
    },
    {
      name: 'billing',
      what: 'queue',
      receives: [
        { kind: 'completed', sources: null },
        { kind: 'failed', sources: ['default'] },
      ],
      binding_keys: ['job.completed.*', 'job.failed.default'],
      type: 'quorum',
      policy: null,
      messages: 0,
      max_length: null,
      overflow: null,
      consumers: 1,
    },
  ]);
  expect(found.queues).toEqual(['alarms', 'billing', 'spare']);
  expect(found.has_more).toBe(false);
  expect(JSON.stringify(service.log)).not.toContain(LOOK.password);

  const cli = await cliOf(service, { role: 'viewer' });
  expect(await cli.items('destinations')).toMatchObject([{ state: 'answered', queues: found.queues }]);
  const { code, screen } = await cli.onTerminal(['destinations']);
  expect(code).toBe(0);
  expect(screen).toMatch(/alarms +2 of 2 +0 +classic +reject-publish +short +failed of all sources/);
  for (const { message } of found.warnings) expect(screen).toContain(message);

  const visit = await visitConsole(service, { role: 'operator' });
  const page = await visit.get('/console/destinations');
  for (const { message } of found.warnings) expect(page.text).toContain(`${capitalized(message)}.`);
  expect(page.text).toContain('completed of all sources; failed of default');
  expect(page.links).toContainEqual({ href: '/console/replays/new?queue=billing', text: 'Replay to it' });
  const form = await visit.get('/console/replays/new?kind=completed&queue=spare');
  expect([...form.html.matchAll(/<option value="([^"]*)"><\/option>/g)].map(([, name]) => name)).toEqual(
    found.queues,
  );
});

test('an account without its tag, without rights on the virtual host, or with a wrong password is refused, and the page says so', async () => {
  const refused =
    'RabbitMQ’s management API refused the account of BROKER_MANAGEMENT_URL: it needs the tag management, ' +
    'and permissions on the virtual host, as ^$ ^$ ^$';
  const { administer, urlFor } = management;
  for (const [user, tags] of [
    ['no-tag', ''],
    ['no-vhost', 'management'],
  ] as const)
    await administer(`users/${user}`, 'PUT', { password: LOOK.password, tags });
  for (const account of [
    { ...LOOK, user: 'no-tag' },
    { ...LOOK, user: 'no-vhost' },
    { ...LOOK, password: 'wrong' },
  ]) {
    await using service = await startTestService({
      exchange: EXCHANGE,
      env: envWith({ BROKER_MANAGEMENT_URL: urlFor(account) }),
    });
    const page = await (await visitConsole(service)).get('/console/destinations');
    expect(page.status).toBe(200);
    expect(page.text).toContain(refused);
  }
});

test(
  'more queues than are looked at: the page says that there are more',
  async () => {
    for (let index = 0; index < 500; index++)
      await channel.assertQueue(`many.${String(index).padStart(3, '0')}`, { durable: true });
    await using service = await startTestService({ exchange: EXCHANGE, env: envWith() });
    const api = await operators(service);
    const { body } = await api.get<DestinationList>('/destinations');
    expect(body).toMatchObject({ state: 'answered', has_more: true });
    expect(body.queues).toHaveLength(500);
    const page = await (await visitConsole(service)).get('/console/destinations');
    expect(page.text).toContain('There are more than 500 queues');
  },
  patience(60_000),
);
