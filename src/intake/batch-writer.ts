// Group commit: deliveries that arrive while a write is in flight share the next one. Bounded in requests,
// bytes and time; a delivery is answered only after the commit of its batch.
//
// A statement costs a few hundred microseconds even with few rows, so writes do not follow the arrivals. When nothing is
// in flight, a write begins at once. A further one begins only when as many jobs wait as the smallest write in flight
// holds. So batches grow with the load and with the time of a commit, on any machine, without a clock. And while the relay has much
// to publish, a write waits a little (backpressure.ts).

import { UnavailableError } from '../base/errors.ts';
import type { DeliveryRecord, RecordedDelivery } from '../ledger/index.ts';
import { type Backpressure, createPatience } from './write-patience.ts';
import { type Batch, createJobQueues, type Submission } from './job-queues.ts';
import { type BatchObserver, createWriteBatch, type Written } from './write-batch.ts';

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

/** What a waiting delivery costs besides its body: its fields, closures and headers. */
const OVERHEAD_BYTES = 2_048;

export function createBatchWriter(options: {
  record: (batch: readonly DeliveryRecord[]) => Promise<RecordedDelivery[]>;
  limits: BatchWriterLimits;
  backpressure: Backpressure;
  /** Monotonic milliseconds. */
  now: () => number;
  observe: BatchObserver;
}): BatchWriter {
  const { record, limits, backpressure, now, observe } = options;
  const queues = createJobQueues({
    now,
    onLate: (late) => settle(late, new UnavailableError('late', 'no write was free in time')),
  });
  const patience = createPatience({ backpressure, now, onOver: () => fill() });
  const writeBatch = createWriteBatch({
    record,
    now,
    observe: (written) => {
      patience.noteWrite(written.seconds * 1_000);
      observe(written);
    },
  });
  const unsettled = { deliveries: 0, bytes: 0 }; // submitted, and neither written nor failed
  const inFlight: Batch[] = [];
  let isDue = false; // the next batch is scheduled
  let onDrained: (() => void)[] = [];

  function submit(delivery: DeliveryRecord, deadlineMs: number): Promise<RecordedDelivery> {
    const bytes = (delivery.body?.length ?? 0) + OVERHEAD_BYTES;
    if (!hasRoom(bytes)) return Promise.reject(new UnavailableError('full', 'the write queue is full'));
    unsettled.deliveries += 1;
    unsettled.bytes += bytes;
    return new Promise((resolve, reject) => {
      queues.add({
        delivery,
        sinceMs: now(),
        deadlineMs,
        bytes,
        resolve,
        reject,
        previous: undefined,
        next: undefined,
      });
      fill();
    });
  }

  function hasRoom(bytes = OVERHEAD_BYTES): boolean {
    return unsettled.deliveries < limits.queueDeliveries && unsettled.bytes + bytes <= limits.queueBytes;
  }

  /** A batch begins in the next turn of the loop at the earliest: what arrived in this one joins it. */
  function fill(): void {
    if (!canBegin()) return;
    isDue = true;
    setImmediate(begin);
  }

  function canBegin(): boolean {
    if (isDue || inFlight.length >= limits.batchesInFlight || !enoughWait()) return false;
    const oldest = queues.oldest();
    return oldest !== undefined && !patience.mustWait(oldest);
  }

  function enoughWait(): boolean {
    const waiting = queues.ready();
    if (waiting === 0) return false;
    return inFlight.length === 0 || inFlight.some((batch) => batch.queues.length <= waiting);
  }

  function begin(): void {
    isDue = false;
    const batch = queues.take({ deliveries: limits.batchDeliveries, bytes: limits.batchBytes });
    if (batch.submissions.length > 0) void write(batch);
    else queues.release(batch);
    fill();
  }

  async function write(batch: Batch): Promise<void> {
    inFlight.push(batch);
    const written = await writeBatch(batch.submissions);
    inFlight.splice(inFlight.indexOf(batch), 1);
    queues.release(batch);
    // The ledger works on while senders are answered, which takes a while.
    if (canBegin()) begin();
    for (const [index, submission] of batch.submissions.entries()) settle(submission, written[index]);
  }

  function settle(submission: Submission, result: Written): void {
    unsettled.deliveries -= 1;
    unsettled.bytes -= submission.bytes;
    if (result === undefined) submission.reject(new Error('the ledger gave no outcome'));
    else if (result instanceof Error) submission.reject(result);
    else submission.resolve(result);
    if (unsettled.deliveries > 0) return;
    for (const resolve of onDrained) resolve();
    onDrained = [];
  }

  return {
    submit,
    hasRoom: () => hasRoom(),
    waiting: () => ({ ...unsettled }),
    drained: () =>
      unsettled.deliveries === 0 ? Promise.resolve() : new Promise((resolve) => onDrained.push(resolve)),
  };
}
