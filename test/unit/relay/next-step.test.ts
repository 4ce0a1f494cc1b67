import { expect, test } from 'vitest';
import type { Publication } from '../../../src/relay/publication.ts';
import { nextStep } from '../../../src/relay/next-step.ts';

const live = { attempts: 0 };
const copy = { attempts: 0, replay: { id: 'r', by: 'Ada', queue: null } };
const copyToQueue = { attempts: 0, replay: { id: 'r', by: 'Ada', queue: 'q' } };
const last = { attempts: 2 };

const confirmed: Publication = { result: 'confirmed', durationMs: 1 };
const returned: Publication = { result: 'returned', detail: '', blame: 'event', durationMs: 1 };
const nacked: Publication = { result: 'nacked', detail: '', blame: 'event', durationMs: 1 };
const lost: Publication = { result: 'failed', detail: '', blame: 'broker', durationMs: 1 };
const slow: Publication = { result: 'failed', detail: '', blame: 'route', durationMs: 1 };
const noQueue: Publication = { result: 'failed', detail: '', blame: 'queue', durationMs: 1 };
const closed: Publication = { result: 'failed', detail: '', blame: 'unknown', durationMs: 1 };

test.for([
  ['confirmed', confirmed, false, { live: 'delete', copy: 'delete', copyToQueue: 'delete' }],
  ['returned', returned, false, { live: 'return', copy: 'delete', copyToQueue: 'return' }],
  ['nacked', nacked, false, { live: 'retry', copy: 'retry', copyToQueue: 'retry' }],
  ['lost with the connection', lost, false, { live: 'keep', copy: 'keep', copyToQueue: 'keep' }],
  ['of a slow route', slow, false, { live: 'retry', copy: 'retry', copyToQueue: 'retry' }],
  [
    'for a queue that we may not publish to',
    noQueue,
    false,
    { live: 'keep', copy: 'keep', copyToQueue: 'return' },
  ],
  ['one of those in flight', closed, false, { live: 'keep', copy: 'keep', copyToQueue: 'keep' }],
  ['alone in flight', closed, true, { live: 'retry', copy: 'retry', copyToQueue: 'return' }],
] as const)('what was %s goes on as it has to', ([, publication, alone, expected]) => {
  const options = { alone, maxAttempts: 3 };

  expect({
    live: nextStep(live, publication, options),
    copy: nextStep(copy, publication, options),
    copyToQueue: nextStep(copyToQueue, publication, options),
  }).toEqual(expected);
});

test('a live event whose attempts are used up is parked, and a copy leaves the outbox', () => {
  const options = { alone: false, maxAttempts: 3 };

  expect(nextStep(last, nacked, options)).toBe('park');
  expect(nextStep({ ...copy, ...last }, nacked, options)).toBe('delete');
  expect(nextStep({ ...copyToQueue, ...last }, nacked, options)).toBe('delete');
});

const tried = (attempts: number, maxAttempts: number) =>
  nextStep({ attempts }, nacked, { alone: false, maxAttempts });

test('a nacked event is tried five times at most, since each attempt may be a copy in queues that have room', () => {
  expect([3, 4].map((attempts) => tried(attempts, 20))).toEqual(['retry', 'park']);
  expect([0, 1].map((attempts) => tried(attempts, 2))).toEqual(['retry', 'park']);
});

test('an event of a slow route is never given up', () => {
  expect(nextStep({ attempts: 1_000 }, slow, { alone: true, maxAttempts: 3 })).toBe('retry');
});
