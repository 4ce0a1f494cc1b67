// Makes one attempt at a notification: signs it, posts it, and records the result and what follows from it. Adds the
// trouble that `chaos` asks for.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../base/log/log.ts';
import type { Addresses } from '../addresses/addresses.ts';
import { type Chaos, createTrouble, NO_CHAOS, type SignedBody } from './chaos.ts';
import type { NextStep, Notification, NotificationState, NotificationStore } from './notifications.ts';
import { type Answer, post } from './post.ts';
import { type RetryPlan, retryDelayMs } from './retry.ts';

/** A job has at most ten progress events and one for its end; rounded up. */
export const NOTIFICATIONS_PER_JOB = 16;
/** How long a reordered notification waits for the next one of its job. Progress comes once a second. */
const REORDER_WAIT_MS = 2_000;

export type Due = {
  readonly notification: Notification;
  /** Made so far. */
  readonly attempts: number;
  readonly state: NotificationState;
};

export type SendingPlan = { readonly retry: RetryPlan; readonly timeoutMs: number };

export type SenderOptions = {
  readonly store: NotificationStore;
  readonly addresses: Pick<Addresses, 'fault' | 'dispatcher'>;
  readonly secretOf: (accountId: string) => string;
  readonly retry: RetryPlan;
  /** For the whole exchange. */
  readonly timeoutMs: number;
  /** What an account has instead of `retry` and `timeoutMs`. */
  readonly planOf?: ((accountId: string) => SendingPlan | undefined) | undefined;
  /** Exchanges at a time. */
  readonly concurrency: number;
  readonly chaos?: Chaos | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 ≤ random < 1, for jitter and chaos. */
  readonly random: () => number;
  readonly log: Logger;
};

/**
 * `stopping` begins no further exchange; `cut` also ends the current one, which is recorded as `interrupted`.
 * @returns a function that rejects if the attempt cannot be made or recorded.
 */
export function createSender(
  options: SenderOptions,
  { stopping, cut }: { stopping: AbortSignal; cut: AbortSignal },
): (due: Due) => Promise<void> {
  const { store, addresses, secretOf, concurrency, now, random, log } = options;
  const trouble = createTrouble({ chaos: options.chaos ?? NO_CHAOS, random });

  async function attempt({ notification, attempts, state }: Due): Promise<void> {
    await sleepUnless(stopping, trouble.delayMs());
    if (stopping.aborted) return;
    const content = trouble.sign(secretOf(notification.accountId), notification.body);
    const startedAt = new Date(now()).toISOString();
    const answer = await exchange(notification, content);
    const { id, jobId, kind } = notification;
    const number = attempts + 1;
    const next = nextStep(answer, { notification, attempts: number, state });
    store.record({ notificationId: id, attempt: number, startedAt, ...answer }, next);
    log.info(
      { notification: id, job: jobId, kind, attempt: number, ...answer, state: next.state },
      'webhook',
    );
    await sendCopies(notification, content, trouble.copies());
  }

  function planOf({ accountId }: Notification): SendingPlan {
    return options.planOf?.(accountId) ?? { retry: options.retry, timeoutMs: options.timeoutMs };
  }

  function exchange(notification: Notification, content: SignedBody): Promise<Answer> {
    const { timeoutMs } = planOf(notification);
    return post({ addresses, url: notification.url, content, timeoutMs, signal: cut });
  }

  /** `attempts` includes the one that `answer` belongs to. */
  function nextStep(answer: Answer, { notification, attempts, state }: Due): NextStep {
    if (isAcknowledged(answer)) return { state: 'delivered', dueAtMs: null };
    if (state !== 'pending') return { state, dueAtMs: null };
    if (answer.error === 'interrupted') return { state, dueAtMs: now() };
    const { retry } = planOf(notification);
    if (attempts >= retry.maxAttempts) return { state: 'given_up', dueAtMs: null };
    return { state, dueAtMs: now() + retryDelayMs(retry, attempts, random()) };
  }

  /** Sends the same bytes with the same signature again. Copies are not attempts: their results are not recorded. */
  async function sendCopies(notification: Notification, content: SignedBody, copies: number): Promise<void> {
    let left = copies;
    const sendSome = async () => {
      while (left > 0 && !stopping.aborted) {
        left -= 1;
        await exchange(notification, content);
      }
    };
    await Promise.all(Array.from({ length: Math.min(copies, concurrency) }, sendSome));
  }

  /** Waits a while for the job's next notification that has had no attempt. */
  async function waitForNext({ id, accountId, jobId, createdAt }: Notification): Promise<Due | undefined> {
    await sleepUnless(stopping, REORDER_WAIT_MS);
    const next = store
      .list({ accountId, jobId, limit: NOTIFICATIONS_PER_JOB })
      .findLast(
        ({ notification, state, attempts }) =>
          notification.id !== id &&
          notification.createdAt >= createdAt &&
          state === 'pending' &&
          attempts.length === 0,
      );
    return next && { ...next, attempts: 0 };
  }

  return async (due) => {
    const next =
      due.attempts === 0 && trouble.isReordered() ? await waitForNext(due.notification) : undefined;
    if (next !== undefined) await attempt(next);
    await attempt(due);
  };
}

/** Ends early when `signal` is aborted. */
export async function sleepUnless(signal: AbortSignal, ms: number): Promise<void> {
  if (ms <= 0) return;
  await sleep(ms, undefined, { signal }).catch(() => {});
}

function isAcknowledged({ httpStatus, error }: Answer): boolean {
  return error === null && httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
}
