// Writes the deliveries of one batch, and finds out what becomes of each: recorded, recorded as less than it was understood as,
// since the database refuses a value of it, or failed. Whose fault a refusal is stands in ledger/sessions/sql-errors.ts.

import { setTimeout as delay } from 'node:timers/promises';
import { OUTCOME_STATUS } from '../base/delivery-answers.ts';
import { UnavailableError } from '../base/errors.ts';
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

/** For a rule that may refuse all deliveries: enough to find three that it refuses among a thousand. The rest of the batch fails then. */
const HALVINGS = 32;

/** Rules that are remembered. There are never so many, unless a trigger makes up names. */
const RULES_MAX = 100;

/** Why an event is quarantined although it was understood. */
export const VALUES_REFUSED = 'the ledger refused its values';
/** Why a delivery has nothing but its body. */
export const ONLY_BODY = 'it could not be recorded as understood, only its body';

/** What became of a delivery. Undefined if the ledger gave no outcome, which is a defect. */
export type Written = RecordedDelivery | Error | undefined;

/** What is known of a batch while its parts are written. */
type WrittenBatch = {
  readonly submissions: readonly Submission[];
  /** How often it may still be halved for a rule that may refuse all deliveries. */
  halvings: number;
  /** What `accepted` was when its first write began. */
  readonly acceptedBefore: number;
  /** Events that a rule of others refused, each alone, and why. */
  readonly refused: Map<Submission, unknown>;
};

/** Writes them. Never rejects: it returns what became of each, in their order. */
export type WriteBatch = (submissions: readonly Submission[]) => Promise<readonly Written[]>;

export function createWriteBatch(options: {
  record: (batch: readonly DeliveryRecord[]) => Promise<RecordedDelivery[]>;
  /** Monotonic milliseconds. */
  now: () => number;
  observe: BatchObserver;
}): WriteBatch {
  const { record, now, observe } = options;
  const rules = new Map<string, number>(); // what `accepted` was when a rule of others refused an event last
  let accepted = 0; // writes with an event that is accepted now

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
    batch: WrittenBatch,
  ): Promise<readonly Written[]> {
    const fault = faultOf(error);
    if (submissions.length > 1 && mayHalve(fault, batch)) {
      const middle = submissions.length >> 1;
      const before = await write(submissions.slice(0, middle), batch);
      return [...before, ...(await write(submissions.slice(middle), batch))];
    }
    const [alone] = submissions;
    if (alone && submissions.length === 1) {
      const less = asLess(alone.delivery, fault);
      if (less) return write([{ ...alone, delivery: less }], batch);
      if (fault === 'added' && alone.delivery.outcome === 'event') batch.refused.set(alone, error);
    }
    const why = `the ledger did not confirm the write: ${failureOf(error).because}`;
    const failure = new UnavailableError('ledger', why, { cause: error });
    return submissions.map(() => failure);
  }

  async function write(submissions: readonly Submission[], batch: WrittenBatch): Promise<readonly Written[]> {
    const startedMs = now();
    const written = { deliveries: submissions.length };
    const seconds = () => (now() - startedMs) / 1_000;
    let recorded: RecordedDelivery[];
    try {
      recorded = await recordWithRetries(submissions);
    } catch (error) {
      observe({ ...written, seconds: seconds(), failed: true, error });
      return afterFailure(submissions, error, batch);
    }
    observe({ ...written, seconds: seconds(), failed: false });
    if (recorded.some(({ outcome }) => outcome === 'accepted')) accepted += 1;
    return recorded;
  }

  /**
   * Quarantines events that a rule of others refused, where it is not about all events: others were accepted since it refused one
   * before, or since this batch began. Otherwise they should come again, and be accepted once the rule is repaired.
   */
  async function setAside(written: readonly Written[], batch: WrittenBatch): Promise<readonly Written[]> {
    const all = [...written];
    const isAboutOne = (error: unknown) => accepted > (rules.get(ruleOf(error)) ?? batch.acceptedBefore);
    const aside = [...batch.refused].filter(([, error]) => isAboutOne(error));
    if (rules.size >= RULES_MAX) rules.clear();
    for (const error of batch.refused.values()) rules.set(ruleOf(error), accepted);
    for (const [refused] of aside) {
      const [kept] = await write([{ ...refused, delivery: quarantine(refused.delivery) }], batch);
      all[batch.submissions.indexOf(refused)] = kept;
    }
    return all;
  }

  return async (submissions) => {
    const refused = new Map<Submission, unknown>();
    const batch = { submissions, halvings: HALVINGS, refused, acceptedBefore: accepted };
    const written = await write(submissions, batch);
    return refused.size === 0 ? written : setAside(written, batch);
  };
}

const ruleOf = (error: unknown): string => {
  const { code, constraint } = failureOf(error);
  return `${code} ${constraint}`;
};

/** Whether one of them may be at fault. */
function mayHalve(fault: Fault | undefined, batch: WrittenBatch): boolean {
  if (fault !== 'added') return fault === 'delivery';
  batch.halvings -= 1;
  return batch.halvings >= 0;
}

/**
 * As what a delivery is recorded that was refused alone. An event is quarantined for what it brought; what comes of it for a rule of
 * others is decided when the rest of the batch is written. Any other delivery would gain nothing by a repeat, so its body is kept.
 * @returns undefined if nothing less can be recorded now
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
