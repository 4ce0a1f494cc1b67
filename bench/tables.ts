// Renders the results as Markdown tables. Pure. Figures are medians over the rounds, followed by the lowest and highest if there
// was more than one. A dash means not measured.

import { acks, confirmed, type Figure, sizeOf } from './figures.ts';
import { missedIn } from './flood-targets.ts';
import {
  type Figures,
  type Results,
  type Run,
  type RunCase,
  type Served,
  type Spread,
  spreadOf,
  type SubjectName,
} from './results.ts';
import { targetsOf } from './targets.ts';

type Column = {
  readonly name: string;
  readonly cell: (found: (figure: Figure) => Spread | undefined) => string;
};

export const NONE = '–';

const RATES: readonly Column[] = [
  { name: 'acks/s', cell: (found) => withSpread(found(acks)) },
  { name: 'confirmed/s', cell: (found) => withSpread(found(confirmed)) },
];
const ANSWERS: readonly Column[] = [
  { name: 'answer p50', cell: (found) => ms(found(({ answer }) => answer?.p50Ms)) },
  { name: 'p99', cell: (found) => ms(found(({ answer }) => answer?.p99Ms)) },
  { name: 'p99.9', cell: (found) => ms(found(({ answer }) => answer?.p999Ms)) },
];
const RECEIPTS: readonly Column[] = [
  { name: 'to the subscriber p50', cell: (found) => ms(found(({ receipt }) => receipt?.p50Ms)) },
  { name: 'p99', cell: (found) => ms(found(({ receipt }) => receipt?.p99Ms)) },
  { name: 'backlog at the end', cell: (found) => count(found(({ backlogAtEnd }) => backlogAtEnd)) },
  { name: 'drained in', cell: (found) => seconds(found(({ drainS }) => drainS)) },
];
const ANSWER_MEAN: Column = {
  name: 'mean',
  cell: (found) => ms(found(({ answer, answerMeanMs }) => answer?.meanMs ?? answerMeanMs)),
};
const MEMORY: Column = { name: 'peak RSS', cell: (found) => mib(found(({ peakRssMiB }) => peakRssMiB)) };

export function aboutTable(results: Results): string {
  const { hardware, versions, settings, others = [] } = results;
  const rows = [
    ...Object.entries(hardware),
    ...Object.entries(versions),
    ...Object.entries(settings).map(([name, value]) => [`Settings, ${name}`, value] as const),
    ...[results, ...others].flatMap(runRows),
  ] as const;
  return markdown(['', ''], rows);
}

function runRows({ command, commit, startedAt, endedAt }: Results): [string, string][] {
  const minutes = (Date.parse(endedAt) - Date.parse(startedAt)) / 60_000;
  return [
    [
      'Measured',
      `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${minutes.toFixed(0)} minutes, commit ${commit}`,
    ],
    ['Command', `\`${command}\``],
  ];
}

export function targetsTable({ runs }: Results): string {
  return markdown(
    ['', 'floor', 'target', 'found', 'verdict', 'from'],
    targetsOf(runs).map(({ name, floor, target, found, verdict, from }) => [
      name,
      floor,
      target,
      found ?? NONE,
      verdict === undefined ? NONE : verdict === 'missed' ? '**missed**' : verdict,
      from,
    ]),
  );
}

/** All figures of the subjects that a case compares. */
export function subjectsTable(runs: readonly Run[], name: RunCase): string {
  const columns = [...RATES, ...ANSWERS, ANSWER_MEAN, ...RECEIPTS, MEMORY];
  return tableOf(runs, name, { by: 'subject', columns });
}

/** A row for each variant. Its `share` is relative to the subject's first variant. */
export function variantsTable(runs: readonly Run[], name: RunCase): string {
  const columns = [...RATES, ...ANSWERS, ...RECEIPTS, MEMORY];
  return tableOf(runs, name, { by: 'variant', columns });
}

/** What the ratios of Tallyhook's figures are of. Each rival has one variant alone. */
const AT_64 = '64 connections';

export function ratiosTable(runs: readonly Run[]): string {
  const rivals: readonly (readonly [string, RunCase, SubjectName, Figure])[] = [
    ['baseline', 'bus', 'baseline', confirmed],
    ['verify route', 'bus', 'verify route', acks],
    ['pgbench', 'intake', 'pgbench', acks],
    ['confirm publisher', 'bus', 'confirm publisher', confirmed],
  ];
  const ours: readonly (readonly [string, RunCase, SubjectName, Figure])[] = [
    ['accepted and confirmed', 'bus', 'tallyhook', confirmed],
    ['acks', 'bus', 'tallyhook', acks],
    ['acks, broker stopped', 'intake', 'tallyhook, broker down', acks],
  ];
  const rows = ours.map(([label, name, subject, figure]) => {
    const own = spreadOf(runs, { case: name, subject, variant: AT_64 }, figure)?.median;
    const ratios = rivals.map(([, rivalCase, rival, rivalFigure]) => {
      const theirs = spreadOf(runs, { case: rivalCase, subject: rival }, rivalFigure)?.median;
      return own === undefined || !theirs ? NONE : `${(own / theirs).toFixed(2)} ×`;
    });
    return [`Tallyhook: ${label}`, own === undefined ? NONE : rate(own), ...ratios];
  });
  return markdown(['', '/s', ...rivals.map(([label]) => `of ${label}`)], rows);
}

/** The rates of each ledger, replica count and so on, as shares of the first one's. */
export function sharesTable(runs: readonly Run[], name: RunCase): string {
  const variants = variantsOf(runs, name);
  const rows = variants.map((variant) => [
    variant,
    ...[acks, confirmed].flatMap((figure) => {
      const found = spreadOf(runs, { case: name, subject: 'tallyhook', variant }, figure);
      const first = spreadOf(runs, { case: name, subject: 'tallyhook', variant: variants[0] ?? '' }, figure);
      return [withSpread(found), found && first ? `${(found.median / first.median).toFixed(2)} ×` : NONE];
    }),
  ]);
  return markdown(['', 'acks/s', 'of the first', 'confirmed/s', 'of the first'], rows);
}

export function longCasesTable(runs: readonly Run[]): string {
  const long = runs.filter(({ case: name }) => name === 'backlog' || name === 'outage');
  const rows = long.map(({ case: name, variant, figures }) => {
    const { answer, drainedPerS = 0, acksPerS = 0 } = figures;
    const latency = answer
      ? `p50 ${toMs(answer.p50Ms)}, p99 ${toMs(answer.p99Ms)}, p99.9 ${toMs(answer.p999Ms)}`
      : NONE;
    const found = name === 'backlog' ? `${rate(drainedPerS)}/s drained,` : `${memoryOver(figures)};`;
    return [name, variant, `${found} ${rate(acksPerS)}/s accepted`, latency];
  });
  return markdown(['', '', 'found', 'answers'], rows);
}

/** A row for each flood in the order of the runs, and whether it met its targets. */
export function floodsTable(runs: readonly Run[]): string {
  const rows = runs
    .filter((run) => run.case === 'floods')
    .map(({ variant, figures }) => {
      const { kept, fresh, livez, rssBeforeMiB, rssGrowthMiB, logBytes, refusalsPerS, flood } = figures;
      const missed = missedIn(figures);
      return [
        variant,
        flood === undefined ? NONE : `${rate(flood.mostOpen)} / ${rate(flood.opened)}`,
        goodOf(kept),
        worstOf(kept),
        goodOf(fresh),
        worstOf(fresh),
        goodOf(livez),
        livez ? toMs(livez.latency.maxMs) : NONE,
        toMib(rssBeforeMiB),
        rssGrowthMiB === undefined ? NONE : `+${toMib(rssGrowthMiB)}`,
        logBytes === undefined ? NONE : `${rate(logBytes / 1_024)} KiB`,
        refusalsPerS === undefined ? NONE : rate(refusalsPerS),
        missed.length === 0 ? 'met' : `**missed**: ${missed.join(', ')}`,
      ];
    });
  return markdown(FLOOD_HEADS, rows);
}

const FLOOD_HEADS = [
  'connections',
  'open at most / opened',
  'kept: 2xx',
  'worst (p99)',
  'new ones: 2xx',
  'worst (p99)',
  '`/livez`: 2xx',
  'worst',
  'RSS before',
  'growth',
  'log',
  'refusals/s',
  '',
] as const;

const goodOf = (served: Served | undefined) =>
  served ? `${rate(served.good)} of ${rate(served.sent)}` : NONE;
const worstOf = (served: Served | undefined) =>
  served ? `${toMs(served.latency.maxMs)} (${toMs(served.latency.p99Ms)})` : NONE;

function memoryOver({ rssSecondTenthMiB, rssLastTenthMiB, peakRssMiB }: Figures): string {
  return `RSS ${toMib(rssSecondTenthMiB)} in the second tenth, ${toMib(rssLastTenthMiB)} in the last, peak ${toMib(peakRssMiB)}`;
}

function tableOf(
  runs: readonly Run[],
  name: RunCase,
  { by, columns }: { by: 'subject' | 'variant'; columns: readonly Column[] },
): string {
  const rows = variantsOf(runs, name).flatMap((variant) =>
    subjectsOf(runs, name).flatMap((subject) => {
      const mine = runs.filter((run) => run.subject === subject && run.variant === variant);
      if (!mine.some((run) => run.case === name)) return [];
      const found = (figure: Figure) => spreadOf(mine, { case: name }, figure);
      const labels = by === 'subject' ? [`${subject} (${variant})`] : [variant, subject];
      return [[...labels, ...columns.map(({ cell }) => cell(found))]];
    }),
  );
  const heads = by === 'subject' ? [''] : ['', ''];
  return markdown([...heads, ...columns.map((column) => column.name)], rows);
}

export function subjectsOf(runs: readonly Run[], name: RunCase): SubjectName[] {
  return [...new Set(runs.filter((run) => run.case === name).map(({ subject }) => subject))];
}

/** In numeric order, from the smallest to the largest. */
export function variantsOf(runs: readonly Run[], name: RunCase): string[] {
  const found = [...new Set(runs.filter((run) => run.case === name).map(({ variant }) => variant))];
  return found.toSorted((a, b) => sizeOf(a) - sizeOf(b));
}

/** Columns without any value are left out. Columns of numbers are aligned to the right. */
export function markdown(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const isKept = heads.map((_, column) => column === 0 || rows.some((row) => (row[column] ?? NONE) !== NONE));
  const isRight = heads.map(
    (_, column) => column > 0 && rows.every((row) => /^(–|[+-]?\d)/.test(row[column] ?? NONE)),
  );
  const line = (cells: readonly string[]) => `| ${cells.filter((_, column) => isKept[column]).join(' | ')} |`;
  const rule = line(heads.map((_, column) => (isRight[column] ? '---:' : '---')));
  return [line(heads), rule, ...rows.map(line)].join('\n');
}

export function withSpread(found: Spread | undefined): string {
  if (found === undefined) return NONE;
  if (found.min === found.max) return rate(found.median);
  return `${rate(found.median)} (${rate(found.min)} – ${rate(found.max)})`;
}

export const rate = (value: number) => Math.round(value).toLocaleString('en');
const count = (found: Spread | undefined) => (found ? rate(found.median) : NONE);
const seconds = (found: Spread | undefined) => (found ? `${found.median.toFixed(1)} s` : NONE);
const mib = (found: Spread | undefined) => (found ? toMib(found.median) : NONE);
const toMib = (value: number | undefined) => (value === undefined ? NONE : `${value.toFixed(0)} MiB`);
const toMs = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const ms = (found: Spread | undefined) => (found ? toMs(found.median) : NONE);
