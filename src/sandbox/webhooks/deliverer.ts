// Sends the notices that the store says are due, and has every attempt recorded. Promises: one notice of a job at a
// time, first attempts in the order in which the notices were made; at least one attempt of each, restarts and
// crashes included, since what is not recorded is due again; a bounded number of exchanges at once. One receiver's
// trouble delays that job's notices and no other's, as long as there are places left.
//
// A job's turn takes one of the places: a chaotic delay, one attempt, its record, and the copies that chaos adds.

import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, UnavailableError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import type { Addresses } from '../addresses/addresses.ts';
import { type Chaos, createTrouble, NO_CHAOS, type SignedBody } from './chaos.ts';
import type { Notice, NoticeState, NoticeStore } from './notifications.ts';
import { type Answer, post } from './post.ts';
import { type RetryPlan, retryDelayMs } from './retry.ts';

export type { Chaos } from './chaos.ts';
export type { Attempt, EventKind, Notice, NoticeRecord, NoticeState, NoticeStore } from './notifications.ts';
export type { RetryPlan } from './retry.ts';

/** A receiver must answer within so much (spec 6.1 and 8). */
export const WEBHOOK_TIMEOUT_MS = 10_000;

export type Deliverer = {
  readonly start: () => void;
  /** A hint that something was added. What is due is found without it, only later. */
  readonly nudge: () => void;
  /**
   * One attempt more, now, whatever the notice's state. Asked twice before its turn comes, it is one attempt; asked
   * before a restart, it is forgotten.
   * @returns false for an unknown id
   * @throws UnavailableError when too many wait already
   */
  readonly redeliver: (noticeId: string) => boolean;
  /**
   * Begins nothing more and waits for what is under way. What takes longer than `graceMs` is cut, recorded as
   * `interrupted`, and due at the next start. Safe to call twice or before start.
   */
  readonly stop: (graceMs: number) => Promise<void>;
};

type Due = { readonly notice: Notice; readonly attempts: number; readonly state: NoticeState };
type Next = { readonly state: NoticeState; readonly dueAtMs: number | null };

/**
 * A job tells its progress ten times at most, and its end. So many are read for each place: even where every notice
 * of the jobs that are busy stands before it, the next job's is among them.
 */
const NOTICES_PER_JOB = 16;
/** How late a retry may be while an earlier notice is still under way and hides when the next is due. */
const POLL_MS = 200;
/** With nothing due. Whoever adds a notice nudges. */
const IDLE_MS = 30_000;
/** After an error of the store, or a webhook that cannot be recorded would be sent without end. */
const ERROR_PAUSE_MS = 1_000;
/** How long a notice that chaos holds back waits for the one that shall overtake it. Progress comes once a second. */
const REORDER_WAIT_MS = 2_000;
const REDELIVERIES_MAX = 1_000;

export function createDeliverer(options: {
  store: NoticeStore;
  addresses: Pick<Addresses, 'fault' | 'dispatcher'>;
  secretOf: (accountId: string) => string;
  retry: RetryPlan;
  /** How often an account wants a notice to be tried; undefined where the plan's number holds. */
  maxAttemptsOf?: ((accountId: string) => number | undefined) | undefined;
  /** For the whole exchange. */
  timeoutMs: number;
  /** Exchanges at once, apart from the copies that chaos adds. */
  concurrency: number;
  chaos?: Chaos | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** 0 ≤ random < 1, for jitter and chaos. */
  random: () => number;
  log: Logger;
}): Deliverer {
  const { store, addresses, secretOf, retry, timeoutMs, concurrency, now, random, log } = options;
  const trouble = createTrouble({ chaos: options.chaos ?? NO_CHAOS, random });
  const turns = new Map<string, Promise<void>>(); // by job id
  const redeliveries = new Map<string, string>(); // notice id → job id
  const stopping = new AbortController(); // nothing new
  const cut = new AbortController(); // not even the rest of what is under way
  let isRunning = false;
  let timer: NodeJS.Timeout | undefined;
  let soon: NodeJS.Immediate | undefined;

  /** Not at once: whoever nudges may be in the middle of a transaction. */
  function nudge(): void {
    if (isRunning) soon ??= setImmediate(pump);
  }

  function pump(): void {
    soon = undefined;
    clearTimeout(timer);
    if (!isRunning) return;
    let pauseMs = ERROR_PAUSE_MS;
    try {
      takeRedeliveries();
      takeDue();
      pauseMs = pauseUntilDueMs();
    } catch (error) {
      log.error({ err: describeError(error) }, 'the notices cannot be read');
    }
    timer = setTimeout(pump, pauseMs);
  }

  function takeRedeliveries(): void {
    for (const [noticeId, jobId] of redeliveries) {
      if (!mayTake(jobId)) continue;
      redeliveries.delete(noticeId);
      const found = store.find(noticeId);
      // By its number: a store may have forgotten the oldest.
      if (found !== undefined) take({ ...found, attempts: found.attempts.at(-1)?.attempt ?? 0 });
    }
  }

  function takeDue(): void {
    if (turns.size >= concurrency) return;
    for (const { notice, attempts } of store.due(now(), concurrency * NOTICES_PER_JOB)) {
      if (mayTake(notice.jobId)) take({ notice, attempts, state: 'pending' });
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
    turns.set(due.notice.jobId, turn(due));
  }

  async function turn(due: Due): Promise<void> {
    try {
      const next = due.attempts === 0 && trouble.isOvertaken() ? await nextOfJob(due.notice) : undefined;
      if (next !== undefined) await attempt(next);
      await attempt(due);
    } catch (error) {
      log.error({ notice: due.notice.id, err: describeError(error) }, 'a webhook cannot be sent or recorded');
      await rest(ERROR_PAUSE_MS);
    } finally {
      turns.delete(due.notice.jobId);
      nudge();
    }
  }

  async function attempt({ notice, attempts, state }: Due): Promise<void> {
    await rest(trouble.delayMs());
    if (stopping.signal.aborted) return;
    const content = trouble.seal(secretOf(notice.accountId), notice.body);
    const startedAt = new Date(now()).toISOString();
    const answer = await send(notice.url, content);
    const { id, jobId, kind } = notice;
    const number = attempts + 1;
    const next = after(answer, { notice, attempts: number, state });
    store.record({ noticeId: id, attempt: number, startedAt, ...answer }, next);
    log.info({ notice: id, job: jobId, kind, attempt: number, ...answer, state: next.state }, 'webhook');
    await sendCopies(notice.url, content, trouble.copies());
  }

  function send(url: string, content: SignedBody): Promise<Answer> {
    return post({ addresses, url, content, timeoutMs, signal: cut.signal });
  }

  /** What becomes of a notice when `answer` has come to the last of its attempts. */
  function after(answer: Answer, { notice, attempts, state }: Due): Next {
    if (isAcknowledged(answer)) return { state: 'delivered', dueAtMs: null };
    if (state !== 'pending') return { state, dueAtMs: null };
    if (answer.error === 'interrupted') return { state, dueAtMs: now() };
    const maxAttempts = options.maxAttemptsOf?.(notice.accountId) ?? retry.maxAttempts;
    if (attempts >= maxAttempts) return { state: 'given_up', dueAtMs: null };
    return { state, dueAtMs: now() + retryDelayMs(retry, attempts, random()) };
  }

  /** The same bytes under the same signature. Nobody waits for them, so nothing of them is recorded. */
  async function sendCopies(url: string, content: SignedBody, copies: number): Promise<void> {
    let left = copies;
    const sendSome = async () => {
      while (left > 0 && !stopping.signal.aborted) {
        left -= 1;
        await send(url, content);
      }
    };
    await Promise.all(Array.from({ length: Math.min(copies, concurrency) }, sendSome));
  }

  /** Waits for the job to have a later notice; undefined where none came, or it is no first attempt any more. */
  async function nextOfJob(notice: Notice): Promise<Due | undefined> {
    await rest(REORDER_WAIT_MS);
    const { accountId, jobId } = notice;
    const next = store
      .list({ accountId, jobId, limit: NOTICES_PER_JOB })
      .findLast(
        (other) =>
          other.notice.id !== notice.id &&
          other.notice.createdAt >= notice.createdAt &&
          other.state === 'pending' &&
          other.attempts.length === 0,
      );
    return next === undefined ? undefined : { ...next, attempts: 0 };
  }

  /** Ends early when it is time to stop. */
  async function rest(ms: number): Promise<void> {
    if (ms <= 0) return;
    await sleep(ms, undefined, { signal: stopping.signal }).catch(() => {});
  }

  return {
    start: () => {
      isRunning = !stopping.signal.aborted;
      nudge();
    },
    nudge,
    redeliver: (noticeId) => {
      const found = store.find(noticeId);
      if (found === undefined) return false;
      if (redeliveries.size >= REDELIVERIES_MAX) {
        throw new UnavailableError('full', 'too many redeliveries are waiting');
      }
      redeliveries.set(noticeId, found.notice.jobId);
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

function isAcknowledged({ httpStatus, error }: Answer): boolean {
  return error === null && httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
}
