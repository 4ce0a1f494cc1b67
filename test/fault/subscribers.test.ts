import { connect } from 'amqplib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { type RunningCommand, startCommand } from '../support/cli.ts';
import { newExchange } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { untilOutboxEmpty } from '../support/facts.ts';
import { createSubscriber, type SubscriberError } from '../../src/subscriber/index.ts';
import { startReplica } from '../support/replica.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startSubscriberWorld } from '../support/subscribers.ts';
import { pause } from '../support/until.ts';
import { waitFor } from '../support/waits.ts';

let broker: RabbitmqServer;

beforeAll(async () => {
  broker = await startRabbitmq();
});

afterAll(() => broker.close());

const PATIENCE = { timeout: 30_000, interval: 100 };

const jobsOf = (tail: RunningCommand) =>
  tail
    .stdout()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { subject: string }).subject);

/** Names and arguments of all queues. */
async function queues(): Promise<string[]> {
  const listed = await broker.ctl('list_queues', '--quiet', '--no-table-headers', 'name', 'arguments');
  return listed.split('\n').filter((line) => line !== '');
}

const untilBound = () => waitFor(async () => expect(await queues()).toHaveLength(1), PATIENCE);

test.for(['stop', 'SIGKILL'] as const)(
  'tail misses no event over a restart of the broker (%s), prints each once, and says that it was away',
  async (how) => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    const env = { AMQP_URL: broker.url, AMQP_EXCHANGE: exchange };
    await using tail = startCommand(['tail'], { env });
    await untilBound();
    await using relay = await startReplica({ databaseUrl: database.url, exchange, env });
    const before = newJobId();
    await deliver(relay.webhooks, completed(before));
    await waitFor(() => expect(jobsOf(tail)).toEqual([before]), PATIENCE);

    if (how === 'stop') await broker.stop();
    else await broker.kill(how);
    const meanwhile = [newJobId(), newJobId(), newJobId()];
    for (const job of meanwhile) await deliver(relay.webhooks, completed(job));
    await broker.start();

    await waitFor(() => expect(jobsOf(tail)).toHaveLength(4), PATIENCE);
    await untilOutboxEmpty(database);
    expect(jobsOf(tail)).toEqual([before, ...meanwhile]);
    expect(tail.stderr()).toContain('the connection to the broker was lost: connecting again\n');
    expect(tail.stderr()).toContain('connected again: the queue has kept what arrived\n');
    expect(tail.stderr()).not.toContain('missing');
    // None was returned for want of a queue.
    const results = await database.query<{ result: string }>('select result from publications');
    expect(results.filter(({ result }) => result === 'returned')).toEqual([]);

    tail.signal('SIGINT');
    expect(await tail.exited).toBe(0);
    expect(await queues()).toEqual([]);
  },
);

test('the queue of its own is bounded, expires without tail, and a missing one is told', async () => {
  const exchange = newExchange();
  await using tail = startCommand(['tail'], { env: { AMQP_URL: broker.url, AMQP_EXCHANGE: exchange } });
  await untilBound();
  const [queue = ''] = await queues();
  for (const argument of [
    '{"x-expires",300000}',
    '{"x-max-length",100000}',
    '{"x-max-length-bytes",134217728}',
  ]) {
    expect(queue).toContain(argument);
  }

  const connection = await connect(broker.url);
  const channel = await connection.createChannel();
  await channel.deleteQueue(queue.split('\t')[0] ?? '');
  await connection.close();

  await waitFor(() => expect(tail.stderr()).toContain('but the queue was gone'), PATIENCE);
  expect(await queues()).toEqual([queue]);
  tail.signal('SIGTERM');
  expect(await tail.exited).toBe(0);
});

test('a subscriber handles each event once and in order for a job over a broker that is killed', async () => {
  await using world = await startSubscriberWorld(broker.url);
  const ended: string[] = [];
  await world.subscribe({
    on: {
      progress: async (event) => {
        await pause(5 + (event.data.progress_percentage % 3) * 5);
        ended.push(event.id);
      },
    },
  });
  const ids = await world.publish(
    Array.from({ length: 300 }, (_, index) => ({ job: `job_${index % 5}`, percent: Math.floor(index / 5) })),
  );
  await waitFor(() => expect(ended.length).toBeGreaterThan(40), PATIENCE);

  await broker.kill('SIGKILL');
  await broker.start();

  await waitFor(() => expect(new Set(ended).size).toBe(ids.length), PATIENCE);
  expect(ended).toHaveLength(ids.length); // copies of what was handled are duplicates
  for (let job = 0; job < 5; job += 1) {
    const ofJob = (all: readonly string[]) => all.filter((id) => id.startsWith(`default:job_${job}:`));
    expect(ofJob(ended)).toEqual(ofJob(ids));
  }
  expect(world.noticesOf('connected').at(-1)).toMatchObject({ again: true, queueWasGone: false });
});

test('an account needs the documented permissions and no more; with less, the error says what is missing', async () => {
  await using world = await startSubscriberWorld(broker.url);
  const own = `${world.queue.replaceAll('.', '\\.')}(\\.dead)?`;
  const full = [`^${own}$`, `^${own}$`, `^(${own}|${world.exchange.replaceAll('.', '\\.')})$`];
  await broker.ctl('add_user', 'billing', 'pa/ss');
  const url = new URL(broker.url);
  [url.username, url.password] = ['billing', encodeURIComponent('pa/ss')];
  const grant = (...patterns: string[]) => broker.ctl('set_permissions', '-p', '/', 'billing', ...patterns);
  const start = () => world.subscribe({ url: url.href, on: { completed: () => {} } });

  for (const missing of [0, 1, 2]) {
    await grant(...full.map((pattern, index) => (index === missing ? '^$' : pattern)));
    const refused = (await start().catch((error: unknown) => error)) as SubscriberError;
    expect(refused).toMatchObject({ name: 'SubscriberError', code: 'access_refused' });
    expect(refused.message).toContain("refused for user 'billing'");
    expect(refused.message).toContain(
      `rabbitmqctl set_permissions -p '/' 'billing' ${full.map((pattern) => `'${pattern}'`).join(' ')}`,
    );
    expect(refused.message).not.toContain('pa/ss');
    expect(refused.message).not.toContain('pa%2Fss');
  }

  await grant(...full);
  const subscriber = await start();
  await world.publish([{ job: 'job_1' }]);
  await world.publishRaw('job.completed.default', 'no event', 'a');
  await world.untilNotice('handled');
  await world.untilDepth(`${world.queue}.dead`, 1);
  await subscriber.stop();

  // A queue that others have declared: to read it is enough.
  await grant('^$', '^$', `^${world.queue.replaceAll('.', '\\.')}$`);
  const reader = await createSubscriber({
    url: url.href,
    queue: world.queue,
    declare: 'never',
    on: { completed: () => {} },
  });
  await reader.stop();
});
