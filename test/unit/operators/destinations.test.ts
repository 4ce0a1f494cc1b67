// Which events a binding key takes, and what a queue's state says about it.

import { describe, expect, test } from 'vitest';
import { receivedBy, together } from '../../../src/operators/destinations/binding-keys.operations.ts';
import type { Binding, Queue } from '../../../src/operators/destinations/broker-answers.operations.ts';
import { depthText, receivedText } from '../../../src/operators/destinations/contract.ts';
import { judge } from '../../../src/operators/destinations/judge.operations.ts';

const EVERYTHING = 'completed, failed, progress of all sources';

test.for([
  ['job.#', EVERYTHING],
  ['#', EVERYTHING],
  ['job.*.*', EVERYTHING],
  ['*.#.*', EVERYTHING],
  ['#.#.#', EVERYTHING],
  ['job.completed.*', 'completed of all sources'],
  ['job.completed.#', 'completed of all sources'],
  ['#.failed.#', 'failed of all sources'],
  ['job.*.team-a', 'completed, failed, progress of team-a'],
  ['job.#.team-a', 'completed, failed, progress of team-a'],
  ['job.progress.team-a', 'progress of team-a'],
  // A source may have the name of a kind.
  ['#.failed', 'completed, failed, progress of failed'],
  ['job.completed', 'nothing'],
  ['job.*', 'nothing'],
  ['jobs.#', 'nothing'],
  ['job.completed.team-a.more', 'nothing'],
  ['job.*.*.*', 'nothing'],
  ['', 'nothing'],
] as const)('the binding key %j takes %s', ([key, taken]) => {
  expect(receivedText({ receives: receivedBy(key, 'job') })).toBe(taken);
});

test('a prefix may have several words', () => {
  expect(receivedText({ receives: receivedBy('eu.job.failed.*', 'eu.job') })).toBe('failed of all sources');
  expect(receivedText({ receives: receivedBy('*.failed.*', 'eu.job') })).toBe('nothing');
  expect(receivedText({ receives: receivedBy('*.*.failed.*', 'eu.job') })).toBe('failed of all sources');
});

test('several keys of one queue are told together', () => {
  const keys = ['job.completed.b', 'job.completed.a', 'job.completed.a', 'job.failed.a', 'job.failed.*'];
  expect(together(keys.flatMap((key) => receivedBy(key, 'job')))).toEqual([
    { kind: 'completed', sources: ['a', 'b'] },
    { kind: 'failed', sources: null },
  ]);
});

test('a key of 255 bytes of wildcards is matched at once', () => {
  const key = Array.from({ length: 127 }, () => '#').join('.');
  expect(receivedText({ receives: receivedBy(`${key}.`, 'job') })).toBe('nothing');
});

const queue = (name: string, rest: Partial<Queue> = {}): Queue => ({
  name,
  type: 'classic',
  policy: null,
  messages: 0,
  messages_ready: 0,
  message_bytes_ready: 0,
  consumers: 1,
  arguments: {},
  effective_policy_definition: {},
  ...rest,
});
const bind = (destination: string, key: string, to: Binding['destination_type'] = 'queue'): Binding => ({
  destination,
  destination_type: to,
  routing_key: key,
});
const judged = (bindings: Binding[], queues: Queue[], sources: string[] = ['a', 'b']) =>
  judge({ bindings, queues }, { routingPrefix: 'job', sources });
const messages = (of: ReturnType<typeof judged>) => of.warnings.map(({ message }) => message);

test('queues that take all, and are consumed, warn of nothing', () => {
  const found = judged([bind('all', 'job.#')], [queue('all'), queue('not.bound', { consumers: 0 })]);
  expect(found.warnings).toEqual([]);
  expect(found.items.map(({ name }) => name)).toEqual(['all']);
});

/** A queue that takes all events, in this state. */
const inState = (rest: Partial<Queue>) => judged([bind('q', 'job.#')], [queue('q', rest)]);
const full = (rest: Partial<Queue>) => messages(inState(rest));
const overflow = (rest: Partial<Queue>) => inState(rest).items[0]?.overflow;
const unread = (waiting: number | null, consumers: number | null = 0) =>
  full({ messages: waiting, consumers });

describe('what no queue gets', () => {
  test('without any queue: each kind', () => {
    expect(messages(judged([], []))).toEqual([
      'no queue is bound for completed events: they are returned',
      'no queue is bound for failed events: they are returned',
      'no queue is bound for progress events: they are returned',
    ]);
  });

  test('the sources that are missing are named, with a limit', () => {
    const sources = Array.from({ length: 30 }, (_, index) => `s${index}`);
    const [warning] = judged(
      [bind('all', 'job.failed.*'), bind('all', 'job.progress.*'), bind('all', 'job.completed.s0')],
      [queue('all')],
      sources,
    ).warnings;
    expect(warning).toMatchObject({ warning: 'no_queue', kind: 'completed', sources: sources.slice(1, 21) });
    expect(warning?.message).toContain('of s1, s2, ');
    expect(warning?.message).toContain('s20 and 9 more: they are returned');
  });

  test('an exchange that is bound to ours counts: where it routes to is its own affair', () => {
    const found = judged([bind('other', 'job.#', 'exchange')], []);
    expect(found.warnings).toEqual([]);
    expect(found.items).toMatchObject([{ name: 'other', what: 'exchange', messages: null, consumers: null }]);
  });
});

describe('a full queue', () => {
  const rejecting = { 'x-overflow': 'reject-publish' };
  const FULL = ['queue q is full and refuses events (overflow=reject-publish)'];

  test('by its own limit, by its policy, or by bytes', () => {
    expect(full({ messages_ready: 5, arguments: { ...rejecting, 'x-max-length': 5 } })).toEqual(FULL);
    expect(
      full({
        messages_ready: 5,
        effective_policy_definition: { 'max-length': 5, overflow: 'reject-publish' },
      }),
    ).toEqual(FULL);
    expect(full({ message_bytes_ready: 9, arguments: { ...rejecting, 'x-max-length-bytes': 9 } })).toEqual(
      FULL,
    );
  });

  test('of two limits the smaller one counts', () => {
    const effective_policy_definition = { 'max-length': 3 };
    const own = { ...rejecting, 'x-max-length': 9 };
    expect(full({ messages_ready: 3, arguments: own, effective_policy_definition })).toEqual(FULL);
    expect(full({ messages_ready: 2, arguments: own, effective_policy_definition })).toEqual([]);
  });

  test('is none below its limit, without one, where it drops the oldest, or where nothing is known', () => {
    expect(full({ messages_ready: 4, arguments: { ...rejecting, 'x-max-length': 5 } })).toEqual([]);
    expect(full({ messages_ready: 4, arguments: rejecting })).toEqual([]);
    expect(full({ messages_ready: 5, arguments: { 'x-max-length': 5 } })).toEqual([]);
    // The queue's own argument goes before the policy.
    expect(
      full({
        messages_ready: 5,
        arguments: { 'x-max-length': 5, 'x-overflow': 'drop-head' },
        effective_policy_definition: { overflow: 'reject-publish' },
      }),
    ).toEqual([]);
    expect(full({ messages_ready: null, arguments: { ...rejecting, 'x-max-length': 5 } })).toEqual([]);
  });
});

test('a queue with a limit and no word on what happens there drops the oldest message, as RabbitMQ does', () => {
  expect(overflow({})).toBeNull();
  expect(overflow({ effective_policy_definition: { 'max-length-bytes': 5 } })).toBe('drop-head');
  expect(overflow({ arguments: { 'x-max-length': 5 } })).toBe('drop-head');
});

test('a queue that nobody consumes says how much waits; one of which nothing is known yet says nothing', () => {
  expect(unread(0)).toEqual(['nobody consumes queue q']);
  expect(unread(1)).toEqual(['nobody consumes queue q, and 1 message waits in it']);
  expect(unread(1_200)).toEqual(['nobody consumes queue q, and 1,200 messages wait in it']);
  expect(unread(null, null)).toEqual([]);
});

test('more destinations and keys than are shown are left out, and that is said', () => {
  const names = Array.from({ length: 501 }, (_, index) => `q${String(index).padStart(3, '0')}`);
  const found = judged(
    [
      ...names.map((name) => bind(name, 'job.#')),
      ...Array.from({ length: 200 }, (_, index) => bind('q000', `${index}`)),
    ],
    [],
  );
  expect(found.hasMore).toBe(true);
  expect(found.items).toHaveLength(500);
  expect(found.items[0]?.binding_keys).toHaveLength(100);
});

test('how full a queue is, with its limit if it has one', () => {
  expect(depthText({ messages: 1_200, max_length: null })).toBe('1,200');
  expect(depthText({ messages: 12, max_length: 1_000 })).toBe('12 of 1,000');
  expect(depthText({ messages: null, max_length: 1_000 })).toBeUndefined();
});
