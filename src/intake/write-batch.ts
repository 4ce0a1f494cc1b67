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

/** Writes them. Never rejects: `settle` is called once for each. */
export type WriteBatch = (submissions: readonly Submission[]) => Promise<void>;

export function createWriteBatch(options: {
  record: (batch: readonly DeliveryRecord[]) => Promise<RecordedDelivery[]>;
  /** Monotonic milliseconds. */
  now: () => number;
  observe: BatchObserver;
  settle: (submission: Submission, result: RecordedDelivery | Error | undefined) => void;
}): WriteBatch {
  const { record, now, observe, settle } = options;

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
  async function afterFailure(submissions: readonly Submission[], error: unknown): Promise<void> {
    if (isRefusedContent(error) && submissions.length > 1) {
      const middle = submissions.length >> 1;
      await write(submissions.slice(0, middle));
      await write(submissions.slice(middle));
      return;
    }
    const [alone] = submissions;
    if (isRefusedContent(error) && alone?.delivery.outcome === 'event') {
      await write([{ ...alone, delivery: quarantine(alone.delivery) }]);
      return;
    }
    const why = `the ledger did not confirm the write: ${failureOf(error).because}`;
    const failure = new UnavailableError('ledger', why, { cause: error });
    for (const submission of submissions) settle(submission, failure);
  }

  async function write(submissions: readonly Submission[]): Promise<void> {
    const startedMs = now();
    const written = { deliveries: submissions.length };
    const seconds = () => (now() - startedMs) / 1_000;
    let recorded: RecordedDelivery[];
    try {
      recorded = await recordWithRetries(submissions);
    } catch (error) {
      observe({ ...written, seconds: seconds(), failed: true, error });
      await afterFailure(submissions, error);
      return;
    }
    observe({ ...written, seconds: seconds(), failed: false });
    for (const [index, submission] of submissions.entries()) settle(submission, recorded[index]);
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
