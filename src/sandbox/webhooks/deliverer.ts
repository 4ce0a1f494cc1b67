// Decides which notification is sent when. Guarantees:
// - One notification of a job at a time; first attempts in the order of creation.
// - At least one attempt of each, also after restarts and crashes: what is not recorded is due again.
// - A bounded number of exchanges at a time. A slow receiver delays its own job only, as long as there are free slots.
//
// A slot is taken for one turn: a delay (chaos), one attempt, its record, and copies (chaos).

import { describeError, UnavailableError } from '../../base/errors.ts';
import { createSender, type Due, NOTIFICATIONS_PER_JOB, type SenderOptions, sleepUnless } from './sender.ts';

/** A receiver must answer within this time (service interface 6.1 and 8). */
export const WEBHOOK_TIMEOUT_MS = 10_000;

export type Deliverer = {
  readonly start: () => void;
  /** A hint that a notification was added. Without it, due ones are found later. */
  readonly nudge: () => void;
  /**
   * One more attempt, now, in any state. Requests for the same notification are merged until its turn comes. They are
   * lost on a restart.
   * @returns false for an unknown id
   * @throws UnavailableError when too many are waiting
   */
  readonly redeliver: (notificationId: string) => boolean;
  /**
   * Begins nothing more and waits for exchanges under way. One that takes longer than `graceMs` is cut, recorded as
   * `interrupted`, and due at the next start. Safe to call twice or before `start`.
   */
  readonly stop: (graceMs: number) => Promise<void>;
};

/** A retry can be late by this much, while an earlier notification of its job is under way and hides its due time. */
const POLL_MS = 200;
/** With nothing due. `nudge` ends the wait. */
const IDLE_MS = 30_000;
/** After an error of the store. Without a pause, a webhook whose attempt cannot be recorded is sent in a hot loop. */
const ERROR_PAUSE_MS = 1_000;
const REDELIVERIES_MAX = 1_000;

export function createDeliverer(options: SenderOptions): Deliverer {
  const { store, concurrency, now, log } = options;
  const turns = new Map<string, Promise<void>>(); // by job id
  const redeliveries = new Map<string, string>(); // notification id → job id
  const stopping = new AbortController();
  const cut = new AbortController();
  const send = createSender(options, { stopping: stopping.signal, cut: cut.signal });
  let isRunning = false;
  let timer: NodeJS.Timeout | undefined;
  let soon: NodeJS.Immediate | undefined;

  /** Not synchronously: the caller may be inside a transaction. */
  function nudge(): void {
    if (isRunning) soon ??= setImmediate(runOnce);
  }

  function runOnce(): void {
    soon = undefined;
    clearTimeout(timer);
    if (!isRunning) return;
    let pauseMs = ERROR_PAUSE_MS;
    try {
      takeRedeliveries();
      takeDue();
      pauseMs = pauseUntilDueMs();
    } catch (error) {
      log.error({ err: describeError(error) }, 'the notifications cannot be read');
    }
    timer = setTimeout(runOnce, pauseMs);
  }

  function takeRedeliveries(): void {
    for (const [notificationId, jobId] of redeliveries) {
      if (!mayTake(jobId)) continue;
      redeliveries.delete(notificationId);
      const found = store.find(notificationId);
      // Not the length of the list: the store keeps only the latest attempts.
      if (found !== undefined) take({ ...found, attempts: found.attempts.at(-1)?.attempt ?? 0 });
    }
  }

  function takeDue(): void {
    if (turns.size >= concurrency) return;
    // Enough rows to find the next job, even if all notifications of all busy jobs come first.
    for (const due of store.due(now(), concurrency * NOTIFICATIONS_PER_JOB)) {
      if (mayTake(due.notification.jobId)) take({ ...due, state: 'pending' });
    }
  }

  function mayTake(jobId: string): boolean {
    return turns.size < concurrency && !turns.has(jobId);
  }

  function pauseUntilDueMs(): number {
    const inMs = (store.nextDueMs() ?? Number.POSITIVE_INFINITY) - now();
    return inMs <= 0 ? POLL_MS : Math.min(inMs, IDLE_MS);
  }

  function take(due: Due): void {
    turns.set(due.notification.jobId, turn(due));
  }

  async function turn(due: Due): Promise<void> {
    const { id, jobId } = due.notification;
    try {
      await send(due);
    } catch (error) {
      log.error({ notification: id, err: describeError(error) }, 'a webhook cannot be sent or recorded');
      await sleepUnless(stopping.signal, ERROR_PAUSE_MS);
    } finally {
      turns.delete(jobId);
      nudge();
    }
  }

  return {
    start: () => {
      isRunning = !stopping.signal.aborted;
      nudge();
    },
    nudge,
    redeliver: (notificationId) => {
      const found = store.find(notificationId);
      if (found === undefined) return false;
      if (redeliveries.size >= REDELIVERIES_MAX) {
        throw new UnavailableError('full', 'too many redeliveries are waiting');
      }
      redeliveries.set(notificationId, found.notification.jobId);
      nudge();
      return true;
    },
    stop: async (graceMs) => {
      isRunning = false;
      clearTimeout(timer);
      stopping.abort();
      const grace = setTimeout(() => cut.abort(), graceMs);
      await Promise.all(turns.values());
      clearTimeout(grace);
    },
  };
}
