// The charts of the overview, each with its table.

import { type Html, html } from '../../web/index.ts';
import { barChart, emptyChart, lineChart, type Series } from '../kernel/view/chart.ts';
import { exact } from '../kernel/view/numbers.ts';
import { type Column, renderTable } from '../kernel/view/table.ts';
import { duration, utc } from '../kernel/view/times.ts';
import {
  countSeries,
  oldestSeries,
  percentileSeries,
  type StatsAnswer,
  type Step,
  stepLists,
  waitsSeries,
} from './series.pages.ts';

type ChartsOptions = {
  readonly stats: StatsAnswer;
  readonly steps: readonly Step[];
  readonly span: string;
  readonly source: string | undefined;
};

export function renderCharts(options: ChartsOptions): Html {
  return html`${countsChart(options, {
    id: 'outcomes',
    counted: 'deliveries',
    title: 'Deliveries by outcome',
    what: 'Deliveries by how they were answered. “unavailable” was answered with 503 and left no delivery.',
  })}
${countsChart(options, {
  id: 'results',
  counted: 'publications',
  title: 'Publications by result',
  what: 'Each attempt to publish an event, by what RabbitMQ said. Replays are not in it.',
})}
<div class="halves">${timesChart(options, {
    id: 'answer',
    measure: 'answer_ms',
    title: 'Answer time',
    what: 'The time until a delivery was answered.',
  })}${timesChart(options, {
    id: 'lag',
    measure: 'lag_ms',
    title: 'Lag to the bus',
    what: 'The time from accepting an event until RabbitMQ had confirmed it. An event that still waits is in the line “oldest that waited” alone.',
  })}</div>
${waitsChart(options)}`;
}

function countsChart(
  { stats, steps, span, source }: ChartsOptions,
  {
    id,
    counted,
    title,
    what,
  }: { id: string; counted: 'deliveries' | 'publications'; title: string; what: string },
): Html {
  const series = countSeries(counted, steps, stats, source);
  const noun = counted === 'deliveries' ? 'delivery' : 'publication';
  const all = Object.values(stats.total[counted]).reduce((sum, count) => sum + count, 0);
  if (all === 0) return emptyChart(title, `No ${counted} in the last ${span}.`);
  const parts = series.map(({ name, total }) => `${total} ${name}`).join(', ');
  return html`${barChart({
    id,
    title,
    what,
    summary: `${countedOf(all, noun, counted)} in the last ${span}: ${parts}.`,
    steps: steps.map(({ at }) => at),
    series,
    scale: (top) => `peak: ${exact(top)} in ${stepName(stats.step)}`,
    hrefs: stepLists(counted, steps, stats, source),
  })}
${tableOf({ title, steps, series, shown: (value) => exact(value) })}`;
}

const countedOf = (count: number, one: string, many: string) => `${exact(count)} ${count === 1 ? one : many}`;

function timesChart(
  { stats, steps, span }: ChartsOptions,
  { id, measure, title, what }: { id: string; measure: 'answer_ms' | 'lag_ms'; title: string; what: string },
): Html {
  const total = stats.total[measure];
  const series = [
    ...(total === null ? [] : percentileSeries(steps, measure, (percentile) => duration(total[percentile]))),
    ...(measure === 'lag_ms' ? oldestSeries(steps, duration) : []),
  ];
  if (series.length === 0)
    return html`<div>${emptyChart(title, `Nothing to measure in the last ${span}.`)}</div>`;
  const parts = series.map((each) => `${each.name} ${each.total}`).join(', ');
  return html`<div>${lineChart({
    id,
    title,
    what: `${what} Each step shows the percentiles of all that happened in it.`,
    summary: `In the last ${span}: ${parts}.`,
    steps: steps.map(({ at }) => at),
    series,
    scale: (top) => `peak: ${duration(top)} in ${stepName(stats.step)}`,
  })}
${tableOf({ title, steps, series, shown: (value) => duration(value) ?? '' })}</div>`;
}

/** Of all sources: the overview of one source has none. */
function waitsChart({ stats, steps, span }: ChartsOptions): Html | undefined {
  if (stats.waits.length === 0) return undefined;
  const series = waitsSeries(steps);
  const isEmpty = series.every(({ values }) => values.every((value) => (value ?? 0) === 0));
  const title = 'What waited';
  if (isEmpty) return emptyChart(title, `Nothing waited in the last ${span}.`);
  return html`${lineChart({
    id: 'waits',
    title,
    what: 'The most events and deliveries that waited at any moment of a step, of all sources. In a gap nobody could look, as while Postgres is away.',
    summary: `At last: ${series.map(({ name, total }) => `${total ?? 0} ${name}`).join(', ')}.`,
    steps: steps.map(({ at }) => at),
    series,
    scale: (top) => `peak: ${exact(top)} in ${stepName(stats.step)}`,
  })}
${tableOf({ title, steps, series, shown: (value) => exact(value) })}`;
}

/** Steps in which nothing happened are left out. */
function tableOf({
  title,
  steps,
  series,
  shown,
}: {
  title: string;
  steps: readonly Step[];
  series: readonly Series[];
  shown: (value: number) => string;
}): Html {
  const rows = steps
    .map(({ at }, index) => ({ at, index, values: series.map(({ values }) => values[index] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value > 0));
  type Row = (typeof rows)[number];
  const columns: Column<Row>[] = [
    { head: 'From (UTC)', cell: ({ at }) => utc(at), form: 'brief' },
    ...series.map(
      ({ name, hrefs }, index): Column<Row> => ({
        head: name,
        cell: ({ values, index: step }) => {
          const value = values[index] ?? null;
          if (value === null) return undefined;
          const href = value > 0 ? hrefs?.[step] : undefined;
          return href === undefined ? shown(value) : html`<a href="${href}">${shown(value)}</a>`;
        },
        form: 'number',
      }),
    ),
  ];
  return html`<details class="numbers"><summary>Numbers</summary>${renderTable({ caption: `${title}, by step`, columns, items: rows.toReversed(), empty: 'Nothing.' })}</details>`;
}

/** `a minute`, `5 minutes`, `3 hours`. */
function stepName(stepS: number): string {
  const minutes = stepS / 60;
  if (minutes === 1) return 'a minute';
  if (minutes < 60) return `${minutes} minutes`;
  return minutes === 60 ? 'an hour' : `${minutes / 60} hours`;
}
