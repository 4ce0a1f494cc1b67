// The order of a job's events, and what runs at the same time.

import { expect, test } from 'vitest';
import type { ConversionEvent } from '../../../src/event/index.ts';
import { startSubscriberWorld } from '../../support/subscribers.ts';
import { pause, until } from '../../support/until.ts';

const LIMIT = { limitMs: 20_000, pollMs: 10 };
const PERCENTS = [10, 20, 30, 40, 50, 60, 70, 80, 90];
const JOBS = ['job_1', 'job_2', 'job_3'];

/** Events of several jobs, mixed. The earlier one of a job takes longer, so that a handler without lanes ends in reverse order. */
const mixed = PERCENTS.flatMap((percent) => JOBS.map((job) => ({ job, percent })));
const percentOf = (event: ConversionEvent) => event.data.progress_percentage;
const slowly = (event: ConversionEvent) => pause(30 - Math.floor(percentOf(event) / 4));

test('a job keeps its order with an asynchronous handler, while other jobs run at the same time', async () => {
  await using world = await startSubscriberWorld();
  const ended = new Map<string, number[]>();
  const open = new Map<string, number>();
  let together = 0;
  await world.subscribe({
    on: {
      progress: async (event) => {
        open.set(event.subject, (open.get(event.subject) ?? 0) + 1);
        expect(open.get(event.subject)).toBe(1);
        together = Math.max(together, [...open.values()].filter((count) => count > 0).length);
        await slowly(event);
        open.set(event.subject, 0);
        ended.set(event.subject, [...(ended.get(event.subject) ?? []), percentOf(event)]);
      },
    },
  });

  await world.publish(mixed);

  await world.untilNotice('handled', mixed.length);
  for (const job of JOBS) expect(ended.get(job)).toEqual(PERCENTS);
  expect(together).toBe(JOBS.length);
  expect(world.noticesOf('retry')).toEqual([]);
});

test('two subscribers of one queue keep it, too: one works, and the other one takes over when that stops', async () => {
  await using world = await startSubscriberWorld();
  const ended: string[] = [];
  const by = { first: 0, second: 0 };
  const start = (name: 'first' | 'second') =>
    world.subscribe({
      prefetch: 5,
      on: {
        progress: async (event) => {
          by[name] += 1;
          await slowly(event);
          ended.push(event.id);
        },
      },
    });
  const first = await start('first');
  const second = await start('second');
  expect(world.noticesOf('connected').map(({ otherConsumers }) => otherConsumers)).toEqual([0, 1]);
  expect(await world.untilNotice('standby')).toMatchObject([
    { queue: world.queue, otherConsumers: 1, level: 'info' },
  ]);
  // None has come yet, so the first one does not know.
  expect([first.state().standing, second.state().standing]).toEqual(['unknown', 'standby']);

  const ids = await world.publish(mixed);
  await until('some are handled', () => (ended.length > 5 ? true : undefined), LIMIT);
  expect(by.second).toBe(0);
  expect([first.state().standing, second.state().standing]).toEqual(['active', 'standby']);
  await first.stop(); // in the middle of its work
  await until('all are handled', () => (ended.length >= ids.length ? true : undefined), LIMIT);
  expect(world.noticesOf('active')).toMatchObject([{ queue: world.queue }]);
  expect([first.state().standing, second.state().standing]).toEqual(['unknown', 'active']);
  await second.stop();

  expect(by.second).toBeGreaterThan(0);
  for (const job of JOBS) {
    const ofJob = (all: readonly string[]) => all.filter((id) => id.includes(`:${job}:`));
    expect(ofJob(ended)).toEqual(ofJob(ids)); // each once, in order
  }
});

test('with the order of the queue one event is handled at a time', async () => {
  await using world = await startSubscriberWorld();
  const ended: string[] = [];
  await world.subscribe({
    order: 'queue',
    on: {
      progress: async (event) => {
        await slowly(event);
        ended.push(event.id);
      },
    },
  });

  const ids = await world.publish(mixed.slice(0, 9));

  await world.untilNotice('handled', 9);
  expect(ended).toEqual(ids);
});

test('without an order two subscribers work at once, and so do events of one job', async () => {
  await using world = await startSubscriberWorld();
  const working = new Set<string>();
  const both = Promise.withResolvers<void>();
  const start = (name: string) =>
    world.subscribe({
      order: 'none',
      prefetch: 2,
      concurrency: 2,
      on: {
        progress: async (_, delivery) => {
          working.add(`${name} ${delivery.routingKey} ${delivery.messageId}`);
          if (working.size === 4) both.resolve();
          await both.promise;
        },
      },
    });
  await start('first');
  await start('second');

  await world.publish([1, 2, 3, 4].map((percent) => ({ job: 'job_1', percent })));

  await world.untilNotice('handled', 4);
  expect(world.noticesOf('standby')).toEqual([]);
  expect([...working].filter((name) => name.startsWith('first'))).toHaveLength(2);
});
