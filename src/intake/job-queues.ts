// What waits to be written, with a queue for each job. A batch takes at most one event of a job (with its copies), and no other
// batch takes from that queue until it is released (R2): so a job's events are accepted in the order in which they came, and no two
// batches wait for each other's row locks.

import { eventId } from '../event/index.ts';
import { type DeliveryRecord, jobKey, type RecordedDelivery } from '../ledger/index.ts';
import { createLinkedList, type Linked } from '../base/collections/linked-list.ts';
import { createPassingMap } from '../base/collections/passing-map.ts';

/** A delivery that was given to the writer. */
export interface Submission extends Linked<Submission> {
  readonly delivery: DeliveryRecord;
  /** When it was given, and until when a batch must take it. */
  readonly sinceMs: number;
  readonly deadlineMs: number;
  readonly bytes: number;
  readonly resolve: (recorded: RecordedDelivery) => void;
  readonly reject: (error: Error) => void;
}

/** What waits for one job. `key` is undefined for a delivery that touches no job: it has a queue to itself. */
type JobQueue = { readonly key: string | undefined; readonly waiting: Submission[] };

export type Batch = { readonly queues: JobQueue[]; readonly submissions: Submission[] };

export type JobQueues = {
  readonly add: (submission: Submission) => void;
  /** Queues that a batch may take from now. */
  readonly ready: () => number;
  /** The one that waits longest. A batch may perhaps not take it yet: its job is being written. */
  readonly oldest: () => Submission | undefined;
  /** The next batch, which may be empty. It has to be released. */
  readonly take: (limits: { deliveries: number; bytes: number }) => Batch;
  /** It is written: other batches may take from its queues. */
  readonly release: (batch: Batch) => void;
};

/** Used queues are removed from the front of `ready` this many at once, since each removal moves all the rest. */
const READY_SLACK = 10_000;

export function createJobQueues(options: {
  /** Monotonic milliseconds. */
  now: () => number;
  /** Its deadline is over: it is in no batch. */
  onLate: (submission: Submission) => void;
}): JobQueues {
  const { now, onLate } = options;
  const queues = createPassingMap<string, JobQueue>(); // every job that waits or is being written
  const inOrder = createLinkedList<Submission>(); // all that waits
  const ready: JobQueue[] = []; // those that a batch may take from, each at most once
  let head = 0; // where `ready` begins

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
        onLate(next);
        continue;
      }
      if (taken[0] !== undefined && !sameKey(taken[0].delivery, next.delivery)) break;
      taken.push(next);
      bytes += next.bytes;
    }
    for (const gone of queue.waiting.splice(0, rest)) inOrder.delete(gone);
    return { submissions: taken, bytes };
  }

  return {
    add: (submission) => {
      const { delivery } = submission;
      inOrder.add(submission);
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
    },

    ready: () => ready.length - head,

    oldest: inOrder.first,

    take: (limits) => {
      const batch: Batch = { queues: [], submissions: [] };
      let bytes = 0;
      while (head < ready.length && batch.submissions.length < limits.deliveries && bytes < limits.bytes) {
        const queue = ready[head++] as JobQueue;
        const room = {
          deliveries: limits.deliveries - batch.submissions.length,
          bytes: limits.bytes - bytes,
        };
        const taken = takeCopies(queue, room);
        batch.queues.push(queue);
        batch.submissions.push(...taken.submissions);
        bytes += taken.bytes;
      }
      if (head === ready.length || head > READY_SLACK) {
        ready.splice(0, head);
        head = 0;
      }
      return batch;
    },

    release: ({ queues: written }) => {
      for (const queue of written) {
        if (queue.waiting.length > 0) ready.push(queue);
        else if (queue.key !== undefined) queues.delete(queue.key);
      }
    },
  };
}

function sameKey(a: DeliveryRecord, b: DeliveryRecord): boolean {
  return (
    a.outcome === 'event' &&
    b.outcome === 'event' &&
    eventId(a.source, a.event) === eventId(b.source, b.event)
  );
}
