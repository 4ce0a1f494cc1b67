// The record of a soak: JSON lines in one file, written while it runs, so that the record of a killed run can be read too.
// The first line says what was run, the last one how it ended; between them are samples and faults by time.

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Since the load began. */
type Seconds = number;

type Start = {
  readonly kind: 'start';
  readonly at: string;
  readonly command: string;
  readonly seed: number;
  readonly minutes: number;
  readonly ratePerS: number;
  readonly faultEveryS: number;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
};

export type FaultSpan = {
  readonly kind: 'fault';
  readonly name: string;
  readonly fromS: Seconds;
  /** When it was healed. Recovery may take longer. */
  readonly toS: Seconds;
};

/** null: it could not be read at that moment, as during a fault. */
export type ReplicaSample = {
  readonly pid: number;
  readonly rssBytes: number | null;
  readonly fds: number | null;
  readonly heapBytes: number | null;
  readonly externalBytes: number | null;
  readonly handles: number | null;
  readonly loopLagP99Ms: number | null;
  readonly leads: number | null;
};

export type TableSample = {
  readonly tableBytes: number;
  readonly indexBytes: number;
  readonly live: number;
  readonly dead: number;
};

export type PostgresSample = {
  /** By application_name. */
  readonly connections: Readonly<Record<string, number>>;
  /** The figures of partitions are added to those of their table. */
  readonly tables: Readonly<Record<string, TableSample>>;
  /** Entries by state. */
  readonly outbox: Readonly<Record<string, number>>;
};

export type BrokerSample = {
  readonly connections: number | null;
  readonly rssBytes: number | null;
  readonly queued: number | null;
};

export type SenderSample = {
  /** Counts since the start, by status; `lost` and `late` where no answer came in time. */
  readonly answers: Readonly<Record<string, number>>;
  /** Of first attempts since the last sample, counted from when each was due. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** How many different notifications got a 2xx. */
  readonly acknowledged: number;
  /** Due, but no connection is free. */
  readonly waiting: number;
  /** To be sent again. */
  readonly retrying: number;
  /** Given up, since too many were waiting to be sent again. */
  readonly givenUp: number;
};

export type SubscriberSample = {
  readonly received: number;
  /** First copies. */
  readonly distinct: number;
  /** Messages that belong to no notification. */
  readonly unexpected: number;
};

export type Sample = {
  readonly kind: 'sample';
  readonly atS: Seconds;
  readonly replicas: Readonly<Record<string, ReplicaSample | null>>;
  readonly postgres: PostgresSample | null;
  readonly broker: BrokerSample;
  readonly sender: SenderSample | null;
  readonly subscriber: SubscriberSample | null;
  /** Of the soak's own process, so that its growth is not taken for Tallyhook's. */
  readonly harnessRssBytes: number;
};

/** Counted after the load had ended and the outbox had had time to drain. */
export type End = {
  readonly kind: 'end';
  readonly acknowledged: number;
  readonly onTheBus: number;
  readonly lost: number;
  readonly unexpected: number;
  readonly copies: number;
  readonly events: number;
  readonly outbox: Readonly<Record<string, number>>;
  readonly drainS: Seconds;
  /** Exits of replicas that no fault explains. */
  readonly unplannedExits: number;
  readonly errorsLogged: Readonly<Record<string, number>>;
};

export type Line = Start | FaultSpan | Sample | End;

export type SoakRecord = {
  readonly start: Start;
  readonly faults: readonly FaultSpan[];
  readonly samples: readonly Sample[];
  /** Undefined if the run did not reach its end. */
  readonly end: End | undefined;
};

export function openRecord(file: string): { readonly write: (line: Line) => void } {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '');
  // Synchronously, so that no sample is lost if this process is killed.
  return { write: (line) => appendFileSync(file, `${JSON.stringify(line)}\n`) };
}

/** @throws Error if its first line is missing. */
export function readRecord(file: string): SoakRecord {
  return toRecord(readFileSync(file, 'utf8'));
}

export function toRecord(text: string): SoakRecord {
  const lines = text.split('\n').flatMap(parse);
  const start = lines.find((line) => line.kind === 'start');
  if (start === undefined) throw new Error('this is no record of a soak: its first line is missing');
  return {
    start,
    faults: lines.filter((line) => line.kind === 'fault'),
    samples: lines.filter((line) => line.kind === 'sample'),
    end: lines.find((line) => line.kind === 'end'),
  };
}

/** The last line of a killed run may be incomplete. */
function parse(line: string): Line[] {
  try {
    return line === '' ? [] : [JSON.parse(line) as Line];
  } catch {
    return [];
  }
}
