// Hands events to the relay after their commit, from memory: most events are never read from the outbox. Knows which writes of
// this replica have no answer yet, so that a load neither misses an event nor finds it a second time.

import { randomBytes } from 'node:crypto';
import {
  type DeliveryRecord,
  isRolledBack,
  type JobEvent,
  jobKey,
  type RecordedDelivery,
  type TalliedDelivery,
  type WriteMark,
} from '../ledger/index.ts';
import { createBatch } from './batch.ts';
import { type Entry, isBefore } from './entry.ts';

/** What one write has committed. */
export type Written = {
  /** Its events that are in a batch now. */
  readonly entries: readonly Entry[];
  /** Jobs whose delivery before was recorded by another writer: it may have an event that is not in memory. */
  readonly changedJobs: readonly string[];
  /** It has events that are held. */
  readonly hasHeld: boolean;
};

export type HandOff = {
  /** Runs `record` under a new mark, and hands over what it has committed. Throws what it throws. */
  readonly write: (
    batch: readonly DeliveryRecord[],
    record: (mark: WriteMark) => Promise<TalliedDelivery[]>,
  ) => Promise<RecordedDelivery[]>;
  /** Calls `listener` with each write that has committed, in the order of the answers. */
  readonly onWritten: (listener: (written: Written) => void) => void;
  /** Calls `listener` when a write has failed: results may have waited for its events. */
  readonly onFailed: (listener: () => void) => void;
  /** Writes without an answer. */
  readonly inFlight: () => WriteMark[];
  /** How many deliveries are in these. */
  readonly writing: () => number;
  /** The mark of the next write. */
  readonly next: () => WriteMark;
  /** Resolves when each write that has no answer now has one, or has failed. */
  readonly answered: () => Promise<void>;
  /** How many writes have failed so that nobody knows whether they were committed. */
  readonly unknown: () => number;
};

/** A write without an answer. */
type Flight = { readonly mark: WriteMark; readonly answered: Promise<void> };

/** A mark's number is an integer column. */
const WRITES_MAX = 2 ** 30;

export function createHandOff(): HandOff {
  const inFlight: Flight[] = [];
  let writer = drawWriter();
  let number = 0;
  let writing = 0;
  let unknown = 0;
  let listener: ((written: Written) => void) | undefined;
  let failureListener: (() => void) | undefined;

  /** A write whose result is unknown may still be committed, at any time (R5, R16). */
  function noteFailure(error: unknown): void {
    if (isRolledBack(error)) return;
    unknown += 1;
    begin();
  }

  function begin(): void {
    writer = drawWriter();
    number = 0;
  }

  return {
    write: async (batch, record) => {
      if (number === WRITES_MAX) begin();
      const mark = { writer, number: number++ };
      const { promise, resolve } = Promise.withResolvers<void>();
      const flight = { mark, answered: promise };
      inFlight.push(flight);
      writing += batch.length;
      const end = () => {
        inFlight.splice(inFlight.indexOf(flight), 1);
        writing -= batch.length;
        resolve();
      };
      let recorded: TalliedDelivery[];
      try {
        recorded = await record(mark);
      } catch (error) {
        noteFailure(error);
        end();
        failureListener?.();
        throw error;
      }
      end();
      listener?.(whatWasWritten(batch, recorded));
      await messagesSent();
      return recorded;
    },
    onWritten: (given) => {
      listener = given;
    },
    onFailed: (given) => {
      failureListener = given;
    },
    inFlight: () => inFlight.map(({ mark }) => mark),
    writing: () => writing,
    next: () => ({ writer, number }),
    answered: async () => {
      await Promise.all(inFlight.map(({ answered }) => answered));
    },
    unknown: () => unknown,
  };
}

/**
 * Resolves when what was published in this turn of the event loop is on its way (broker-socket.ts). Senders are answered after
 * that: the answers of a batch take a millisecond, for which subscribers would wait, and the messages take a part of that.
 */
const messagesSent = () => new Promise<void>((resolve) => process.nextTick(() => setImmediate(resolve)));

/** 64 random bits, so that two replicas, or two starts of one, are different writers. */
const drawWriter = (): string => randomBytes(8).readBigInt64BE().toString();

function whatWasWritten(batch: readonly DeliveryRecord[], recorded: readonly TalliedDelivery[]): Written {
  const changedJobs: string[] = [];
  const events: Event[] = [];
  let hasHeld = false;
  for (const [index, delivery] of batch.entries()) {
    const result = recorded[index];
    if (delivery.outcome !== 'event' || result === undefined) continue;
    const { event, source } = delivery;
    if (result.writerChanged) changedJobs.push(jobKey(source, event.jobId));
    if (result.pending !== null) events.push({ ...result.pending, source, event, late: result.late });
    hasHeld ||= result.held;
  }
  return { entries: toEntries(events), changedJobs, hasHeld };
}

type Event = {
  readonly sequence: string;
  readonly recordedAt: Date;
  readonly source: string;
  readonly event: JobEvent;
  readonly late: boolean;
};

/** One write makes one batch. */
function toEntries(events: readonly Event[]): Entry[] {
  const [some] = events;
  if (some === undefined) return [];
  const first = events.reduce(
    (lowest, { sequence }) => (isBefore(sequence, lowest) ? sequence : lowest),
    some.sequence,
  );
  const batch = createBatch(first, { size: events.length });
  return events.map(({ sequence, recordedAt, source, event, late }) => ({
    position: sequence,
    sequence,
    source,
    jobId: event.jobId,
    status: event.status,
    progress: event.progress,
    late,
    occurredAt: event.occurredAt,
    recordedAt,
    data: event.data,
    attempts: 0,
    batch,
  }));
}
