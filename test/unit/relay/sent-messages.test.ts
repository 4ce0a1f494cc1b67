import { expect, test } from 'vitest';
import { createSentMessages } from '../../../src/relay/sent-messages.ts';
import type { Blame, OutgoingMessage, Publication } from '../../../src/relay/publication.ts';

function setUp() {
  const clock = { ms: 1_000 };
  const inFlight = createSentMessages(() => clock.ms);
  const results: [string, Publication][] = [];
  const add = (messageId: string, queue?: string) => {
    const message: OutgoingMessage = {
      messageId,
      routingKey: 'job.completed.default',
      contentType: 'application/json',
      type: 'test',
      timestamp: new Date(0),
      body: Buffer.from('{}'),
      ...(queue === undefined ? {} : { queue }),
    };
    return inFlight.add(message, (publication) => results.push([messageId, publication]));
  };
  return { clock, inFlight, results, add };
}

test('a confirmed message says how long the broker took', () => {
  const { clock, inFlight, results, add } = setUp();
  const sent = add('a');
  clock.ms += 7;
  inFlight.confirm(sent);
  expect(results).toEqual([['a', { result: 'confirmed', durationMs: 7 }]]);
});

test('a message that was returned is settled by its confirm, and the event is blamed', () => {
  const { inFlight, results, add } = setUp();
  const [first, second] = [add('a'), add('b')];
  inFlight.markReturned('b', '312 NO_ROUTE');
  inFlight.confirm(first);
  expect(results).toEqual([['a', { result: 'confirmed', durationMs: 0 }]]);
  inFlight.confirm(second);
  expect(results[1]).toEqual([
    'b',
    { result: 'returned', detail: '312 NO_ROUTE', blame: 'event', durationMs: 0 },
  ]);
});

test('two messages of one id are returned and settled one by one', () => {
  const { inFlight, results, add } = setUp();
  const [first, second] = [add('a'), add('a')];
  inFlight.markReturned('a', 'the first');
  inFlight.markReturned('a', 'the second');
  inFlight.confirm(first);
  inFlight.confirm(second);
  expect(results.map(([, publication]) => publication)).toMatchObject([
    { result: 'returned', detail: 'the first' },
    { result: 'returned', detail: 'the second' },
  ]);
});

test('a return of a message that has its result already changes nothing', () => {
  const { inFlight, results, add } = setUp();
  inFlight.fail(add('a'), 'late', 'event');
  inFlight.markReturned('a', '312 NO_ROUTE');
  expect(results).toHaveLength(1);
});

test('a message gets one result, also if the broker answers after it failed', () => {
  const { inFlight, results, add } = setUp();
  const sent = add('a');
  inFlight.fail(sent, 'confirm overdue', 'event');
  inFlight.confirm(sent);
  inFlight.nack(sent);
  inFlight.failAll('channel closed');
  expect(results).toEqual([
    ['a', { result: 'failed', detail: 'confirm overdue', blame: 'event', durationMs: 0 }],
  ]);
});

test('a nacked message is blamed on its event', () => {
  const { inFlight, results, add } = setUp();
  inFlight.nack(add('a'));
  expect(results).toMatchObject([['a', { result: 'nacked', blame: 'event' }]]);
});

test.for<[number | undefined, Blame, Blame]>([
  [undefined, 'broker', 'broker'],
  [320, 'broker', 'broker'],
  [404, 'broker', 'broker'],
  [406, 'unknown', 'unknown'],
  [501, 'unknown', 'unknown'],
  [403, 'broker', 'queue'],
])(
  'when the channel closes with reply code %s, a message for the exchange is blamed on the %s, one for a queue on the %s',
  ([code, forExchange, forQueue]) => {
    const { inFlight, results, add } = setUp();
    add('a');
    add('b', 'queue');
    inFlight.failAll('closed', code);
    expect(results).toMatchObject([
      ['a', { result: 'failed', detail: 'closed', blame: forExchange }],
      ['b', { result: 'failed', detail: 'closed', blame: forQueue }],
    ]);
  },
);

test('only messages past the deadline are overdue, and a broker that was blocked gets the full time again', () => {
  const { clock, inFlight, add } = setUp();
  const first = add('a');
  clock.ms += 60;
  const second = add('b');
  clock.ms += 50;
  expect(inFlight.overdue(100)).toEqual([first]);
  inFlight.restartDeadlines();
  expect(inFlight.overdue(100)).toEqual([]);
  clock.ms += 101;
  expect(inFlight.overdue(100)).toEqual([first, second]);
});

test('the broker answers as long as a confirm or a nack came within the time, or it was blocked until then', () => {
  const { clock, inFlight, add } = setUp();
  expect(inFlight.hasAnswered()).toBe(false);
  clock.ms += 100;
  expect(inFlight.isAnswered(100)).toBe(false);
  inFlight.nack(add('a'));
  expect(inFlight.isAnswered(100)).toBe(true);
  expect(inFlight.hasAnswered()).toBe(true);
  clock.ms += 100;
  expect(inFlight.isAnswered(100)).toBe(false);
  inFlight.restartDeadlines();
  expect(inFlight.isAnswered(100)).toBe(true);
});

test('a message is passed over when a later one was answered, and not when it is only late', () => {
  const { clock, inFlight, add } = setUp();
  const first = add('a');
  clock.ms += 1;
  const second = add('b');
  clock.ms += 1;
  const third = add('c');
  clock.ms += 100;
  expect(inFlight.passedOver(50)).toEqual([]);
  inFlight.confirm(second);
  expect(inFlight.passedOver(50)).toEqual([first]);
  expect(inFlight.overdue(50)).toEqual([first, third]);
});

const refusalOf = (key: string) =>
  `access to topic '${key}' in exchange 'x' in vhost '/' refused for user 'y'`;

test('when the account may not use a routing key, its messages alone are blamed on their route', () => {
  const { inFlight, results, add } = setUp();
  add('a');
  inFlight.failAll(refusalOf('job.completed.default'), 403);
  add('b');
  inFlight.failAll(refusalOf('job.failed.default'), 403);
  expect(results.map(([, publication]) => publication)).toMatchObject([
    { blame: 'route' },
    { blame: 'broker' },
  ]);
});

test('it is nacked until a message of the same route is confirmed', () => {
  const { inFlight, add } = setUp();
  const [first, other, second] = [add('a'), add('b', 'billing'), add('c')];
  expect(inFlight.isNacked()).toBe(false);
  inFlight.nack(first);
  expect(inFlight.isNacked()).toBe(true);
  inFlight.confirm(other);
  expect(inFlight.isNacked()).toBe(true);
  inFlight.confirm(second);
  expect(inFlight.isNacked()).toBe(false);
});
