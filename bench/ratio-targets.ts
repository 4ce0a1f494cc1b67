// The targets that compare Tallyhook with something else that ran beside it: with the baseline, with pgbench, or with itself under
// other conditions. Pure.

import { acks, confirmed, cpuUs, type Figure, sizeOf } from './figures.ts';
import { type Run, type RunCase, spreadOf, type SubjectName } from './results.ts';
import { LONE } from './scale.ts';
import { atLeast, atMost, judge, type Limits, type Target } from './verdicts.ts';

type Where = { readonly case: RunCase; readonly variant: string };
type Measured = { readonly where: Where; readonly subject: SubjectName; readonly figure: Figure };

const ratio = (value: number) => `${value.toFixed(2)} ×`;
const perS = (value: number) => `${Math.round(value).toLocaleString('en')}/s`;
const us = (value: number) => `${value.toFixed(0)} µs`;
const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 1)} ms`;

const AT_64: Where = { case: 'bus', variant: '64 connections' };
const at = (connections: string): Where => ({ case: 'concurrency', variant: `${connections} connections` });
const HALF_PEAK: Where = { case: 'rates', variant: '50 % of the peak' };

/** Confirmed on the bus, each against the baseline under the same load. */
const CONFIRMED: readonly (readonly [string, Where, Limits])[] = [
  ['1 connection', { case: 'concurrency', variant: '1 connection' }, atLeast(1, 1.1)],
  ['8 connections', at('8'), atLeast(1, 1.1)],
  ['32 connections', at('32'), atLeast(1.15, 1.3)],
  ['64 connections', AT_64, atLeast(1.25, 1.5)],
  ['256 connections', at('256'), atLeast(1.25, 1.5)],
  ['1,000 connections', at('1,000'), atLeast(1.25, 1.5)],
  ...(
    [
      ['2 ms longer, 64 connections', atLeast(1.2, 1.4)],
      ['2 ms longer, 256 connections', atLeast(1.2, 1.4)],
      ['10 ms longer, 256 connections', atLeast(1.3, 1.6)],
    ] as const
  ).map(([variant, limits]) => [`commits ${variant}`, { case: 'commits', variant }, limits] as const),
  ['bodies of 64 KiB', { case: 'payload', variant: '64 KiB' }, atLeast(1)],
  ['95 % duplicates', { case: 'duplicates', variant: '95 % duplicates' }, atLeast(1)],
];

/** Lower is better. */
const COSTS: readonly (readonly [string, Where, (subject: SubjectName) => Figure, Limits, typeof us])[] = [
  ['CPU time of the process for an event, 64 connections', AT_64, cpuUs, atMost(0.85, 0.75), us],
  ['CPU time of Postgres for an event, 64 connections', AT_64, () => cpuUs('postgres'), atMost(0.6, 0.5), us],
  [
    'p99 of the answer at half of the own peak',
    HALF_PEAK,
    () =>
      ({ answer }) =>
        answer?.p99Ms,
    atMost(1),
    ms,
  ],
  [
    'p50 to the subscriber at half of the own peak',
    HALF_PEAK,
    () =>
      ({ receipt }) =>
        receipt?.p50Ms,
    atMost(1.5),
    ms,
  ],
  [
    'p50 of the answer to a lone sender',
    { case: 'lone', variant: LONE },
    () =>
      ({ answer }) =>
        answer?.p50Ms,
    atMost(1),
    ms,
  ],
];

export function ratioTargets(runs: readonly Run[]): Target[] {
  return [
    ...CONFIRMED.map(([what, where, limits]) =>
      againstBaseline(runs, `Confirmed on the bus, against the baseline: ${what}`, limits, {
        where,
        figureOf: () => confirmed,
        show: perS,
      }),
    ),
    ...(['64', '256'] as const).map((connections) => distance(runs, connections)),
    ...COSTS.map(([name, where, figureOf, limits, show]) =>
      againstBaseline(runs, `${name}, against the baseline`, limits, { where, figureOf, show }),
    ),
    withoutBroker(runs, '64 connections', atLeast(0.3, 0.33)),
    withoutBroker(runs, '256 connections', atLeast(0.33, 0.37)),
    ledgers(runs),
  ];
}

function againstBaseline(
  runs: readonly Run[],
  name: string,
  limits: Limits,
  of: { where: Where; figureOf: (subject: SubjectName) => Figure; show: (value: number) => string },
): Target {
  const { where, figureOf, show } = of;
  const side = (subject: SubjectName) => ({ where, subject, figure: figureOf(subject) });
  return compared(runs, name, limits, { ours: side('tallyhook'), theirs: side('baseline'), show });
}

function compared(
  runs: readonly Run[],
  name: string,
  limits: Limits,
  of: { ours: Measured; theirs: Measured; show: (value: number) => string; note?: string },
): Target {
  const [ours, theirs] = [medianOf(runs, of.ours), medianOf(runs, of.theirs)];
  const { show, note = '' } = of;
  return judge(name, limits, {
    value: quotient(ours, theirs),
    from: `${show(ours ?? 0)} / ${show(theirs ?? 0)}${note}`,
    show: ratio,
  });
}

function medianOf(runs: readonly Run[], { where, subject, figure }: Measured): number | undefined {
  return spreadOf(runs, { ...where, subject }, figure)?.median;
}

function quotient(ours: number | undefined, theirs: number | undefined): number | undefined {
  return ours === undefined || !theirs ? undefined : ours / theirs;
}

/** The ratio to the baseline with servers at a distance, against the same ratio on loopback. */
function distance(runs: readonly Run[], connections: '64' | '256'): Target {
  const leadIn = (where: Where) => {
    const rate = (subject: SubjectName) => medianOf(runs, { where, subject, figure: confirmed });
    return quotient(rate('tallyhook'), rate('baseline'));
  };
  const far = leadIn({ case: 'distance', variant: `${connections} connections` });
  const near = leadIn(connections === '64' ? AT_64 : at(connections));
  const name = `Confirmed with servers 1 ms away, its ratio against that on loopback: ${connections} connections`;
  return judge(name, atLeast(1), {
    value: quotient(far, near),
    from: `${ratio(far ?? 0)} / ${ratio(near ?? 0)}`,
    show: ratio,
  });
}

function withoutBroker(runs: readonly Run[], variant: string, limits: Limits): Target {
  const name = `Ack rate with the broker stopped, against pgbench single-row at 32 clients: ${variant}`;
  return compared(runs, name, limits, {
    ours: { where: { case: 'intake', variant }, subject: 'tallyhook, broker down', figure: acks },
    theirs: { where: { case: 'intake', variant: '32 clients' }, subject: 'pgbench', figure: acks },
    show: perS,
  });
}

function ledgers(runs: readonly Run[]): Target {
  const variants = runs.filter((run) => run.case === 'growth').map(({ variant }) => variant);
  const sizes = [...new Set(variants)].toSorted((a, b) => sizeOf(a) - sizeOf(b));
  return compared(runs, 'Confirmed with the longest ledger, against an empty one', atLeast(0.95), {
    ours: ofLedger(sizes.length > 1 ? sizes.at(-1) : undefined),
    theirs: ofLedger(sizes[0]),
    show: perS,
    note: ` with ${sizes.at(-1)}`,
  });
}

function ofLedger(variant = ''): Measured {
  return { where: { case: 'growth', variant }, subject: 'tallyhook', figure: confirmed };
}
