// The record of a soak: JSON lines in one file, written as it goes, so that a run that was killed can still be
// read. The first line says what was run, the last one how it ended; between them samples and faults in the order of time.

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Seconds since the load began. */
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
  /** When it was healed: what it broke may need a while longer. */
  readonly toS: Seconds;
};

/** null: it could not be asked at that moment, as during a fault. */
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
  /** Partitions count for the table that they are of. */
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
  /** Since the beginning, by status; `lost` and `late` for what got no answer. */
  readonly answers: Readonly<Record<string, number>>;
  /** Of first attempts since the last sample, from when each should have been sent. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Different notifications that were answered with a 2xx. */
  readonly acknowledged: number;
  /** Due, and no connection is free. */
  readonly waiting: number;
  /** To be sent again. */
  readonly retrying: number;
  /** Not sent again any more, since too many were waiting for it. */
  readonly givenUp: number;
};

export type SubscriberSample = {
  readonly received: number;
  /** First copies. */
  readonly distinct: number;
  /** Of no notification that was sent. */
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
  /** Of what runs the soak, so that nobody takes its growth for Tallyhook's. */
  readonly harnessRssBytes: number;
};

/** Counted after the load had ended and the outbox was given its time to drain. */
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
  /** Ends of replicas that no fault explains. */
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
  // At once and not through a stream: what was sampled stays, whatever happens to us.
  return { write: (line) => appendFileSync(file, `${JSON.stringify(line)}\n`) };
}

/** @throws Error if it is no record, or one without its first line. */
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

/** The last line of a run that was killed may be half a line. */
function parse(line: string): Line[] {
  try {
    return line === '' ? [] : [JSON.parse(line) as Line];
  } catch {
    return [];
  }
}
