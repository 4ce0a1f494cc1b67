// Handlers without a broker. What is told here is what the subscriber does: test/service/subscriber has the same cases with a broker.

import { describe, expect, expectTypeOf, test } from 'vitest';
import { KINDS } from '../../../src/event/index.ts';
import {
  type Handlers,
  type MessageDelivery,
  RejectError,
  TimeLimitError,
  UnavailableError,
} from '../../../src/subscriber/index.ts';
import {
  deliver,
  sampleDelivery,
  sampleEvent,
  sampleNotification,
  signedNotification,
} from '../../../src/testing/index.ts';

/** Stands in for a client of Postgres. */
type Client = { readonly query: (text: string, values: unknown[]) => Promise<void> };

function createClient() {
  const queries: unknown[][] = [];
  const client: Client = { query: async (text, values) => void queries.push([text, ...values]) };
  return { client, queries };
}

const bill: Handlers<Client> = {
  completed: async ({ subject, data }, { tx }) => {
    if (data.cost_cents < 0) throw new RejectError('a negative cost');
    await tx.query('insert into bills', [subject, data.cost_cents]);
  },
};

describe('an event', () => {
  test.for(KINDS)('of the kind %s reaches its function alone, with all that a delivery has', async (kind) => {
    const event = sampleEvent({ kind, job: 'job_7', source: 'team-a' });
    const got: [unknown, MessageDelivery][] = [];
    const note = (found: unknown, delivery: MessageDelivery) => got.push([found, delivery]);
    const others = Object.fromEntries(KINDS.map((each) => [each, () => expect.fail(`${each} was called`)]));

    expect(await deliver({ ...others, [kind]: note }, event)).toEqual({ outcome: 'handled' });

    expect(got).toHaveLength(1);
    const [[found, delivery] = []] = got;
    expect(found).toEqual(event);
    expect(delivery).toEqual(sampleDelivery({ event, signal: expect.any(AbortSignal) }));
    expect(delivery).toMatchObject({ messageId: event.id, routingKey: `job.${kind}.team-a`, attempt: 1 });
  });

  test('is handled in the transaction that the test lends', async () => {
    const { client, queries } = createClient();
    const event = sampleEvent({ kind: 'completed', fields: { cost_cents: 250 } });

    expect(await deliver(bill, event, { tx: client })).toEqual({ outcome: 'handled' });

    expect(queries).toEqual([['insert into bills', 'job_sample', 250]]);
  });

  test('of a kind without a function is skipped', async () => {
    const { client } = createClient();
    const event = sampleEvent({ kind: 'failed' });
    expect(await deliver(bill, event, { tx: client })).toEqual({ outcome: 'skipped', reason: 'no_handler' });
  });

  test('comes as a copy of a replay, delivered before', async () => {
    const replay = { id: 'a-replay', by: 'ada' };
    let got: MessageDelivery | undefined;
    const on: Handlers = { completed: (_, delivery) => (got = delivery) };
    await deliver(on, sampleEvent({ kind: 'completed' }), { redelivered: true, replay });
    expect(got).toMatchObject({ redelivered: true, replay });
  });
});

const throwing = (error: unknown): Handlers => ({
  completed: () => {
    throw error;
  },
});

describe('what a handler throws is told as it is', () => {
  const event = sampleEvent({ kind: 'completed' });

  test.for([
    ['rejected', new RejectError('no such customer'), { reason: 'rejected' }],
    ['failed', new Error('the bank is closed'), {}],
    ['failed', 'a text', {}],
    ['unavailable', new UnavailableError('the bank is away'), {}],
  ] as const)('%s', async ([outcome, error, others]) => {
    const delivered = await deliver(throwing(error), event);
    expect(delivered).toEqual({ outcome, error, ...others });
    expect('error' in delivered && delivered.error).toBe(error);
  });

  test('beyond its time its signal aborts, as the subscriber’s does', async () => {
    const on: Handlers = {
      completed: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    };
    const delivered = await deliver(on, event, { timeLimitMs: 1 });
    expect(delivered).toEqual({ outcome: 'failed', error: expect.any(TimeLimitError) });
  });
});

describe('what is no event of these kinds', () => {
  const unknown = { ...sampleEvent({ kind: 'completed' }), type: 'conversion.job.archived' };

  test('is skipped or rejected without a function, as the subscriber would', async () => {
    expect(await deliver({}, unknown)).toEqual({ outcome: 'skipped', reason: 'unknown' });
    expect(await deliver({}, 'no JSON')).toMatchObject({
      outcome: 'rejected',
      reason: 'invalid',
      error: { message: 'the body is not a JSON object' },
    });
  });

  test('goes to the functions unknown and invalid, which decide', async () => {
    const got: unknown[] = [];
    const on: Handlers = {
      unknown: ({ type }, { contentType }) => got.push([type, contentType]),
      invalid: ({ reason }, { body, messageId }) => {
        got.push([reason, Buffer.from(body).toString(), messageId]);
        throw new RejectError('not for us');
      },
    };
    expect(await deliver(on, unknown)).toEqual({ outcome: 'handled' });
    expect(await deliver(on, Buffer.from('[]'))).toMatchObject({ outcome: 'rejected', reason: 'rejected' });
    expect(got).toEqual([
      ['conversion.job.archived', 'application/cloudevents+json'],
      ['type is not a string', '[]', undefined],
    ]);
  });
});

test('a misspelt handler or option is refused, also in plain JavaScript', async () => {
  const event = sampleEvent({ kind: 'completed' });
  const call = deliver as (...given: unknown[]) => Promise<unknown>;
  for (const [on, options, fault] of [
    [{ complete: () => {} }, {}, 'on: Unrecognized key: "complete"'],
    [{ completed: 'bill' }, {}, 'on.completed: must be a function'],
    [bill, { timelimitMs: 5 }, 'options: Unrecognized key: "timelimitMs"'],
    [bill, { replay: 'a-replay' }, 'options.replay: '],
  ] as const) {
    const refused = await call(on, event, options).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(TypeError);
    expect(refused).toMatchObject({ message: expect.stringContaining(fault) as string });
  }
});

test('a handler is called by hand, with any delivery', async () => {
  const { client, queries } = createClient();
  const event = sampleEvent({ kind: 'completed', job: 'job_9' });
  const delivery = sampleDelivery({ event, tx: client, attempt: 3, redelivered: true });
  await bill.completed?.(event, delivery);
  expect(queries).toEqual([['insert into bills', 'job_9', 125]]);
  expect(delivery).toMatchObject({
    messageId: 'default:job_9:completed',
    routingKey: 'job.completed.default',
    attempt: 3,
    redelivered: true,
    replay: undefined,
    failure: undefined,
  });
  expect(JSON.parse(Buffer.from(delivery.body).toString())).toEqual(event);
  expectTypeOf(sampleDelivery()).toEqualTypeOf<MessageDelivery>();
  expectTypeOf(delivery).toEqualTypeOf<MessageDelivery<Client>>();
});

/** The compiler refuses each line below a mark, or the mark itself. Nothing of it runs. */
function calls(): void {
  // @ts-expect-error -- error_code
  sampleEvent({ kind: 'failed', fields: { eror_code: 'TIMEOUT' } });
  // @ts-expect-error -- a failed job has no costs
  sampleNotification({ kind: 'failed', fields: { cost_cents: 1 } });
  // @ts-expect-error -- costs are a number
  signedNotification({ kind: 'completed', secret: 'a secret', fields: { cost_cents: '1' } });
  // @ts-expect-error -- percent
  sampleEvent({ kind: 'progress', precent: 5 });
  // @ts-expect-error -- redelivered
  sampleDelivery({ redeliverd: true });
  // @ts-expect-error -- timeLimitMs
  void deliver({}, sampleEvent({ kind: 'failed' }), { timelimitMs: 5 });
  // @ts-expect-error -- completed
  void deliver({ complete: () => {} }, sampleEvent({ kind: 'completed' }));
  // @ts-expect-error -- the handler needs a client
  void deliver(bill, sampleEvent({ kind: 'completed' }));
  // @ts-expect-error -- a text is no client
  void deliver(bill, sampleEvent({ kind: 'completed' }), { tx: 'a client' });
  sampleEvent({ kind: 'failed', fields: { error_code: 'TIMEOUT' }, otherFields: { anything: 1 } });
  void deliver({ completed: (_, { tx }) => tx.query('', []) }, {}, { tx: createClient().client });
}

test('what is misspelt does not compile', () => {
  expect(calls).toBeTypeOf('function');
});
