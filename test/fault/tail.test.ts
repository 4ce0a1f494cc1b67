import { connect } from 'amqplib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { newExchange } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { untilOutboxEmpty } from '../support/facts.ts';
import { type RunningCommand, startCommand, startReplica } from '../support/replica.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';

let broker: RabbitmqServer;

beforeAll(async () => {
  broker = await startRabbitmq();
}, 120_000);

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

const untilBound = () => vi.waitFor(async () => expect(await queues()).toHaveLength(1), PATIENCE);

test.for(['stop', 'SIGKILL'] as const)(
  'tail misses no event over a restart of the broker (%s), prints each once, and says that it was away',
  { timeout: 120_000 },
  async (how) => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    const env = { AMQP_URL: broker.url, AMQP_EXCHANGE: exchange };
    await using tail = startCommand(['tail'], { env });
    await untilBound();
    await using relay = await startReplica({ databaseUrl: database.url, exchange, env });
    const before = newJobId();
    await deliver(relay.webhooks, completed(before));
    await vi.waitFor(() => expect(jobsOf(tail)).toEqual([before]), PATIENCE);

    if (how === 'stop') await broker.stop();
    else await broker.kill(how);
    const meanwhile = [newJobId(), newJobId(), newJobId()];
    for (const job of meanwhile) await deliver(relay.webhooks, completed(job));
    await broker.start();

    await vi.waitFor(() => expect(jobsOf(tail)).toHaveLength(4), PATIENCE);
    await untilOutboxEmpty(database);
    expect(jobsOf(tail)).toEqual([before, ...meanwhile]);
    expect(tail.stderr()).toContain('the connection to the broker was lost: connecting again\n');
    expect(tail.stderr()).toContain('connected again: the queue has kept what arrived\n');
    expect(tail.stderr()).not.toContain('missing');
    // None was returned for want of a queue.
    const results = await database.query<{ result: string }>('select result from publications');
    expect(results.filter(({ result }) => result === 'returned')).toEqual([]);

    tail.child.kill('SIGINT');
    expect(await tail.exited).toEqual({ code: 0, signal: null });
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

  await vi.waitFor(() => expect(tail.stderr()).toContain('but the queue was gone'), PATIENCE);
  expect(await queues()).toEqual([queue]);
  tail.child.kill('SIGTERM');
  expect(await tail.exited).toEqual({ code: 0, signal: null });
}, 60_000);
