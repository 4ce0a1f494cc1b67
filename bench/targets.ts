// The targets, and whether a run met them by its own figures. Pure. A target whose case was not measured is unknown, and not
// met.

import { acks } from './figures.ts';
import { floodTargets } from './flood-targets.ts';
import { ratioTargets } from './ratio-targets.ts';
import { type Run, spreadOf } from './results.ts';
import { RATED_PER_S } from './scale.ts';
import { atLeast, atMost, judge, type Target } from './verdicts.ts';

const RSS_MAY_DIFFER = 0.1;
const P99_MAX_MS = 50;
/** What an event cost before the outbox had one row for a batch, as this benchmark measured it. A third less is wanted. */
const WAL_BYTES_BEFORE = 3_600;
const DISK_BYTES_BEFORE = 2_290;
const SHARE_LEFT = 2 / 3;

const perS = (rate: number) => `${Math.round(rate).toLocaleString('en')}/s`;
const bytes = (value: number) => `${Math.round(value).toLocaleString('en')} bytes`;

export function targetsOf(runs: readonly Run[]): Target[] {
  return [
    ...ratioTargets(runs),
    ...written(runs),
    drain(runs),
    halfOfPeak(runs),
    flatMemory(runs),
    ...floodTargets(runs),
  ];
}

function written(runs: readonly Run[]): Target[] {
  const where = { case: 'bus', subject: 'tallyhook', variant: '64 connections' } as const;
  const median = (figure: 'walBytesPerEvent' | 'diskBytesPerEvent') =>
    spreadOf(runs, where, (figures) => figures[figure])?.median;
  const from = (before: number) => `${where.variant}, bodies of half a KiB; ${bytes(before)} before`;
  return [
    judge('WAL for an event', atMost(WAL_BYTES_BEFORE * SHARE_LEFT), {
      value: median('walBytesPerEvent'),
      from: from(WAL_BYTES_BEFORE),
      show: bytes,
    }),
    judge('Growth of tables and indexes for an event', atMost(DISK_BYTES_BEFORE * SHARE_LEFT), {
      value: median('diskBytesPerEvent'),
      from: from(DISK_BYTES_BEFORE),
      show: bytes,
    }),
  ];
}

function drain(runs: readonly Run[]): Target {
  const found = spreadOf(runs, { case: 'backlog' }, ({ drainedPerS }) => drainedPerS)?.median;
  const variant = runs.find((run) => run.case === 'backlog')?.variant;
  return judge('Drain rate of a backlog, against the rated intake at the same time', atLeast(2), {
    value: found === undefined ? undefined : found / RATED_PER_S,
    from: `${perS(found ?? 0)} of the backlog alone (${variant})`,
    show: (value) => `${value.toFixed(2)} ×`,
  });
}

function halfOfPeak(runs: readonly Run[]): Target {
  const where = { case: 'rates', subject: 'tallyhook', variant: '50 % of the peak' } as const;
  const found = spreadOf(runs, where, ({ answer }) => answer?.p99Ms);
  const rate = spreadOf(runs, where, acks)?.median ?? 0;
  return judge('p99 of the answer at half of the peak rate, open loop', atMost(P99_MAX_MS), {
    value: found?.median,
    from: `at ${perS(rate)}; worst run ${found?.max.toFixed(1)} ms`,
    show: (value) => `${value.toFixed(1)} ms`,
  });
}

function flatMemory(runs: readonly Run[]): Target {
  const run = runs.find((each) => each.case === 'outage');
  const { rssSecondTenthMiB: second, rssLastTenthMiB: last } = run?.figures ?? {};
  const isKnown = second !== undefined && last !== undefined;
  return judge('Change of memory over an outage of the broker, up or down', atMost(RSS_MAY_DIFFER), {
    value: isKnown ? Math.abs(last / second - 1) : undefined,
    from: isKnown
      ? `${second.toFixed(0)} MiB in the second tenth, ${last.toFixed(0)} MiB in the last (${run?.variant})`
      : '',
    show: (value) => `${(value * 100).toFixed(1)} %`,
  });
}
