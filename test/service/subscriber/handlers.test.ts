// Which function gets what, and what becomes of events that are not handled.

import { expect, expectTypeOf, test } from 'vitest';
import type { ConversionCompleted, ConversionFailed } from '../../../src/event/index.ts';
import { createSubscriber, type MessageDelivery, RejectError } from '../../../src/subscriber/index.ts';
import { sampleEvent } from '../../../src/testing/index.ts';
import { startSubscriberWorld } from '../../support/subscribers.ts';

test('each kind goes to its function, with its type; the queue is bound to these kinds and sources alone', async () => {
  await using world = await startSubscriberWorld();
  const got: string[] = [];
  await world.subscribe({
    sources: ['default', 'team-a'],
    on: {
      completed: (event, delivery) => {
        expectTypeOf(event).toEqualTypeOf<ConversionCompleted>();
        expectTypeOf(delivery.tx).toEqualTypeOf<undefined>();
        got.push(`${event.id} ${event.data.cost_cents}`);
      },
      failed: (event) => {
        expectTypeOf(event).toEqualTypeOf<ConversionFailed>();
        got.push(`${event.id} ${event.data.error_code}`);
      },
    },
  });

  await world.publish([
    { job: 'job_1' },
    { job: 'job_2', kind: 'failed', source: 'team-a' },
    { job: 'job_3', source: 'team-b' }, // not bound
    { job: 'job_4', percent: 10 }, // not bound
    { job: 'job_5' },
  ]);

  await world.untilNotice('handled', 3);
  expect(got.toSorted()).toEqual([
    'default:job_1:completed 125',
    'default:job_5:completed 125',
    'team-a:job_2:failed INVALID_INPUT',
  ]);
  expect(world.noticesOf('skipped')).toEqual([]);
  await world.untilDepth(world.queue, 0);
});

test('a function hears how its event was delivered: attempt, replay, routing key, body, and a signal', async () => {
  await using world = await startSubscriberWorld();
  const deliveries: MessageDelivery[] = [];
  await world.subscribe({
    on: {
      completed: (_, delivery) => {
        deliveries.push(delivery);
        if (delivery.attempt === 1) throw new Error('not yet');
      },
    },
  });

  await world.publish([{ job: 'job_1' }], { replay: { id: 'replay-1', by: 'ops' } });

  await world.untilNotice('handled');
  expect(deliveries.map(({ attempt }) => attempt)).toEqual([1, 2]);
  expect(deliveries[1]).toMatchObject({
    messageId: 'default:job_1:completed',
    routingKey: 'job.completed.default',
    contentType: 'application/cloudevents+json',
    redelivered: false,
    replay: { id: 'replay-1', by: 'ops' },
  });
  expect(JSON.parse(Buffer.from(deliveries[1]?.body ?? []).toString('utf8'))).toMatchObject({
    subject: 'job_1',
  });
  expect(deliveries[1]?.signal.aborted).toBe(false);
});

test('a kind without a function, and a type that is not known, are acknowledged; what is no event is dead-lettered', async () => {
  await using world = await startSubscriberWorld();
  await world.subscribe({ bindings: ['job.#'], on: { completed: () => {} } });
  const unknown = { ...sampleEvent({ kind: 'completed' }), type: 'conversion.job.archived' };
  const newer = {
    ...sampleEvent({ kind: 'completed' }),
    dataschema: 'urn:tallyhook:schema:conversion.job.completed:2',
  };

  await world.publish([{ job: 'job_1', percent: 10 }]);
  await world.publishRaw('job.archived.default', unknown, 'a');
  await world.publishRaw('job.completed.default', newer, 'b');
  await world.publishRaw('job.completed.default', 'no JSON', 'c');
  await world.publishRaw(
    'job.completed.default',
    { ...unknown, type: 'conversion.job.completed', data: {} },
    'd',
  );

  await world.untilDepth(`${world.queue}.dead`, 2);
  expect(world.noticesOf('skipped')).toMatchObject([
    { id: 'default:job_1:processing:10', reason: 'no_handler', eventType: 'conversion.job.progress' },
    { id: 'a', kind: 'unknown', reason: 'unknown', level: 'warn' },
    { id: 'b', kind: 'unknown', reason: 'unknown' },
  ]);
  expect(world.noticesOf('dead_lettered')).toMatchObject([
    { id: 'c', kind: 'invalid', reason: 'invalid', level: 'error' },
    { id: 'd', kind: 'invalid', reason: 'invalid' },
  ]);
  await world.untilDepth(world.queue, 0);
});

test('functions for unknown and invalid messages get them, and decide', async () => {
  await using world = await startSubscriberWorld();
  const got: unknown[] = [];
  await world.subscribe({
    bindings: ['job.#'],
    on: {
      unknown: ({ type }, { messageId }) => got.push([type, messageId]),
      invalid: ({ reason }, { messageId, body }) => {
        got.push([reason, messageId]);
        if (body.length > 10) throw new RejectError('too long');
      },
    },
  });

  await world.publishRaw('job.x', { type: 'conversion.job.archived', dataschema: 'x' }, 'a');
  await world.publishRaw('job.y', 'short', 'b');
  await world.publishRaw('job.y', 'longer than that', 'c');

  await world.untilDepth(`${world.queue}.dead`, 1);
  expect(got).toEqual([
    ['conversion.job.archived', 'a'],
    ['the body is not a JSON object', 'b'],
    ['the body is not a JSON object', 'c'],
  ]);
  expect(world.noticesOf('handled')).toMatchObject([
    { id: 'a', kind: 'unknown' },
    { id: 'b', kind: 'invalid' },
  ]);
});

test('options that are wrong are refused at once, all of them, without a value', async () => {
  const options = {
    url: 'http://me:secret@127.0.0.1',
    queue: '',
    prefech: 10,
    concurrency: 0,
    sources: ['Team A'],
    on: { complete: () => {} },
  };

  const refusal = createSubscriber(options as never);

  await expect(refusal).rejects.toThrow(TypeError);
  const { message } = (await refusal.catch((error: unknown) => error)) as Error;
  for (const name of ['url', 'queue', 'prefech', 'concurrency', 'sources.0', 'complete'])
    expect(message).toContain(name);
  expect(message).not.toContain('secret');
  await expect(createSubscriber({ url: 'amqp://127.0.0.1', queue: 'a', on: {} })).rejects.toThrow(
    'has no function for any kind',
  );
});
