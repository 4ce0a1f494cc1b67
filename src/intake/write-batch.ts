// Writes the deliveries of one batch, and finds out what becomes of each: recorded, recorded as less than it was understood as, since
// the database refuses a value of it, or failed.

import { setTimeout as delay } from 'node:timers/promises';
import { OUTCOME_STATUS } from '../delivery-answers.ts';
import { UnavailableError } from '../errors.ts';
import {
  type DeliveryRecord,
  failureOf,
  type Fault,
  faultOf,
  isRetryable,
  type RecordedDelivery,
} from '../ledger/index.ts';
import type { Submission } from './job-queues.ts';

export type BatchObserver = (batch: {
  deliveries: number;
  seconds: number;
  failed: boolean;
  /** Why it failed: whatever `record` threw. */
  error?: unknown;
}) => void;

/** A deadlock or serialization failure is retried this many times, within the deliveries' deadlines. */
const RETRIES = 5;

/**
 * A batch is halved as often as this for a rule that may refuse all deliveries: enough to find three that it refuses among a thousand.
 * The rest of the batch fails then.
 */
const HALVINGS = 32;

/** Why an event is quarantined although it was understood. */
export const VALUES_REFUSED = 'the ledger refused its values';
/** Why a delivery has nothing but its body. */
export const ONLY_BODY = 'it could not be recorded as understood, only its body';

/** What became of a delivery. Undefined if the ledger gave no outcome, which is a defect. */
export type Written = RecordedDelivery | Error | undefined;

/** Writes them. Never rejects: it returns what became of each, in their order. */
export type WriteBatch = (submissions: readonly Submission[]) => Promise<readonly Written[]>;

export function createWriteBatch(options: {
  record: (batch: readonly DeliveryRecord[]) => Promise<RecordedDelivery[]>;
  /** Monotonic milliseconds. */
  now: () => number;
  observe: BatchObserver;
}): WriteBatch {
  const { record, now, observe } = options;

  async function recordWithRetries(submissions: readonly Submission[]): Promise<RecordedDelivery[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await record(submissions.map((submission) => submission.delivery));
      } catch (error) {
        const lastDeadlineMs = Math.max(...submissions.map((submission) => submission.deadlineMs));
        if (!isRetryable(error) || attempt > RETRIES || now() >= lastDeadlineMs) throw error;
        await delay(Math.random() * 10 * attempt); // random, or the same writers would collide again
      }
    }
  }

  /**
   * A batch that the database refuses for a row is halved until the delivery at fault is alone. That one is recorded as less:
   * otherwise all repeats by its sender would fail, and it would be lost in the end (guarantee 6).
   */
  async function afterFailure(
    submissions: readonly Submission[],
    error: unknown,
    halvings: { left: number },
  ): Promise<readonly Written[]> {
    const fault = faultOf(error);
    if (submissions.length > 1 && mayHalve(fault, halvings)) {
      const middle = submissions.length >> 1;
      const before = await write(submissions.slice(0, middle), halvings);
      return [...before, ...(await write(submissions.slice(middle), halvings))];
    }
    const [alone] = submissions;
    const less = alone && submissions.length === 1 ? asLess(alone.delivery, fault) : undefined;
    if (alone && less) return write([{ ...alone, delivery: less }], halvings);
    const why = `the ledger did not confirm the write: ${failureOf(error).because}`;
    const failure = new UnavailableError('ledger', why, { cause: error });
    return submissions.map(() => failure);
  }

  async function write(
    submissions: readonly Submission[],
    halvings: { left: number },
  ): Promise<readonly Written[]> {
    const startedMs = now();
    const written = { deliveries: submissions.length };
    const seconds = () => (now() - startedMs) / 1_000;
    let recorded: RecordedDelivery[];
    try {
      recorded = await recordWithRetries(submissions);
    } catch (error) {
      observe({ ...written, seconds: seconds(), failed: true, error });
      return afterFailure(submissions, error, halvings);
    }
    observe({ ...written, seconds: seconds(), failed: false });
    return recorded;
  }

  return (submissions) => write(submissions, { left: HALVINGS });
}

/** Whether one of them may be at fault. */
function mayHalve(fault: Fault | undefined, halvings: { left: number }): boolean {
  if (fault !== 'added') return fault === 'delivery';
  halvings.left -= 1;
  return halvings.left >= 0;
}

/**
 * As what a delivery is recorded that was refused alone. An event is quarantined only for what it brought: otherwise it should come
 * again, and be accepted then. A repeat of any other delivery would gain nothing, so its body is kept now.
 * @returns undefined if it should come again
 */
function asLess(delivery: DeliveryRecord, fault: Fault | undefined): DeliveryRecord | undefined {
  if (fault === undefined || fault === 'ledger') return undefined;
  if (delivery.outcome !== 'event') return delivery.reason === ONLY_BODY ? undefined : onlyBody(delivery);
  return fault === 'delivery' ? quarantine(delivery) : undefined;
}

function quarantine(delivery: DeliveryRecord): DeliveryRecord {
  return {
    ...delivery,
    outcome: 'quarantined',
    httpStatus: OUTCOME_STATUS.quarantined,
    reason: VALUES_REFUSED,
  };
}

/** The last resort: its outcome and its body, and nothing else that it brought. The body is a value that the database can hold. */
function onlyBody(delivery: Exclude<DeliveryRecord, { outcome: 'event' }>): DeliveryRecord {
  return {
    ...delivery,
    path: '',
    remoteAddress: null,
    peerAddress: null,
    headers: '{}',
    jobId: null,
    status: null,
    progress: null,
    reason: ONLY_BODY,
    signedBy: null,
  };
}
