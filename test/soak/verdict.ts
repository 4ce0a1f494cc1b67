// Judges whether anything grows without bound, from the second half of a soak, when everything is warm, and from samples
// that no fault affected. What grows by design (the rows of the ledger) is judged by its size per event and its share of
// dead rows, everything else by its slope. Pure: a record in, judgements out. Too few samples are "not judged", and that is
// no success.

import type { End, FaultSpan, ReplicaSample, Sample, SoakRecord, TableSample } from './record.ts';
import { median, type Point, slopeOf } from './statistics.ts';

export type Judgement = {
  readonly what: string;
  /** The unit of `level`, `rise` and `allowed`. */
  readonly unit: string;
  /** The median. */
  readonly level: number;
  /** By how much the slope raises it over the second half. */
  readonly rise: number;
  /** A greater rise is growth. */
  readonly allowed: number;
  /** Values up to this are no growth, whatever the rise; undefined if only the rise counts. */
  readonly explained: number | undefined;
  readonly verdict: 'bounded' | 'grows' | 'not judged';
};

/** Something that must be true at the end. */
type Check = { readonly what: string; readonly value: number; readonly passed: boolean };

export type Verdict = {
  readonly judgements: readonly Judgement[];
  readonly checks: readonly Check[];
  readonly passed: boolean;
};

/** Tables that grow with each delivery, event, job or publication, for good or for RETENTION_DAYS. */
const LEDGER_TABLES = ['deliveries', 'events', 'jobs', 'publications', 'publication_batches'] as const;

/** They grow with what waits to be published. */
const OUTBOX_TABLES: readonly string[] = ['outbox_batches', 'outbox_held'];

/** Of the level. A greater rise is growth. */
const ALLOWED_SHARE = 0.1;

/** Fewer samples give no reliable slope. */
const SAMPLES_MIN = 6;

/** The longest that recovery from a healed fault affects samples: reconnects, a backlog, a vacuum. */
const SETTLE_MAX_S = 60;
const SETTLE_SHARE = 0.25;

/** A rise up to these is always allowed: a tenth of a low level would be one connection, or one page. */
const FLOORS = { MiB: 4, '': 4, rows: 2_000, 'bytes an event': 4, '% dead': 5 } as const;

/**
 * Postgres vacuums a table by itself when a fifth of its rows are dead (autovacuum_vacuum_scale_factor), and a vacuum
 * takes time. So the dead rows of a growing table grow with it, up to this share in percent.
 */
const DEAD_SHARE_MAX = 30;

/** Of all deliveries: some seconds of an hour. */
const UNSENT_SHARE = 0.005;

/** Of an outbox entry with its index entries: 1.1 KB were measured for notifications of half a KiB. */
const OUTBOX_ENTRY_BYTES = 1_500;
/** How long confirmed entries stay as dead rows: autovacuum checks a table once a minute, and may just miss the threshold. */
const UNVACUUMED_S = 120;

const MIB = 1024 * 1024;

type Series = {
  readonly what: string;
  readonly unit: keyof typeof FLOORS;
  readonly points: readonly Point[];
  /** No value may exceed this; undefined if only the slope counts. */
  readonly limit?: number;
  /** Up to this it is bounded, whatever its slope. */
  readonly explained?: number;
};

export function judge(record: SoakRecord): Verdict {
  const { end } = record;
  const half = secondHalf(record);
  const judgements = [
    ...replicaSeries(half),
    ...connectionSeries(half),
    ...outboxSeries(half, record),
    ...ledgerSeries(half),
  ].map(judgeSeries);
  const checks = end === undefined ? [] : [sentInTime(record), ...checksOf(end)];
  const isBounded = judgements.length > 0 && judgements.every(({ verdict }) => verdict === 'bounded');
  return {
    judgements,
    checks,
    passed: isBounded && end !== undefined && checks.every(({ passed }) => passed),
  };
}

/** Whether no fault was at work then, or less than `settleS` before. */
export function isQuiet(atS: number, faults: readonly FaultSpan[], settleS: number): boolean {
  return !faults.some(({ fromS, toS }) => atS >= fromS && atS <= toS + settleS);
}

export function settleTimeS(faultEveryS: number): number {
  return Math.min(SETTLE_MAX_S, faultEveryS * SETTLE_SHARE);
}

function secondHalf({ start, samples, faults }: SoakRecord): Sample[] {
  const settleS = settleTimeS(start.faultEveryS);
  const middleS = (samples.at(-1)?.atS ?? 0) / 2;
  return samples.filter(({ atS }) => atS >= middleS && isQuiet(atS, faults, settleS));
}

function replicaSeries(half: readonly Sample[]): Series[] {
  const names = new Set(half.flatMap(({ replicas }) => Object.keys(replicas)));
  return [...names].toSorted().flatMap((name) => {
    const pid = longestRun(half.flatMap(({ replicas }) => replicas[name]?.pid ?? []));
    const read = (of: (sample: ReplicaSample) => number | null) =>
      pointsOf(half, ({ replicas }) => {
        const sample = replicas[name];
        return sample && sample.pid === pid ? of(sample) : null;
      });
    return [
      { what: `${name}: resident memory`, unit: 'MiB', points: read(({ rssBytes }) => mib(rssBytes)) },
      { what: `${name}: open file descriptors`, unit: '', points: read(({ fds }) => fds) },
      { what: `${name}: active handles`, unit: '', points: read(({ handles }) => handles) },
    ] satisfies Series[];
  });
}

/** The process with the most samples. A restarted replica starts small, so only samples of one process are compared. */
function longestRun(pids: readonly number[]): number | undefined {
  const samples = new Map<number, number>();
  for (const pid of pids) samples.set(pid, (samples.get(pid) ?? 0) + 1);
  return [...samples].toSorted((a, b) => b[1] - a[1])[0]?.[0];
}

function connectionSeries(half: readonly Sample[]): Series[] {
  return [
    {
      what: 'connections at Postgres',
      unit: '',
      points: pointsOf(half, ({ postgres }) => postgres && sum(Object.values(postgres.connections))),
    },
    {
      what: 'connections at RabbitMQ',
      unit: '',
      points: pointsOf(half, ({ broker }) => broker.connections),
    },
  ];
}

/** The outbox and all tables that must not grow with the intake. */
function outboxSeries(half: readonly Sample[], record: SoakRecord): Series[] {
  const entries = explainedEntries(record);
  const tables = tablesIn(half).filter((name) => !isLedgerTable(name));
  const size: Series = {
    what: 'outbox with its indexes',
    unit: 'MiB',
    points: pointsOf(half, ({ postgres }) =>
      postgres ? mib(sum(OUTBOX_TABLES.map((name) => bytesOf(postgres.tables[name]) ?? 0))) : null,
    ),
    explained: (entries * OUTBOX_ENTRY_BYTES) / MIB,
  };
  const dead = tables.map(
    (name): Series => ({
      what: `${name}: dead rows`,
      unit: 'rows',
      points: pointsOf(half, ({ postgres }) => postgres?.tables[name]?.dead ?? null),
      ...(OUTBOX_TABLES.includes(name) && { explained: entries }),
    }),
  );
  return [size, ...dead];
}

/** The most entries that the outbox needed space for: its deepest backlog, and what was confirmed but not vacuumed yet. */
function explainedEntries({ samples, start }: SoakRecord): number {
  const depths = samples.map(({ postgres }) => (postgres ? sum(Object.values(postgres.outbox)) : 0));
  return Math.max(0, ...depths) + start.ratePerS * UNVACUUMED_S;
}

function ledgerSeries(half: readonly Sample[]): Series[] {
  return tablesIn(half)
    .filter(isLedgerTable)
    .flatMap((name): Series[] => [
      {
        what: `${name}: table and indexes`,
        unit: 'bytes an event',
        points: pointsOf(half, (sample) => perEvent(bytesOf(sample.postgres?.tables[name]), sample)),
      },
      {
        what: `${name}: dead rows`,
        unit: '% dead',
        points: pointsOf(half, ({ postgres }) => deadShare(postgres?.tables[name])),
        limit: DEAD_SHARE_MAX,
        explained: DEAD_SHARE_MAX,
      },
    ]);
}

export function isLedgerTable(name: string): boolean {
  return LEDGER_TABLES.some((table) => table === name);
}

export function tablesIn(samples: readonly Sample[]): string[] {
  return [...new Set(samples.flatMap(({ postgres }) => Object.keys(postgres?.tables ?? {})))].toSorted();
}

export function perEvent(bytes: number | null, { sender }: Sample): number | null {
  return bytes === null || sender === null || sender.acknowledged === 0 ? null : bytes / sender.acknowledged;
}

export function bytesOf(table: TableSample | undefined): number | null {
  return table === undefined ? null : table.tableBytes + table.indexBytes;
}

function deadShare(table: TableSample | undefined): number | null {
  const rows = table === undefined ? 0 : table.live + table.dead;
  return table === undefined || rows === 0 ? null : (table.dead / rows) * 100;
}

/** Missing values are left out. */
function pointsOf(samples: readonly Sample[], read: (sample: Sample) => number | null): Point[] {
  return samples.flatMap((sample) => {
    const value = read(sample);
    return value === null ? [] : [[sample.atS, value] as const];
  });
}

function judgeSeries({ what, unit, points, limit, explained }: Series): Judgement {
  const level = median(points.map(([, y]) => y));
  const spanS = (points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0);
  const rise = slopeOf(points) * spanS;
  const allowed = Math.max(FLOORS[unit], level * ALLOWED_SHARE);
  const highest = Math.max(...points.map(([, y]) => y));
  const isAbove = limit !== undefined && highest > limit;
  const isExplained = explained !== undefined && highest <= explained;
  const grows = isAbove || (rise > allowed && !isExplained);
  const verdict = points.length < SAMPLES_MIN ? 'not judged' : grows ? 'grows' : 'bounded';
  return { what, unit, level, rise, allowed, explained, verdict };
}

/** Otherwise the machine was too slow for this rate, and the run proves nothing about it. */
function sentInTime({ samples, start }: SoakRecord): Check {
  const waiting = samples.findLast(({ sender }) => sender !== null)?.sender?.waiting ?? Number.NaN;
  const planned = start.ratePerS * start.minutes * 60;
  return {
    what: 'deliveries still unsent when the load ended',
    value: waiting,
    passed: waiting <= planned * UNSENT_SHARE,
  };
}

const zero = (what: string, value: number): Check => ({ what, value, passed: value === 0 });

function checksOf(end: End): Check[] {
  return [
    { what: 'acknowledged, different events', value: end.acknowledged, passed: end.acknowledged > 0 },
    // The ledger also has events whose answer was lost.
    { what: 'in the ledger', value: end.events, passed: end.events >= end.acknowledged },
    {
      what: 'received by the subscriber, first copies',
      value: end.onTheBus,
      passed: end.onTheBus === end.events,
    },
    zero('lost: acknowledged and never received', end.lost),
    zero('unexpected: received and never sent', end.unexpected),
    zero('left in the outbox', sum(Object.values(end.outbox))),
    zero('unplanned exits', end.unplannedExits),
  ];
}

function mib(bytes: number | null): number | null {
  return bytes === null ? null : bytes / MIB;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
