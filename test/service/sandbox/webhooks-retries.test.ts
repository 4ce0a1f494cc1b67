import { randomUUID } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { IN_MEMORY, openDatabase } from '../../../src/sandbox/store/database.ts';
import { createNotificationStore } from '../../../src/sandbox/store/notifications.ts';
import { WEBHOOK_TIMEOUT_MS } from '../../../src/sandbox/webhooks/deliverer.ts';
import { DEFAULT_RETRY, retryDelayMs } from '../../../src/sandbox/webhooks/retry.ts';
import { createFolder } from '../../support/folder.ts';
import { createMemoryNotifications, newNotification, startDeliverer } from '../../support/notifications.ts';
import { answer, hang, startReceiver } from '../../support/receiver.ts';
import { promisedMs } from '../../support/patience.ts';

const STORES = [
  { kept: 'in a plain list', createStore: createMemoryNotifications },
  { kept: 'in SQLite', createStore: () => createNotificationStore(openDatabase(IN_MEMORY)) },
];

/** In seconds, after each of nine attempts. */
const delays = (random: number) =>
  Array.from({ length: 9 }, (_, index) => retryDelayMs(DEFAULT_RETRY, index + 1, random) / 1_000);

test('a receiver has 10 seconds: an answer after 11 is too late, and the notification comes again', async () => {
  await using receiver = await startReceiver((response, _received, index) => {
    setTimeout(() => response.writeHead(200).end(), index === 0 ? 11_000 : 0);
  });
  await using sandbox = startDeliverer({ timeoutMs: WEBHOOK_TIMEOUT_MS });
  const notification = sandbox.tell(newNotification({ url: receiver.url }));
  // `until` waits for 10 s at most, which is exactly the receiver's time.
  await sandbox.until(notification, 1).catch(() => {});

  const { attempts } = await sandbox.until(notification, 'delivered');

  expect(attempts.map(({ httpStatus, error }) => [httpStatus, error])).toEqual([
    [null, 'timeout'],
    [200, null],
  ]);
  expect(attempts[0]?.durationMs).toBeGreaterThanOrEqual(9_990);
  expect(attempts[0]?.durationMs).toBeLessThan(promisedMs(11_000));
});

test('the delays are the ones of the table, jitter takes off a part and never adds', () => {
  expect(delays(0)).toEqual([1, 3, 9, 27, 81, 243, 300, 300, 300]);
  expect(delays(0.999_999)).toEqual([0.75, 2.25, 6.75, 20.25, 60.75, 182.25, 225, 225, 225]);
  expect(retryDelayMs(DEFAULT_RETRY, 10_000, 0)).toBe(300_000);
  expect(retryDelayMs({ ...DEFAULT_RETRY, jitter: 0 }, 2, 0.9)).toBe(3_000);
});

describe.each(STORES)('with notifications kept $kept', ({ createStore }) => {
  test('a receiver that fails three times, then answers, then hangs, gets each notification acknowledged once', async () => {
    await using receiver = await startReceiver((response, _received, index) => {
      if (index < 3) response.writeHead([500, 503, 429][index] ?? 500).end();
      else if (index === 4) hang(response, _received, index);
      else response.writeHead(202).end('{"outcome":"accepted"}');
    });
    await using sandbox = startDeliverer({ store: createStore(), timeoutMs: 1_000 });

    const first = sandbox.tell(newNotification({ url: receiver.url }));
    const told = await sandbox.until(first, 'delivered');
    const second = sandbox.tell(newNotification({ url: receiver.url }));
    const toldLate = await sandbox.until(second, 'delivered');

    expect(told.attempts.map(({ attempt, httpStatus, error }) => [attempt, httpStatus, error])).toEqual([
      [1, 500, null],
      [2, 503, null],
      [3, 429, null],
      [4, 202, null],
    ]);
    expect(toldLate.attempts.map(({ attempt, httpStatus, error }) => [attempt, httpStatus, error])).toEqual([
      [1, null, 'timeout'],
      [2, 202, null],
    ]);
    expect(toldLate.attempts[0]?.durationMs).toBeGreaterThanOrEqual(995);
    expect(receiver.received).toHaveLength(6);
    expect(new Set(receiver.received.slice(0, 4).map(({ body }) => body.toString())).size).toBe(1);
  });

  test('retries come by the schedule, and after the last one the notification is given up', async () => {
    let clockMs = Date.UTC(2026, 0, 15);
    const beganMs = clockMs;
    const retry = { ...DEFAULT_RETRY, jitter: 0 };
    await using receiver = await startReceiver(answer(500));
    await using sandbox = startDeliverer({ store: createStore(), retry, now: () => clockMs });
    const notification = sandbox.tell(newNotification({ url: receiver.url }));

    for (let attempt = 1; attempt < retry.maxAttempts; attempt++) {
      await sandbox.until(notification, attempt);
      const dueAtMs = sandbox.store.nextDueMs() ?? 0;
      clockMs = dueAtMs - 1;
      expect(sandbox.store.due(clockMs, 10)).toEqual([]);
      clockMs = dueAtMs;
      sandbox.deliverer.nudge();
    }

    const { attempts } = await sandbox.until(notification, 'given_up');
    expect(attempts.map(({ startedAt }) => (Date.parse(startedAt) - beganMs) / 1_000)).toEqual([
      0, 1, 4, 13, 40, 121, 364, 664,
    ]);
    expect(sandbox.store.nextDueMs()).toBeUndefined();
  });

  test('a retry that is due in a while goes by itself, without a nudge', async () => {
    await using receiver = await startReceiver(answer(500, 500, 200));
    await using sandbox = startDeliverer({
      store: createStore(),
      retry: { maxAttempts: 5, firstDelayMs: 150, factor: 1, maxDelayMs: 150, jitter: 0 },
    });

    await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'delivered');

    const [first, second, third] = receiver.received.map(({ atMs }) => atMs);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(145);
    expect((third ?? 0) - (second ?? 0)).toBeGreaterThanOrEqual(145);
  });

  test('a redelivery is one attempt more, whatever became of the notification', async () => {
    await using receiver = await startReceiver(answer(500, 500, 200, 500, 204));
    await using sandbox = startDeliverer({
      store: createStore(),
      retry: { maxAttempts: 2, firstDelayMs: 10, factor: 1, maxDelayMs: 10, jitter: 0 },
    });
    const notification = sandbox.tell(newNotification({ url: receiver.url }));
    await sandbox.until(notification, 'given_up');

    expect(sandbox.deliverer.redeliver(notification.id)).toBe(true);
    expect((await sandbox.until(notification, 3)).state).toBe('delivered');
    expect(sandbox.deliverer.redeliver(notification.id)).toBe(true);
    expect(await sandbox.until(notification, 4)).toMatchObject({ state: 'delivered' });
    expect(sandbox.deliverer.redeliver(notification.id)).toBe(true);
    const { state, attempts } = await sandbox.until(notification, 5);

    expect(state).toBe('delivered');
    expect(attempts.map(({ httpStatus }) => httpStatus)).toEqual([500, 500, 200, 500, 204]);
    expect(new Set(receiver.received.map(({ body }) => body.toString())).size).toBe(1);
    expect(sandbox.deliverer.redeliver('notification_of_nobody')).toBe(false);
  });

  test('a redelivery of a notification that waits does not wait, and two at once are one', async () => {
    await using receiver = await startReceiver(answer(500, 200));
    await using sandbox = startDeliverer({
      store: createStore(),
      retry: { maxAttempts: 5, firstDelayMs: 600_000, factor: 1, maxDelayMs: 600_000, jitter: 0 },
    });
    const notification = sandbox.tell(newNotification({ url: receiver.url }));
    await sandbox.until(notification, 1);

    sandbox.deliverer.redeliver(notification.id);
    sandbox.deliverer.redeliver(notification.id);
    await sandbox.until(notification, 'delivered');
    const last = sandbox.tell(newNotification({ url: receiver.url }));
    await sandbox.until(last, 'delivered');

    expect(sandbox.store.find(notification.id)?.attempts).toHaveLength(2);
  });
});

test('redeliveries that wait are bounded', async () => {
  await using receiver = await startReceiver(hang);
  await using sandbox = startDeliverer({ concurrency: 1 });
  sandbox.tell(newNotification({ url: receiver.url }));
  await receiver.untilReceived(1);
  const others = Array.from({ length: 1_001 }, () => newNotification({ url: receiver.url }));
  for (const other of others) sandbox.store.add(other, Date.now());

  const askForAll = () => {
    for (const { id } of others) sandbox.deliverer.redeliver(id);
  };

  expect(askForAll).toThrow('too many redeliveries are waiting');
});

test('what was waiting for its next attempt is sent after a restart', async () => {
  await using folder = await createFolder();
  await using receiver = await startReceiver(answer(500, 200));
  const retry = { maxAttempts: 5, firstDelayMs: 50, factor: 1, maxDelayMs: 50, jitter: 0 };
  const notification = newNotification({ url: receiver.url, id: `notification_${randomUUID()}` });
  const before = openDatabase(folder.path('sandbox.db'));
  {
    await using sandbox = startDeliverer({ store: createNotificationStore(before), retry });
    sandbox.tell(notification);
    await sandbox.until(notification, 1);
  }
  before.close();

  const after = openDatabase(folder.path('sandbox.db'));
  {
    await using sandbox = startDeliverer({ store: createNotificationStore(after), retry });
    const { attempts } = await sandbox.until(notification, 'delivered');

    expect(attempts.map(({ attempt, httpStatus }) => [attempt, httpStatus])).toEqual([
      [1, 500],
      [2, 200],
    ]);
  }
  after.close();
});

test('an attempt that a stop cuts off is recorded, and due at once after the restart', async () => {
  await using receiver = await startReceiver((response, received, index) =>
    index === 0 ? hang(response, received, index) : answer(200)(response, received, index),
  );
  const store = createMemoryNotifications();
  const retry = { maxAttempts: 5, firstDelayMs: 600_000, factor: 1, maxDelayMs: 600_000, jitter: 0 };
  const notification = newNotification({ url: receiver.url });
  {
    await using sandbox = startDeliverer({ store, retry });
    sandbox.tell(notification);
    await receiver.untilReceived(1);
    await sandbox.deliverer.stop(50);
    expect(store.find(notification.id)).toMatchObject({
      state: 'pending',
      attempts: [{ error: 'interrupted' }],
    });
  }

  await using again = startDeliverer({ store });
  await again.until(notification, 'delivered');

  expect(receiver.received).toHaveLength(2);
});

test('an attempt that was never recorded, as after a crash, is made again under its number', async () => {
  await using receiver = await startReceiver();
  const store = createMemoryNotifications();
  const notification = newNotification({ url: receiver.url });
  const crash = vi.fn<() => never>(() => {
    throw new Error('the program died here');
  });
  {
    await using sandbox = startDeliverer({ store: { ...store, record: crash } });
    sandbox.tell(notification);
    await receiver.untilReceived(1);
  }
  await using again = startDeliverer({ store });
  const { attempts } = await again.until(notification, 'delivered');

  expect(attempts.map(({ attempt }) => attempt)).toEqual([1]);
  expect(receiver.received).toHaveLength(2);
});

test('a stop waits for the answer that is under way, and nothing begins after it', async () => {
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>();
  await using receiver = await startReceiver((response) => {
    void allowed.then(() => response.writeHead(200).end());
  });
  await using sandbox = startDeliverer({ concurrency: 1 });
  const first = sandbox.tell(newNotification({ url: receiver.url }));
  await receiver.untilReceived(1);
  const second = sandbox.tell(newNotification({ url: receiver.url }));

  const stopped = sandbox.deliverer.stop(5_000);
  allow();
  await stopped;

  expect(sandbox.store.find(first.id)?.state).toBe('delivered');
  expect(sandbox.store.find(second.id)).toMatchObject({ state: 'pending', attempts: [] });
  sandbox.deliverer.nudge();
  sandbox.deliverer.start();
  await sandbox.deliverer.stop(0);
  expect(receiver.received).toHaveLength(1);
});

test('a store that cannot record does not make the receiver suffer a hot loop', async () => {
  await using receiver = await startReceiver();
  const store = createMemoryNotifications();
  let refusals = 1;
  const record: typeof store.record = (attempt, next) => {
    if (refusals-- > 0) throw new Error('the disk is full');
    store.record(attempt, next);
  };
  await using sandbox = startDeliverer({ store: { ...store, record } });

  await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'delivered');

  const [first, second] = receiver.received.map(({ atMs }) => atMs);
  expect(receiver.received).toHaveLength(2);
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(950);
});

test('a store that cannot be read is asked again', async () => {
  await using receiver = await startReceiver();
  const store = createMemoryNotifications();
  let refusals = 1;
  const due: typeof store.due = (nowMs, limit) => {
    if (refusals-- > 0) throw new Error('the file is locked');
    return store.due(nowMs, limit);
  };
  await using sandbox = startDeliverer({ store: { ...store, due } });

  const { attempts } = await sandbox.until(sandbox.tell(newNotification({ url: receiver.url })), 'delivered');

  expect(attempts).toHaveLength(1);
});
