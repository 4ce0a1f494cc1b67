// For tests of webhooks: notifications, a store in memory, and a deliverer.

import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { createAddresses } from '../../src/sandbox/addresses/addresses.ts';
import { createDeliverer, type Deliverer } from '../../src/sandbox/webhooks/deliverer.ts';
import type {
  Attempt,
  Notification,
  NotificationRecord,
  NotificationState,
  NotificationStore,
} from '../../src/sandbox/webhooks/notifications.ts';
import { SECRET } from './sender.ts';
import { waitFor } from './waits.ts';

/** Short delays without jitter, so that tests are fast. */
const FAST_RETRY = {
  maxAttempts: 5,
  firstDelayMs: 20,
  factor: 2,
  maxDelayMs: 100,
  jitter: 0,
} as const;

let made = 0;

export function newNotification(fields: Partial<Notification> = {}): Notification {
  made += 1;
  const jobId = fields.jobId ?? `job_${made}`;
  return {
    id: `notification_${randomUUID()}`,
    accountId: 'account_1',
    jobId,
    kind: 'completed',
    url: 'https://receiver.invalid/webhooks',
    body: Buffer.from(JSON.stringify({ job_id: jobId, status: 'completed', number: made })),
    // Each a millisecond after the one before.
    createdAt: new Date(Date.UTC(2026, 0, 15) + made).toISOString(),
    ...fields,
  };
}

type Row = {
  notification: Notification;
  state: NotificationState;
  dueAtMs: number | null;
  attempts: Attempt[];
};

/** The simplest implementation of a NotificationStore. */
export function createMemoryNotifications(): NotificationStore {
  const rows: Row[] = [];
  const isUntried = (row: Row) => row.state === 'pending' && row.attempts.length === 0;
  const isBlocked = (row: Row) =>
    rows
      .slice(0, rows.indexOf(row))
      .some((earlier) => earlier.notification.jobId === row.notification.jobId && isUntried(earlier));
  const pending = () =>
    rows.filter((row) => row.state === 'pending' && row.dueAtMs !== null && !isBlocked(row));
  const rowOf = (id: string) => rows.find(({ notification }) => notification.id === id);
  const toRecord = ({ notification, state, attempts }: Row): NotificationRecord => ({
    notification,
    state,
    attempts: [...attempts],
  });
  return {
    add: (notification, dueAtMs) => void rows.push({ notification, state: 'pending', dueAtMs, attempts: [] }),
    due: (nowMs, limit) =>
      pending()
        .filter(({ dueAtMs }) => (dueAtMs ?? 0) <= nowMs)
        .toSorted((one, other) => (one.dueAtMs ?? 0) - (other.dueAtMs ?? 0))
        .slice(0, limit)
        .map(({ notification, attempts }) => ({ notification, attempts: attempts.length })),
    nextDueMs: () =>
      pending().reduce<number | undefined>(
        (least, { dueAtMs }) => Math.min(least ?? Number.POSITIVE_INFINITY, dueAtMs ?? 0),
        undefined,
      ),
    record: (attempt, next) => {
      const row = rowOf(attempt.notificationId);
      if (row === undefined) throw new Error('an attempt at an unknown notification');
      row.attempts.push(attempt);
      Object.assign(row, next);
    },
    find: (id) => {
      const row = rowOf(id);
      return row === undefined ? undefined : toRecord(row);
    },
    list: ({ accountId, jobId, limit, before }) => {
      const end =
        before === undefined ? rows.length : rows.findIndex(({ notification }) => notification.id === before);
      return rows
        .slice(0, end)
        .filter(
          ({ notification }) =>
            notification.accountId === accountId && (jobId ?? notification.jobId) === notification.jobId,
        )
        .slice(-limit)
        .toReversed()
        .map(toRecord);
    },
  };
}

type DelivererOptions = Parameters<typeof createDeliverer>[0];

type TestDeliverer = AsyncDisposable & {
  readonly store: NotificationStore;
  readonly deliverer: Deliverer;
  /** Adds it to the store, due at once, and nudges the deliverer. */
  readonly tell: (notification: Notification) => Notification;
  /** Waits until it has this number of attempts or this state, and returns it. */
  readonly until: (
    notification: Notification,
    wanted: NotificationState | number,
  ) => Promise<NotificationRecord>;
};

/** A started deliverer that may send to this machine. Its disposal stops it without a grace time. */
export function startDeliverer(options: Partial<DelivererOptions> = {}): TestDeliverer {
  const store = options.store ?? createMemoryNotifications();
  const own = createAddresses({ allowLocal: true });
  const now = options.now ?? Date.now;
  const deliverer = createDeliverer({
    secretOf: () => SECRET,
    retry: FAST_RETRY,
    timeoutMs: 5_000,
    concurrency: 8,
    random: () => 0.5,
    log: pino({ level: 'silent' }),
    addresses: own,
    ...options,
    now,
    store,
  });
  deliverer.start();
  return {
    store,
    deliverer,
    tell: (notification) => {
      store.add(notification, now());
      deliverer.nudge();
      return notification;
    },
    until: ({ id }, wanted) =>
      waitFor(
        () => {
          const found = store.find(id);
          if (found === undefined) throw new Error('the notification is unknown');
          const isThere =
            typeof wanted === 'number' ? found.attempts.length >= wanted : found.state === wanted;
          if (!isThere)
            throw new Error(`${found.state} after ${found.attempts.length} attempts, not ${wanted}`);
          return found;
        },
        { timeout: 10_000, interval: 5 },
      ),
    [Symbol.asyncDispose]: async () => {
      await deliverer.stop(0);
      await own.close();
    },
  };
}
