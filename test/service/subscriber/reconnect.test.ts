// A connection that is lost, a queue or an exchange that is not there, and a queue in another form.

import { connect } from 'amqplib';
import { expect, test } from 'vitest';
import { createSubscriber, SubscriberError } from '../../../src/subscriber/index.ts';
import { amqpUrl, newExchange } from '../../support/bus.ts';
import { promisedMs } from '../../support/patience.ts';
import { startProxy } from '../../support/proxy.ts';
import { startSubscriberWorld } from '../../support/subscribers.ts';
import { until } from '../../support/until.ts';

const LIMIT = { limitMs: 20_000, pollMs: 10 };

test.for([false, undefined])(
  'a handler that runs while the connection is lost runs on, alone; its copy comes after it (dedup: %s)',
  async (dedup) => {
    await using world = await startSubscriberWorld();
    await using proxy = await startProxy(world.url, { defaultPort: 5672 });
    const gate = Promise.withResolvers<void>();
    const calls: string[] = [];
    let running = 0;
    await world.subscribe({
      url: proxy.url,
      ...(dedup === false ? { dedup } : {}),
      on: {
        progress: async ({ data }, { redelivered }) => {
          running += 1;
          expect(running).toBe(1);
          calls.push(`${data.progress_percentage}${redelivered ? ' again' : ''}`);
          if (!redelivered && data.progress_percentage === 1) await gate.promise;
          running -= 1;
        },
      },
    });
    await world.publish([1, 2, 3].map((percent) => ({ job: 'job_1', percent })));
    await until('the first one runs', () => (running === 1 ? true : undefined), LIMIT);

    proxy.cut();
    await world.untilNotice('connected', 2);
    gate.resolve();

    await world.untilDepth(world.queue, 0);
    await world.untilNotice('handled', dedup === false ? 4 : 3);
    expect(calls).toEqual(
      dedup === false ? ['1', '1 again', '2 again', '3 again'] : ['1', '2 again', '3 again'],
    );
    expect(world.noticesOf('handled')[0]).toMatchObject({ acknowledged: false, redelivered: false });
    expect(world.noticesOf('lost')).toHaveLength(1);
    expect(world.noticesOf('connected')[1]).toMatchObject({ again: true, queueWasGone: false });
    expect(world.noticesOf('retry')).toEqual([]);
  },
);

test('a connection that goes silent is noticed by its heartbeat, and a broker that refuses is asked again', async () => {
  await using world = await startSubscriberWorld();
  await using proxy = await startProxy(world.url, { defaultPort: 5672 });
  await world.subscribe({ url: `${proxy.url}?heartbeat=1`, on: { completed: () => {} } });

  proxy.silence();
  proxy.refuse();
  await world.untilNotice('unreachable', 2);
  proxy.heal();
  await world.publish([{ job: 'job_1' }]);

  await world.untilNotice('handled');
  const waits = world.noticesOf('unreachable').map(({ retryInMs }) => retryInMs);
  expect(waits.every((ms) => ms >= 100 && ms <= 10_000)).toBe(true);
});

test('a stop while the broker is away ends soon', async () => {
  await using world = await startSubscriberWorld();
  await using proxy = await startProxy(world.url, { defaultPort: 5672 });
  const subscriber = await world.subscribe({ url: proxy.url, on: { completed: () => {} } });
  proxy.refuse();
  proxy.cut();
  await world.untilNotice('unreachable');
  const startedMs = performance.now();

  await subscriber.stop();

  expect(performance.now() - startedMs).toBeLessThan(promisedMs(5_000));
});

test('a queue that is deleted is declared again, with its bindings and dead-letter queue, and told', async () => {
  await using world = await startSubscriberWorld();
  await world.subscribe({ on: { completed: () => {} } });

  for (const queue of [world.queue, `${world.queue}.dead`]) await world.channel.deleteQueue(queue);
  await world.channel.deleteExchange(`${world.queue}.dead`);

  const [, again] = await world.untilNotice('connected', 2);
  expect(again).toMatchObject({ again: true, queueWasGone: true, level: 'error' });
  await world.publish([{ job: 'job_1' }]);
  await world.publishRaw('job.completed.default', 'no event', 'a');
  await world.untilNotice('handled');
  await world.untilDepth(`${world.queue}.dead`, 1);
});

test('a missing exchange is waited for, and told; it is declared only if asked for', async () => {
  await using world = await startSubscriberWorld();
  const exchange = newExchange();
  const starting = world.subscribe({ exchange, on: { completed: () => {} } });
  const [told] = await world.untilNotice('unreachable');
  expect(told?.error).toMatchObject({ name: 'SubscriberError', code: 'exchange_missing' });
  expect(told?.message).toContain(
    `exchange '${exchange}' does not exist on virtual host '/': Tallyhook declares it when it starts`,
  );
  await world.channel.assertExchange(exchange, 'topic', { durable: true });
  await (await starting).stop();

  const another = newExchange();
  await world.subscribe({ exchange: another, declareExchange: true, on: { completed: () => {} } });
  for (const name of [exchange, another]) await world.channel.deleteExchange(name);
});

test('an exchange that operations made with arguments of their own is used, also by who would declare it', async () => {
  await using world = await startSubscriberWorld();
  const [exchange, fanout] = [newExchange(), newExchange()];
  await world.channel.assertExchange(exchange, 'topic', { durable: true, alternateExchange: 'amq.fanout' });
  await world.channel.assertExchange(fanout, 'fanout', { durable: true });
  const on = { completed: () => {} };

  const subscriber = await world.subscribe({ exchange, declareExchange: true, on });
  await subscriber.stop();
  const refused = await world
    .subscribe({ exchange: fanout, declareExchange: true, on })
    .catch((error: unknown) => error);

  expect(refused).toMatchObject({ code: 'queue_differs' });
  for (const name of [exchange, fanout]) await world.channel.deleteExchange(name);
});

test('a queue in another form is one clear error at the start; as it is, it can be used', async () => {
  await using world = await startSubscriberWorld();
  await world.channel.assertQueue(world.queue, { durable: true });
  await world.channel.bindQueue(world.queue, world.exchange, 'job.completed.team-a');
  const on = { completed: () => {} };

  const refused = await world.subscribe({ on }).catch((error: unknown) => error);

  expect(refused).toBeInstanceOf(SubscriberError);
  expect(refused).toMatchObject({ code: 'queue_differs' });
  expect((refused as Error).message).toContain(
    `inequivalent arg 'x-dead-letter-exchange' for queue '${world.queue}' in vhost '/'`,
  );
  expect((refused as Error).message).toContain("declare: 'never'");
  expect(world.noticesOf('unreachable')).toEqual([]);

  for (const declare of ['never', 'missing'] as const) {
    const subscriber = await world.subscribe({ declare, on });
    await world.publish([{ job: `job_${declare}`, source: 'team-a' }]);
    await world.publishRaw('job.completed.default', 'not bound');
    await subscriber.stop();
  }
  await world.subscribe({ declare: 'never', on });
  await world.untilNotice('handled', 2);
  expect(world.noticesOf('dead_lettered')).toEqual([]);
});

test('a queue that nobody declares is waited for', async () => {
  await using world = await startSubscriberWorld();
  const starting = world.subscribe({ declare: 'never', on: { completed: () => {} } });
  expect((await world.untilNotice('unreachable'))[0]?.error).toMatchObject({ code: 'queue_missing' });
  await world.channel.assertQueue(world.queue, { durable: true });
  await starting;
});

test('a temporary queue is bounded, and gone after the stop', async () => {
  await using world = await startSubscriberWorld();
  const subscriber = await world.subscribe({
    queue: { temporary: 'test.watch.' },
    on: { completed: () => {} },
  });
  expect(subscriber.queue).toMatch(/^test\.watch\.[0-9a-f]{16}$/);
  await world.publish([{ job: 'job_1' }]);
  await world.untilNotice('handled');

  await subscriber.stop();

  const connection = await connect(amqpUrl());
  const channel = await connection.createChannel();
  channel.on('error', () => {});
  await expect(channel.checkQueue(subscriber.queue)).rejects.toThrow('NOT_FOUND');
  await connection.close();
});

test('a wrong password and a virtual host that does not exist end the start, and no message shows the password', async () => {
  for (const change of [
    (url: URL) => (url.password = 'wrong-secret'),
    (url: URL) => (url.pathname = '/nowhere'),
  ]) {
    const url = new URL(amqpUrl());
    change(url);
    const refused = await createSubscriber({
      url: url.href,
      queue: 'never.declared',
      on: { completed: () => {} },
      onNotice: () => {},
    }).catch((error: unknown) => error as Error);
    expect(refused).toMatchObject({ name: 'SubscriberError', code: 'access_refused' });
    expect(refused).not.toMatchObject({ message: expect.stringContaining(url.password) as string });
  }
});
