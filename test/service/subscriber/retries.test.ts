// Failing handlers: attempts with a wait, a time limit, dead letters. What stands in one job's way does not hold up others.

import { connect, type ConsumeMessage } from 'amqplib';
import { expect, test } from 'vitest';
import { publishDeadLetter } from '../../../src/subscriber/dead-letter.ts';
import { messageOf, sampleEvent } from '../../../src/testing/index.ts';
import { RejectError, TimeLimitError, UnavailableError } from '../../../src/subscriber/index.ts';
import { startSubscriberWorld } from '../../support/subscribers.ts';
import { until } from '../../support/until.ts';

const refuse = () => {
  throw new RejectError('no such customer');
};

test('a failing event is tried again, the later ones of its job wait, other jobs go on, and then it is dead-lettered', async () => {
  await using world = await startSubscriberWorld();
  const calls: string[] = [];
  const others = Promise.withResolvers<void>();
  await world.subscribe({
    attempts: 3,
    on: {
      progress: async ({ id, subject }, { attempt }) => {
        calls.push(`${id} ${attempt}`);
        if (subject === 'job_2') others.resolve();
        if (id !== 'default:job_1:processing:1') return;
        await others.promise; // other jobs do not wait for this one
        throw new Error('the bank is closed');
      },
    },
  });

  await world.publish([
    { job: 'job_1', percent: 1 },
    { job: 'job_1', percent: 2 },
    { job: 'job_2', percent: 1 },
  ]);

  await world.untilNotice('handled', 2);
  expect(calls.filter((call) => call.includes('job_1'))).toEqual([
    'default:job_1:processing:1 1',
    'default:job_1:processing:1 2',
    'default:job_1:processing:1 3',
    'default:job_1:processing:2 1',
  ]);
  expect(world.noticesOf('retry')).toMatchObject([
    { id: 'default:job_1:processing:1', attempt: 1, error: { message: 'the bank is closed' } },
    { id: 'default:job_1:processing:1', attempt: 2 },
  ]);
  expect(world.noticesOf('dead_lettered')).toMatchObject([
    { id: 'default:job_1:processing:1', reason: 'attempts' },
  ]);
  const dead = await deadLetter(world);
  expect(dead.properties.messageId).toBe('default:job_1:processing:1');
  expect(dead.properties.headers).toMatchObject({
    'x-death': [expect.objectContaining({ queue: world.queue, reason: 'rejected' })],
  });
});

test('an event that waits for its next attempt takes no place from others', async () => {
  await using world = await startSubscriberWorld();
  await world.subscribe({
    concurrency: 1,
    backoff: { firstMs: 60_000, maxMs: 60_000 },
    on: {
      completed: ({ subject }) => {
        if (subject === 'job_1') throw new Error('not yet');
      },
    },
  });

  await world.publish([{ job: 'job_1' }, { job: 'job_2' }]);

  expect(await world.untilNotice('handled')).toMatchObject([{ subject: 'job_2' }]);
});

test('an UnavailableError counts as no attempt: the event is tried again for as long as it takes', async () => {
  await using world = await startSubscriberWorld();
  let calls = 0;
  await world.subscribe({
    attempts: 2,
    on: {
      completed: () => {
        calls += 1;
        if (calls === 2) throw new Error('this one counts');
        if (calls < 10) throw new UnavailableError('the bank is closed');
      },
    },
  });

  await world.publish([{ job: 'job_1' }]);

  expect(await world.untilNotice('handled')).toMatchObject([{ attempt: 2 }]);
  expect(calls).toBe(10);
  expect(world.noticesOf('retry').filter(({ counts }) => counts)).toMatchObject([
    { attempt: 1, error: { message: 'this one counts' } },
  ]);
  expect(world.noticesOf('dead_lettered')).toEqual([]);
});

test('a RejectError dead-letters at once', async () => {
  await using world = await startSubscriberWorld();
  await world.subscribe({
    on: {
      completed: () => {
        throw new RejectError('no such customer');
      },
    },
  });

  await world.publish([{ job: 'job_1' }]);

  expect(await world.untilNotice('dead_lettered')).toMatchObject([
    { reason: 'rejected', error: { message: 'no such customer' }, level: 'error' },
  ]);
  expect(world.noticesOf('retry')).toEqual([]);
  await world.untilDepth(`${world.queue}.dead`, 1);
});

test('a handler beyond its time has its signal aborted, and the attempt counts as failed', async () => {
  await using world = await startSubscriberWorld();
  const reasons: unknown[] = [];
  await world.subscribe({
    attempts: 2,
    timeLimitMs: 20,
    on: {
      completed: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason);
            reject(new Error('cut off', { cause: signal.reason }));
          });
        }),
    },
  });

  await world.publish([{ job: 'job_1' }]);

  expect(await world.untilNotice('dead_lettered')).toMatchObject([{ reason: 'attempts' }]);
  expect(reasons).toEqual([expect.any(TimeLimitError), expect.any(TimeLimitError)]);
});

test('a message that ends the process is dead-lettered by the broker after 20 returns', async () => {
  await using world = await startSubscriberWorld();
  // RabbitMQ allows basic.get on a quorum queue only without a single active consumer.
  const subscriber = await world.subscribe({ order: 'none', on: { completed: () => {} } });
  await subscriber.stop();
  await world.publish([{ job: 'job_1' }]);

  for (let returns = 0; returns <= 20; returns += 1) {
    const message = await world.channel.get(world.queue);
    if (message === false) throw new Error(`it is gone after ${returns} returns`);
    world.channel.reject(message, true); // as when the process had died
  }

  await world.untilDepth(`${world.queue}.dead`, 1);
  const dead = await deadLetter(world);
  expect(dead.properties.headers).toMatchObject({
    'x-death': [expect.objectContaining({ reason: 'delivery_limit' })],
  });
});

test('a dead letter has its error among its headers, and all that the message had', async () => {
  await using world = await startSubscriberWorld();
  await world.subscribe({
    attempts: 2,
    on: {
      completed: () => {
        const refused = `no route to amqp://billing:the-password@bank.example/, ${'é'.repeat(1_000)}`;
        throw Object.assign(new TypeError(refused), { code: 'EHOSTUNREACH', detail: 'not-to-be-told' });
      },
    },
  });

  await world.publish([{ job: 'job_1' }], { replay: { id: 'replay-1', by: 'ops' } });

  const { content, fields, properties } = await deadLetter(world);
  const { headers = {}, ...others } = properties;
  const {
    failure_message: message,
    'x-death': deaths,
    'x-delivery-count': __, // of the dead-letter queue itself
    ...rest
  } = headers as Record<string, unknown>;
  expect(rest).toEqual({
    replay: 'replay-1',
    replayed_by: 'ops',
    failure_reason: 'attempts',
    failure_attempts: 2,
    failure_name: 'TypeError',
    failure_code: 'EHOSTUNREACH',
    'x-first-death-exchange': world.exchange,
    'x-first-death-queue': world.queue,
    'x-first-death-reason': 'rejected',
  });
  expect(message).toMatch(/^no route to amqp:\/\/…@bank\.example\/, é+$/);
  expect(Buffer.byteLength(String(message))).toBeLessThanOrEqual(1024);
  expect(deaths).toMatchObject([
    { count: 1, reason: 'rejected', queue: world.queue, exchange: world.exchange },
  ]);
  const event = sampleEvent({ kind: 'completed', job: 'job_1' });
  const sent = messageOf(event);
  expect({ content, routingKey: fields.routingKey }).toEqual({
    content: sent.content,
    routingKey: sent.routingKey,
  });
  const { persistent: _, ...told } = sent.properties;
  expect(others).toMatchObject({ ...told, deliveryMode: 2 });
  expect(JSON.stringify(properties)).not.toMatch(/the-password|not-to-be-told/);
  await world.untilDepth(world.queue, 0);
});

test('a subscriber of the dead-letter queue hears why; what dies twice is counted', async () => {
  await using world = await startSubscriberWorld();
  await world.subscribe({ on: { completed: refuse } });
  await world.publish([{ job: 'job_1' }]);
  const first = await deadLetter(world);
  world.channel.publish(world.exchange, 'job.completed.default', first.content, first.properties);
  await world.untilNotice('dead_lettered', 2);

  const deaths: unknown[] = [];
  const failures: unknown[] = [];
  const watch = await world.channel.consume(`${world.queue}.dead`, (message) => {
    deaths.push(message?.properties.headers?.['x-death']?.map(({ count }) => count));
    if (message) world.channel.reject(message, true);
    void world.channel.cancel(watch.consumerTag);
  });
  await until('it was looked at', () => (deaths.length > 0 ? true : undefined), { limitMs: 20_000 });
  await world.subscribe({
    queue: `${world.queue}.dead`,
    declare: 'never',
    order: 'none',
    on: { completed: (_, { failure }) => failures.push(failure) },
  });
  await world.untilNotice('handled');
  expect(deaths[0]).toEqual([2]);
  expect(failures).toEqual([
    {
      reason: 'rejected',
      attempts: 1,
      name: 'RejectError',
      code: 'rejected',
      message: 'no such customer',
    },
  ]);
});

test('of a queue that others declared, the broker dead-letters: this account may only read it', async () => {
  await using world = await startSubscriberWorld();
  const owner = await world.subscribe({ on: { completed: () => {} } });
  await owner.stop();
  const on = {
    completed: () => {
      throw new RejectError('no such customer');
    },
  };
  await world.subscribe({ declare: 'never', on });
  await world.publish([{ job: 'job_1' }]);
  const { headers } = (await deadLetter(world)).properties;
  expect(headers).toMatchObject({ 'x-death': [{ queue: world.queue, reason: 'rejected', count: 1 }] });
  expect(Object.keys(headers ?? {}).filter((name) => name.startsWith('failure_'))).toEqual([]);
});

test('what no queue takes as a dead letter is not taken for arrived: the broker is left to dead-letter it', async () => {
  await using world = await startSubscriberWorld();
  const connection = await connect(world.url);
  await using _ = { [Symbol.asyncDispose]: () => connection.close() };
  const dead = `${world.queue}.dead`;
  await world.channel.assertQueue(world.queue);
  await world.channel.assertQueue(dead);
  await world.channel.bindQueue(world.queue, world.exchange, '#');
  await world.publish([{ job: 'job_1' }]);
  const message = await world.channel.get(world.queue);
  if (message === false) throw new Error('there is no message');
  const failure = { reason: 'attempts', attempts: 5, error: new Error('why') } as const;
  const publish = () =>
    publishDeadLetter(connection, dead, {
      message: message as unknown as ConsumeMessage,
      queue: world.queue,
      failure,
    });

  expect(await publish()).toBe(false); // there is no exchange
  await world.channel.assertExchange(dead, 'fanout');
  expect(await publish()).toBe(false); // without a queue
  await world.channel.bindQueue(dead, dead, '');
  expect(await publish()).toBe(true); // the connection has outlived both
  expect(await world.depth(dead)).toBe(1);
});

async function deadLetter(world: Awaited<ReturnType<typeof startSubscriberWorld>>) {
  await world.untilDepth(`${world.queue}.dead`, 1);
  const message = await world.channel.get(`${world.queue}.dead`, { noAck: true });
  if (message === false) throw new Error('there is no dead letter');
  return message;
}
