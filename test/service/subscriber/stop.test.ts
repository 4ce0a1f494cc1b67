// A stop loses and repeats nothing.

import { expect, test } from 'vitest';
import { promisedMs } from '../../support/patience.ts';
import { startSubscriberWorld } from '../../support/subscribers.ts';
import { pause, until } from '../../support/until.ts';

const LIMIT = { limitMs: 20_000, pollMs: 10 };

test('stopped again and again under load, each event is handled once, and none is lost', async () => {
  await using world = await startSubscriberWorld();
  const ended: string[] = [];
  const start = () =>
    world.subscribe({
      on: {
        progress: async (event) => {
          await pause(1 + (event.data.progress_percentage % 4));
          ended.push(event.id);
        },
      },
    });
  let subscriber = await start();
  const events = Array.from({ length: 600 }, (_, index) => ({
    job: `job_${index % 12}`,
    percent: Math.floor(index / 12),
  }));
  const published = world.publish(events);
  for (const wanted of [50, 150, 250, 350, 450]) {
    await until(`${wanted} are handled`, () => (ended.length >= wanted ? true : undefined), LIMIT);
    await subscriber.stop();
    expect(subscriber.state()).toEqual({ connected: false, standing: 'unknown', running: 0, waiting: 0 });
    subscriber = await start();
  }
  await until('all are handled', () => (ended.length >= events.length ? true : undefined), LIMIT);

  expect(ended.toSorted()).toEqual((await published).toSorted());
  expect(world.noticesOf('duplicate')).toEqual([]);
  expect(await world.depth(`${world.queue}.dead`)).toBe(0);
  for (let job = 0; job < 12; job += 1) {
    const percents = ended
      .filter((id) => id.startsWith(`default:job_${job}:`))
      .map((id) => Number(id.split(':').at(-1)));
    expect(percents).toEqual(Array.from({ length: 50 }, (_, percent) => percent));
  }
});

test('a stop waits for handlers that run, acknowledges their events, and returns the others', async () => {
  await using world = await startSubscriberWorld();
  const begun: string[] = [];
  const gate = Promise.withResolvers<void>();
  const subscriber = await world.subscribe({
    concurrency: 2,
    on: {
      completed: async ({ id }) => {
        begun.push(id);
        await gate.promise;
      },
    },
  });
  const ids = await world.publish(['a', 'b', 'c', 'd'].map((job) => ({ job })));
  await until(
    'all have come',
    () => (subscriber.state().waiting === 2 && begun.length === 2 ? true : undefined),
    LIMIT,
  );

  const stopped = subscriber.stop();
  expect(subscriber.stop()).toBe(stopped);
  gate.resolve();
  await stopped;
  await subscriber.stopped;

  expect(begun).toEqual(ids.slice(0, 2));
  expect(world.noticesOf('stopped')).toMatchObject([{ returned: 2, unfinished: 0, level: 'info' }]);
  await world.untilDepth(world.queue, 2);
  // Those that were returned were not handled: they are no duplicates for the next one.
  await world.subscribe({ on: { completed: ({ id }) => begun.push(id) } });
  await world.untilNotice('handled', 4);
  expect(begun.toSorted()).toEqual(ids);
});

test('all acknowledgements are carried out before the end, although the broker holds many back', async () => {
  await using world = await startSubscriberWorld();
  const [rounds, each] = [4, 400]; // a fast broker may have held back none in one round
  for (let round = 0; round < rounds; round += 1) {
    const gate = Promise.withResolvers<void>();
    const subscriber = await world.subscribe({
      concurrency: each,
      on: { completed: () => gate.promise },
    });
    await world.publish(Array.from({ length: each }, (_, index) => ({ job: `job_${round}_${index}` })));
    await until('all have come', () => (subscriber.state().running === each ? true : undefined), LIMIT);
    gate.resolve(); // so many acknowledgements at once
    await subscriber.stop();
  }

  await world.subscribe({ order: 'queue', on: { completed: () => {} } });
  await world.publish([{ job: 'last' }]);
  await until(
    'the last one is handled',
    () => (world.noticesOf('handled').at(-1)?.id === 'default:last:completed' ? true : undefined),
    LIMIT,
  );
  expect(world.noticesOf('handled')).toHaveLength(rounds * each + 1);
});

test('a handler that does not end before the deadline is aborted, and its event comes again', async () => {
  await using world = await startSubscriberWorld();
  const begun = Promise.withResolvers<void>();
  const subscriber = await world.subscribe({
    stopLimitMs: 50,
    on: {
      completed: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
          begun.resolve();
        }),
    },
  });
  await world.publish([{ job: 'a' }]);
  await begun.promise;

  await subscriber.stop();

  expect(world.noticesOf('stopped')).toMatchObject([{ unfinished: 1, level: 'warn' }]);
  expect(world.noticesOf('retry')).toEqual([]);
  await world.untilDepth(world.queue, 1);
  expect(await world.depth(`${world.queue}.dead`)).toBe(0);
});

test('an event between two attempts is returned by a stop, which does not wait for it', async () => {
  await using world = await startSubscriberWorld();
  const subscriber = await world.subscribe({
    backoff: { firstMs: 60_000, maxMs: 60_000 },
    on: {
      completed: () => {
        throw new Error('not yet');
      },
    },
  });
  await world.publish([{ job: 'a' }]);
  await world.untilNotice('retry');
  const startedMs = performance.now();

  await subscriber.stop();

  expect(performance.now() - startedMs).toBeLessThan(promisedMs(5_000));
  await world.untilDepth(world.queue, 1);
});

test('an AbortSignal and await using stop it; a signal that is aborted already starts nothing', async () => {
  await using world = await startSubscriberWorld();
  const controller = new AbortController();
  const on = { completed: () => {} };
  const subscriber = await world.subscribe({ signal: controller.signal, on });
  controller.abort();
  await subscriber.stopped;
  expect(world.noticesOf('stopped')).toHaveLength(1);

  {
    await using disposed = await world.subscribe({ on });
    expect(disposed.queue).toBe(world.queue);
  }
  expect(world.noticesOf('stopped')).toHaveLength(2);

  const reason = new Error('the program ends');
  await expect(world.subscribe({ signal: AbortSignal.abort(reason), on })).rejects.toBe(reason);
  const waiting = new AbortController();
  const refused = world.subscribe({ url: 'amqp://127.0.0.1:1', signal: waiting.signal, on });
  await world.untilNotice('unreachable');
  waiting.abort(reason);
  await expect(refused).rejects.toBe(reason);
});
