// Renders results into docs/performance.md, between its markers, and the plots beside it. The text outside the markers stays as
// it is. The same results give the same bytes.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ROOT } from '../scripts/relay.ts';
import { barPlot, linePlot } from './plots.ts';
import { comparisonTable, costTable, tuningTable } from './cost-tables.ts';
import { acks, confirmed, type Figure, sizeOf } from './figures.ts';
import { PGBENCH_CLIENTS } from './pgbench.ts';
import { type Results, type Run, type RunCase, spreadOf } from './results.ts';
import {
  aboutTable,
  floodsTable,
  longCasesTable,
  ratiosTable,
  sharesTable,
  subjectsOf,
  subjectsTable,
  targetsTable,
  variantsOf,
  variantsTable,
} from './tables.ts';

const DOCUMENT = join(ROOT, 'docs/performance.md');
const PLOTS = join(ROOT, 'docs/plots');

type Section = {
  readonly name: string;
  readonly cases: readonly RunCase[];
  readonly render: (results: Results) => string;
};

/** By the name in the document's markers: `<!-- bench:targets -->` … `<!-- /bench:targets -->`. */
export const SECTIONS: readonly Section[] = [
  { name: 'about', cases: [], render: aboutTable },
  { name: 'targets', cases: [], render: targetsTable },
  {
    name: 'side-by-side',
    cases: ['bus'],
    render: ({ runs }) => `${subjectsTable(runs, 'bus')}\n\n${costTable(runs, 'bus')}`,
  },
  {
    name: 'intake',
    cases: ['intake'],
    render: ({ runs }) => `${subjectsTable(runs, 'intake')}\n\n${costTable(runs, 'intake')}`,
  },
  { name: 'ratios', cases: ['bus'], render: ({ runs }) => ratiosTable(runs) },
  { name: 'ceiling', cases: ['ceiling'], render: ({ runs }) => subjectsTable(runs, 'ceiling') },
  { name: 'tuning', cases: ['tuning'], render: ({ runs }) => tuningTable(runs) },
  ...(['concurrency', 'lone', 'commits', 'distance'] as const).map((name) => comparison(name)),
  { name: 'rates', cases: ['rates'], render: ({ runs }) => variantsTable(runs, 'rates') },
  {
    name: 'growth',
    cases: ['growth'],
    render: ({ runs }) => `${sharesTable(runs, 'growth')}\n\n${variantsTable(runs, 'growth')}`,
  },
  {
    name: 'replicas',
    cases: ['replicas'],
    render: ({ runs }) => `${sharesTable(runs, 'replicas')}\n\n${variantsTable(runs, 'replicas')}`,
  },
  ...(['payload', 'duplicates'] as const).map((name) => comparison(name)),
  { name: 'queues', cases: ['queues'], render: ({ runs }) => variantsTable(runs, 'queues') },
  { name: 'trouble', cases: ['backlog', 'outage'], render: ({ runs }) => longCasesTable(runs) },
  { name: 'floods', cases: ['floods'], render: ({ runs }) => floodsTable(runs) },
  {
    name: 'gaps',
    cases: [],
    render: ({ runs, skipped, failures }) =>
      [...unsteady(runs), ...skipped, ...failures].map((each) => `- ${each.split('\n')[0]}`).join('\n') ||
      'None.',
  },
];

/**
 * Says how many windows began before their subject was steady. Not of runs without a warm-up, and not of those that choose a pool,
 * where it is short for all.
 */
function unsteady(runs: readonly Run[]): string[] {
  const watched = runs.filter((run) => run.case !== 'tuning' && (run.figures.warmUpS ?? 0) > 0);
  const early = watched.filter(({ figures }) => figures.isSteady === false);
  if (early.length === 0) return [];
  return [
    `The warm-up of ${early.length} of ${watched.length} runs ended before an event’s CPU time was steady.`,
  ];
}

/** Both sides, what they cost, and all figures. */
function comparison(name: RunCase): Section {
  return {
    name,
    cases: [name],
    render: ({ runs }) =>
      [comparisonTable(runs, name), costTable(runs, name), variantsTable(runs, name)].join('\n\n'),
  };
}

/** Writes both. Sections whose cases were not measured stay as they are. @returns the paths */
export function renderDocument(results: Results): string[] {
  const measured = new Set(results.runs.map((run) => run.case));
  const isShown = (cases: readonly RunCase[]) =>
    cases.length === 0 || cases.some((name) => measured.has(name));
  let text = readFileSync(DOCUMENT, 'utf8');
  for (const { name, cases, render } of SECTIONS)
    if (isShown(cases)) text = fillIn(text, name, render(results));
  writeFileSync(DOCUMENT, text);
  mkdirSync(PLOTS, { recursive: true });
  const plots = plotsOf(results.runs).map(({ name, svg }) => {
    const path = join(PLOTS, `performance-${name}.svg`);
    writeFileSync(path, svg);
    return path;
  });
  return [DOCUMENT, ...plots].map((path) => relative(ROOT, path));
}

/** Pure. @throws Error if the document lacks the markers: the figures would be lost unnoticed */
export function fillIn(text: string, name: string, content: string, page = 'docs/performance.md'): string {
  const [begin, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} has no ${begin} … ${end}`);
  return `${text.slice(0, from + begin.length)}\n${content}\n${text.slice(to)}`;
}

type Plot = { readonly name: string; readonly svg: string };

function plotsOf(runs: readonly Run[]): Plot[] {
  return [
    ...sideBySidePlot(runs),
    ...curvePlots(runs),
    ...variantPlot(runs, 'growth', 'Rates by the events already in the ledger'),
    ...variantPlot(runs, 'replicas', 'Rates by the number of replicas'),
    ...variantPlot(runs, 'payload', 'Rates by the size of the body'),
    ...variantPlot(runs, 'duplicates', 'Rates by the share of duplicates'),
    ...variantPlot(runs, 'queues', 'Rates by the type of the subscriber’s queue'),
    ...troublePlots(runs),
  ];
}

function medianOf(
  runs: readonly Run[],
  where: Parameters<typeof spreadOf>[1],
  figure: Figure,
): number | null {
  return spreadOf(runs, where, figure)?.median ?? null;
}

function sideBySidePlot(runs: readonly Run[]): Plot[] {
  const shown = (['bus', 'intake'] as const).flatMap((name) =>
    subjectsOf(runs, name).map((subject) => ({
      case: name,
      subject,
      variant: subject === 'pgbench' ? `${PGBENCH_CLIENTS} clients` : '64 connections',
    })),
  );
  if (shown.length === 0) return [];
  const svg = barPlot({
    title: 'Side by side',
    subtitle: 'Median of the rounds; pgbench and "broker down" with the broker stopped',
    y: { name: 'a second' },
    groups: shown.map(({ subject }) => subject),
    series: [
      { name: 'acknowledged', values: shown.map((where) => medianOf(runs, where, acks)) },
      { name: 'confirmed on the bus', values: shown.map((where) => medianOf(runs, where, confirmed)) },
    ],
  });
  return [{ name: 'side-by-side', svg }];
}

function curvePlots(runs: readonly Run[]): Plot[] {
  const lines = (name: RunCase, x: (run: Run) => number, figure: Figure) =>
    subjectsOf(runs, name).map((subject) => ({
      name: subject,
      points: variantsOf(runs, name)
        .flatMap((variant): [number, number | null][] => {
          const run = runs.find(
            (each) => each.case === name && each.subject === subject && each.variant === variant,
          );
          return run ? [[x(run), medianOf(runs, { case: name, subject, variant }, figure)]] : [];
        })
        .toSorted(([a], [b]) => a - b),
    }));
  const concurrency = lines('concurrency', ({ variant }) => sizeOf(variant), confirmed);
  const p99 = lines(
    'rates',
    ({ figures }) => figures.acksPerS ?? 0,
    ({ answer }) => answer?.p99Ms,
  );
  return [
    ...(concurrency.length === 0
      ? []
      : [
          {
            name: 'concurrency',
            svg: linePlot({
              title: 'Confirmed on the bus by concurrency, closed loop',
              x: { name: 'connections' },
              y: { name: 'confirmed', unit: '/s', min: 0 },
              series: concurrency,
            }),
          },
        ]),
    ...(p99.length === 0
      ? []
      : [
          {
            name: 'rates',
            svg: linePlot({
              title: 'p99 of the answer by rate, open loop',
              subtitle: 'From the intended time of sending',
              x: { name: 'rate', unit: '/s' },
              y: { name: 'p99', unit: 'ms', scale: 'log' },
              series: p99,
            }),
          },
        ]),
  ];
}

function variantPlot(runs: readonly Run[], name: RunCase, title: string): Plot[] {
  const groups = variantsOf(runs, name);
  if (groups.length === 0) return [];
  const series = subjectsOf(runs, name).flatMap((subject) =>
    (
      [
        ['acknowledged', acks],
        ['confirmed', confirmed],
      ] as const
    ).flatMap(([label, figure]) => {
      const values = groups.map((variant) => medianOf(runs, { case: name, subject, variant }, figure));
      // The baseline answers after the confirm, so its two rates are the same.
      const isRepeat = subject === 'baseline' && label === 'acknowledged';
      return isRepeat || values.every((value) => value === null)
        ? []
        : [{ name: `${subject}, ${label}`, values }];
    }),
  );
  return [{ name, svg: barPlot({ title, y: { name: 'a second' }, groups, series }) }];
}

function troublePlots(runs: readonly Run[]): Plot[] {
  const drain = runs.find((run) => run.case === 'backlog');
  const outage = runs.find((run) => run.case === 'outage');
  return [
    ...(drain?.figures.backlog
      ? [
          {
            name: 'backlog',
            svg: linePlot({
              title: 'A backlog is drained while intake goes on',
              subtitle: drain.variant,
              x: { name: 'time', unit: 's' },
              y: { name: 'entries left', min: 0 },
              series: [{ name: 'backlog', points: drain.figures.backlog }],
            }),
          },
        ]
      : []),
    ...(outage?.figures.rssMiB
      ? [
          {
            name: 'outage',
            svg: linePlot({
              title: 'Memory while the broker is stopped',
              subtitle: `${outage.variant}, as fast as they are taken`,
              x: { name: 'time', unit: 's' },
              y: { name: 'RSS', unit: 'MiB', min: 0 },
              series: [{ name: 'Tallyhook', points: outage.figures.rssMiB }],
            }),
          },
        ]
      : []),
  ];
}
