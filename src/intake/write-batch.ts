// Writes the deliveries of one batch, and finds out what becomes of each: recorded, quarantined since the database refuses a value
// of it, or failed.

import { setTimeout as delay } from 'node:timers/promises';
import { OUTCOME_STATUS } from '../delivery-answers.ts';
import { UnavailableError } from '../errors.ts';
import {
  type DeliveryRecord,
  failureOf,
  isRefusedContent,
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

/** Why an event is quarantined although it was understood. */
export const VALUES_REFUSED = 'the ledger refused its values';

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
   * A batch that the database refuses for a value is halved until the delivery at fault is alone. That one is quarantined with
   * its body: otherwise all repeats by its sender would fail (guarantee 6).
   */
  async function afterFailure(
    submissions: readonly Submission[],
    error: unknown,
  ): Promise<readonly Written[]> {
    if (isRefusedContent(error) && submissions.length > 1) {
      const middle = submissions.length >> 1;
      const before = await write(submissions.slice(0, middle));
      return [...before, ...(await write(submissions.slice(middle)))];
    }
    const [alone] = submissions;
    if (isRefusedContent(error) && alone?.delivery.outcome === 'event')
      return write([{ ...alone, delivery: quarantine(alone.delivery) }]);
    const why = `the ledger did not confirm the write: ${failureOf(error).because}`;
    const failure = new UnavailableError('ledger', why, { cause: error });
    return submissions.map(() => failure);
  }

  async function write(submissions: readonly Submission[]): Promise<readonly Written[]> {
    const startedMs = now();
    const written = { deliveries: submissions.length };
    const seconds = () => (now() - startedMs) / 1_000;
    let recorded: RecordedDelivery[];
    try {
      recorded = await recordWithRetries(submissions);
    } catch (error) {
      observe({ ...written, seconds: seconds(), failed: true, error });
      return afterFailure(submissions, error);
    }
    observe({ ...written, seconds: seconds(), failed: false });
    return recorded;
  }

  return write;
}

function quarantine(delivery: DeliveryRecord): DeliveryRecord {
  return {
    ...delivery,
    outcome: 'quarantined',
    httpStatus: OUTCOME_STATUS.quarantined,
    reason: VALUES_REFUSED,
  };
}
