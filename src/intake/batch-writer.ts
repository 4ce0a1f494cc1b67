// Group commit: deliveries that arrive while a write is in flight share the next one. Bounded in requests,
// bytes and time; a delivery is answered only after the commit of its batch.
//
// A statement costs a few hundred microseconds even with few rows, so writes do not follow the arrivals. When nothing is
// in flight, a write begins at once. A further one begins only when as many jobs wait as the smallest write in flight
// holds. So batches grow with the load and with the time of a commit, on any machine, without a clock.
//
// Each job has a queue, in the order in which its deliveries came. A batch takes at most one event of a job (with
// its copies), and no other batch takes from that queue until it is written: so a job's events are accepted in
// order, and no two batches of ours wait for each other's row locks.

import { setTimeout as delay } from 'node:timers/promises';
import { OUTCOME_STATUS } from '../delivery-answers.ts';
import { UnavailableError } from '../errors.ts';
import { eventId } from '../event/index.ts';
import {
  isRefusedContent,
  isRetryable,
  failureOf,
  type DeliveryRecord,
  jobKey,
  type RecordedDelivery,
} from '../ledger/index.ts';

export type BatchWriterLimits = {
  readonly queueDeliveries: number;
  readonly queueBytes: number;
  readonly batchDeliveries: number;
  readonly batchBytes: number;
  readonly batchesInFlight: number;
};

export type BatchWriter = {
  /**
   * Records one delivery. Resolves after the commit.
   * `deadlineMs` is on the clock of `now`: a delivery that no batch has taken by then is dropped unwritten.
   * @throws UnavailableError: `full` at once, `late` past the deadline, `ledger` when the write failed. After
   *   `ledger` the delivery may still have been committed; the sender's repeat then finds its event.
   */
  readonly submit: (delivery: DeliveryRecord, deadlineMs: number) => Promise<RecordedDelivery>;
  readonly hasRoom: () => boolean;
  readonly waiting: () => { deliveries: number; bytes: number };
  /** Resolves when each delivery that was submitted is written or has failed. */
  readonly drained: () => Promise<void>;
};

export type BatchObserver = (batch: {
  deliveries: number;
  seconds: number;
  failed: boolean;
  /** Why it failed: whatever `record` threw. */
  error?: unknown;
}) => void;

type Submission = {
  readonly delivery: DeliveryRecord;
  readonly deadlineMs: number;
  readonly bytes: number;
  readonly resolve: (recorded: RecordedDelivery) => void;
  readonly reject: (error: Error) => void;
};

/** What waits for one job. `key` is undefined for a delivery that touches no job: it has a queue to itself. */
type JobQueue = { readonly key: string | undefined; readonly waiting: Submission[] };
type Batch = { readonly queues: JobQueue[]; readonly submissions: Submission[] };

/** What a waiting delivery costs besides its body: its fields, closures and headers. */
const OVERHEAD_BYTES = 2_048;

/** Used queues are removed from the front of `ready` this many at once, since each removal moves all the rest. */
const READY_SLACK = 10_000;

/** A deadlock or serialization failure is retried this many times, within the deliveries' deadlines. */
const RETRIES = 5;

/** Why an event is quarantined although it was understood. */
export const VALUES_REFUSED = 'the ledger refused its values';

export function createBatchWriter(options: {
  record: (batch: readonly DeliveryRecord[]) => Promise<RecordedDelivery[]>;
  limits: BatchWriterLimits;
  /** Monotonic milliseconds. */
  now: () => number;
  observe: BatchObserver;
}): BatchWriter {
  const { record, limits, now, observe } = options;
  const queues = new Map<string, JobQueue>(); // every job that waits or is being written
  const ready: JobQueue[] = []; // those that a batch may take from, each at most once
  let head = 0; // where `ready` begins
  const unsettled = { deliveries: 0, bytes: 0 }; // submitted, and neither written nor failed
  const inFlight = new Set<Batch>();
  let isDue = false; // the next batch is scheduled
  let onDrained: (() => void)[] = [];

  function submit(delivery: DeliveryRecord, deadlineMs: number): Promise<RecordedDelivery> {
    const bytes = (delivery.body?.length ?? 0) + OVERHEAD_BYTES;
    if (!hasRoom(bytes)) return Promise.reject(new UnavailableError('full', 'the write queue is full'));
    unsettled.deliveries += 1;
    unsettled.bytes += bytes;
    return new Promise((resolve, reject) => {
      enqueue({ delivery, deadlineMs, bytes, resolve, reject });
      fill();
    });
  }

  function hasRoom(bytes = OVERHEAD_BYTES): boolean {
    return unsettled.deliveries < limits.queueDeliveries && unsettled.bytes + bytes <= limits.queueBytes;
  }

  function enqueue(submission: Submission): void {
    const { delivery } = submission;
    if (delivery.outcome !== 'event') {
      ready.push({ key: undefined, waiting: [submission] });
      return;
    }
    const key = jobKey(delivery.source, delivery.event.jobId);
    const queue = queues.get(key);
    if (queue !== undefined) {
      queue.waiting.push(submission);
      return;
    }
    const fresh = { key, waiting: [submission] };
    queues.set(key, fresh);
    ready.push(fresh);
  }

  /** A batch begins in the next turn of the loop at the earliest: what arrived in this one joins it. */
  function fill(): void {
    if (isDue || inFlight.size >= limits.batchesInFlight || !enoughWait()) return;
    isDue = true;
    setImmediate(begin);
  }

  function enoughWait(): boolean {
    const waiting = ready.length - head;
    if (waiting === 0) return false;
    const smallest = Math.min(...Array.from(inFlight, (batch) => batch.queues.length));
    return inFlight.size === 0 || smallest <= waiting;
  }

  function begin(): void {
    isDue = false;
    const batch = takeBatch();
    if (batch.submissions.length > 0) void write(batch);
    fill();
  }

  function takeBatch(): Batch {
    const batch: Batch = { queues: [], submissions: [] };
    let bytes = 0;
    while (
      head < ready.length &&
      batch.submissions.length < limits.batchDeliveries &&
      bytes < limits.batchBytes
    ) {
      const queue = ready[head++] as JobQueue;
      const taken = takeCopies(queue, {
        deliveries: limits.batchDeliveries - batch.submissions.length,
        bytes: limits.batchBytes - bytes,
      });
      batch.queues.push(queue);
      batch.submissions.push(...taken.submissions);
      bytes += taken.bytes;
    }
    if (head === ready.length || head > READY_SLACK) {
      ready.splice(0, head);
      head = 0;
    }
    if (batch.submissions.length === 0) release(batch.queues);
    return batch;
  }

  /** From the front of the queue, the next event and its copies that follow directly, while there is room. */
  function takeCopies(
    queue: JobQueue,
    room: { deliveries: number; bytes: number },
  ): { submissions: Submission[]; bytes: number } {
    const taken: Submission[] = [];
    let bytes = 0;
    let rest = 0;
    for (; rest < queue.waiting.length && taken.length < room.deliveries && bytes < room.bytes; rest++) {
      const next = queue.waiting[rest] as Submission;
      if (next.deadlineMs <= now()) {
        settle(next, new UnavailableError('late', 'no write was free in time'));
        continue;
      }
      if (taken[0] !== undefined && !sameKey(taken[0].delivery, next.delivery)) break;
      taken.push(next);
      bytes += next.bytes;
    }
    queue.waiting.splice(0, rest);
    return { submissions: taken, bytes };
  }

  async function write(batch: Batch): Promise<void> {
    inFlight.add(batch);
    await writeOrSplit(batch.submissions);
    inFlight.delete(batch);
    release(batch.queues);
    fill();
  }

  /**
   * Never rejects. A batch that the database refuses for a value is halved until the delivery at fault is alone. That one is
   * quarantined with its body: otherwise all repeats by its sender would fail (guarantee 6).
   */
  async function writeOrSplit(submissions: readonly Submission[]): Promise<void> {
    const startedMs = now();
    try {
      const recorded = await recordWithRetries(submissions);
      observe({ deliveries: submissions.length, seconds: (now() - startedMs) / 1_000, failed: false });
      for (const [index, submission] of submissions.entries()) settle(submission, recorded[index]);
    } catch (error) {
      observe({ deliveries: submissions.length, seconds: (now() - startedMs) / 1_000, failed: true, error });
      if (isRefusedContent(error) && submissions.length > 1) {
        const middle = submissions.length >> 1;
        await writeOrSplit(submissions.slice(0, middle));
        await writeOrSplit(submissions.slice(middle));
        return;
      }
      const [alone] = submissions;
      if (isRefusedContent(error) && alone?.delivery.outcome === 'event') {
        await writeOrSplit([{ ...alone, delivery: quarantine(alone.delivery) }]);
        return;
      }
      const why = `the ledger did not confirm the write: ${failureOf(error).because}`;
      const failure = new UnavailableError('ledger', why, { cause: error });
      for (const submission of submissions) settle(submission, failure);
    }
  }

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

  function settle(submission: Submission, result: RecordedDelivery | Error | undefined): void {
    unsettled.deliveries -= 1;
    unsettled.bytes -= submission.bytes;
    if (result === undefined) submission.reject(new Error('the ledger gave no outcome'));
    else if (result instanceof Error) submission.reject(result);
    else submission.resolve(result);
    if (unsettled.deliveries > 0) return;
    for (const resolve of onDrained) resolve();
    onDrained = [];
  }

  function release(written: readonly JobQueue[]): void {
    for (const queue of written) {
      if (queue.waiting.length > 0) ready.push(queue);
      else if (queue.key !== undefined) queues.delete(queue.key);
    }
  }

  return {
    submit,
    hasRoom: () => hasRoom(),
    waiting: () => ({ ...unsettled }),
    drained: () =>
      unsettled.deliveries === 0 ? Promise.resolve() : new Promise((resolve) => onDrained.push(resolve)),
  };
}

function quarantine(delivery: DeliveryRecord): DeliveryRecord {
  return {
    ...delivery,
    outcome: 'quarantined',
    httpStatus: OUTCOME_STATUS.quarantined,
    reason: VALUES_REFUSED,
  };
}

function sameKey(a: DeliveryRecord, b: DeliveryRecord): boolean {
  return (
    a.outcome === 'event' &&
    b.outcome === 'event' &&
    eventId(a.source, a.event) === eventId(b.source, b.event)
  );
}
