import { expect, test, vi } from 'vitest';
import { backoffMs } from '../../../src/subscriber/backoff.ts';
import { TimeLimitError } from '../../../src/subscriber/errors.ts';
import { createTeller, type Notice } from '../../../src/subscriber/notices.ts';
import { withRetries } from '../../../src/subscriber/retry.ts';
import { withTimeLimit } from '../../../src/subscriber/time-limit.ts';

const never = new AbortController().signal;

test('waits double up to the maximum, and at most half of each is random', () => {
  const backoff = { firstMs: 1_000, maxMs: 30_000 };
  const waits = (random: number) =>
    [1, 2, 3, 4, 5, 6, 100].map((failed) => backoffMs(backoff, failed, random));

  expect(waits(1)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect(waits(0)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
});

test('a result beyond the limit counts if it comes soon; what never ends is given up', async () => {
  const late = withTimeLimit(
    { limitMs: 1, early: never },
    ({ signal }) =>
      new Promise<string>((resolve) => {
        signal.addEventListener('abort', () => resolve('late'));
      }),
  );
  expect(await late).toBe('late');

  const hung = withTimeLimit({ limitMs: 1, early: never, settleMs: 1 }, () => new Promise<never>(() => {}));
  await expect(hung).rejects.toThrow(TimeLimitError);

  const reason = new Error('the subscriber stops');
  const stopped = withTimeLimit(
    { limitMs: 60_000, early: AbortSignal.abort(reason), settleMs: 1 },
    () => new Promise<never>(() => {}),
  );
  await expect(stopped).rejects.toBe(reason);
});

test('an attempt that nobody wants any more is not followed by another one', async () => {
  let attempts = 0;
  const attempted = await withRetries({
    attempts: 5,
    backoff: { firstMs: 1, maxMs: 1 },
    isWanted: () => attempts < 2,
    hurry: never,
    rest: async (wait) => void (await wait),
    run: async () => {
      attempts += 1;
      throw new Error('it fails');
    },
    onRetry: () => {},
  });

  expect(attempted).toEqual({ outcome: 'abandoned' });
  expect(attempts).toBe(2);
});

test('a notice has a level and a line, and a hook that throws does no harm', () => {
  const errors = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const notices: Notice[] = [];
  const tell = createTeller((notice) => notices.push(notice));
  const name = { id: 'a', kind: 'completed', subject: 'job_1', redelivered: false } as const;
  tell({
    type: 'retry',
    ...name,
    attempt: 1,
    counts: true,
    retryInMs: 900,
    error: new AggregateError([new Error('no route')]),
  });
  tell({ type: 'dead_lettered', ...name, reason: 'attempts', error: 'a text' });

  expect(notices.map(({ level, message }) => [level, message])).toEqual([
    ['warn', 'attempt 1 at a failed, the next one is in 900 ms: no route'],
    ['error', 'a was dead-lettered (attempts): a text'],
  ]);
  const failing = createTeller(() => {
    throw new Error('the hook fails');
  });
  expect(() => failing({ type: 'stopping' })).not.toThrow();
  createTeller()({ type: 'lost', error: new Error('cut') }); // without a hook, what is wrong is printed
  createTeller()({ type: 'stopping' });
  expect(errors.mock.calls).toEqual([
    ['tallyhook subscriber: onNotice threw: the hook fails\n'],
    ['tallyhook subscriber: the connection to the broker was lost, connecting again: cut\n'],
  ]);
  errors.mockRestore();
});
