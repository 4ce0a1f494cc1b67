// Charts over time, drawn as SVG on the server: stacked bars of counts, and lines of durations. The page scales them to its
// width: places are shares of the width, so text keeps its size. Each chart names what it shows for a screen reader, and stands
// beside a table with its numbers.

import { type Content, type Html, html } from '../../../web/index.ts';
import { exact } from './numbers.ts';

export type Series = {
  readonly name: string;
  /** A class of console.css: colour, and what tells it from others of the same colour. */
  readonly form: string;
  /** Of each step; null where nothing was measured. */
  readonly values: readonly (number | null)[];
  /** Shown in the legend behind the name. */
  readonly total?: string | undefined;
  /** The list of what it counts. */
  readonly href?: string | undefined;
  /** The same for each step. */
  readonly hrefs?: readonly string[] | undefined;
};

export type ChartOptions = {
  /** Unique on the page. */
  readonly id: string;
  readonly title: string;
  /** What it shows, below it. */
  readonly what: string;
  /** Its totals in a sentence, for a screen reader. */
  readonly summary: string;
  /** When each step begins, oldest first. */
  readonly steps: readonly string[];
  readonly series: readonly Series[];
  /** The largest value, as text. */
  readonly scale: (value: number) => string;
  /** Of each step, the list of what it counts. For a pointer alone: the numbers below have these links for all. */
  readonly hrefs?: readonly string[] | undefined;
};

/** A step is one wide in the drawing; 100 is the height of the largest value. */
const HEIGHT = 100;
const GAP = 0.18;

/** Bars of one step stand on each other, the first series at the bottom. */
export function barChart(options: ChartOptions): Html {
  const sums = options.steps.map((_, step) =>
    options.series.reduce((sum, { values }) => sum + (values[step] ?? 0), 0),
  );
  const top = Math.max(1, ...sums);
  const below = options.steps.map(() => 0);
  const bars = options.series.map(({ form, values }) =>
    options.steps.map((_, step) => {
      const height = (HEIGHT * (values[step] ?? 0)) / top;
      if (height === 0) return undefined;
      const from = below[step] ?? 0;
      below[step] = from + height;
      return html`<rect class="${form}" x="${step + GAP / 2}" y="${rounded(HEIGHT - from - height)}" width="${1 - GAP}" height="${rounded(height)}"/>`;
    }),
  );
  return frame(options, {
    top,
    drawn: bars,
    swatch: (form) => html`<rect class="${form}" x="4" y="1" width="10" height="10"/>`,
  });
}

/** A line breaks where nothing was measured. Where most steps have nothing, the chart says so. */
export function lineChart(options: ChartOptions): Html {
  const { series, steps } = options;
  const top = Math.max(1, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const measured = steps.filter((_, step) => series.some(({ values }) => (values[step] ?? null) !== null));
  return frame(options, {
    top,
    drawn: series.map(({ form, values }) => runsOf(values).map((run) => drawRun(run, form, top))),
    note:
      measured.length < steps.length / 2
        ? `measured in ${measured.length} of ${steps.length} steps`
        : undefined,
    swatch: (form) => html`<line class="${form}" x1="0" x2="20" y1="6" y2="6"/>`,
  });
}

type Point = readonly [x: number, value: number];

/** What was measured without a break, in the middle of its steps. */
function runsOf(values: readonly (number | null)[]): Point[][] {
  const runs: Point[][] = [];
  let open: Point[] | undefined;
  for (const [step, value] of values.entries()) {
    if (value === null) {
      open = undefined;
      continue;
    }
    if (open === undefined) runs.push((open = []));
    open.push([step + 0.5, value]);
  }
  return runs;
}

/** A single value is a point: a line of no length, whose round ends are seen. */
function drawRun(run: readonly Point[], form: string, top: number): Html {
  const places = run.map(([x, value]) => [rounded(x), rounded(HEIGHT - (HEIGHT * value) / top)] as const);
  const [first] = places;
  if (places.length > 1 || first === undefined) {
    return html`<polyline class="${form}" points="${places.map((place) => place.join(',')).join(' ')}"/>`;
  }
  const [x, y] = first;
  return html`<line class="${form} point" x1="${x}" x2="${x}" y1="${y}" y2="${y}"/>`;
}

/** In place of a chart that would show nothing. */
export const emptyChart = (title: string, why: string): Html =>
  html`<figure class="chart"><figcaption>${title}</figcaption><p class="empty">${why}</p></figure>`;

function frame(
  { id, title, what, summary, steps, series, scale, hrefs = [] }: ChartOptions,
  {
    top,
    drawn,
    swatch,
    note,
  }: { top: number; drawn: Content; swatch: (form: string) => Html; note?: string | undefined },
): Html {
  const links = hrefs.map(
    (href, step) =>
      html`<a href="${href}" tabindex="-1" title="${shortTime(steps[step] ?? '', steps)}: ${saidOf(series, step)}"></a>`,
  );
  return html`<figure class="chart"><figcaption>${title}${note !== undefined && html` <span class="dim">${note}</span>`}</figcaption>
<div class="plot-box"><svg class="plot" role="img" aria-labelledby="${id}-title ${id}-desc" aria-describedby="${id}-what"><title id="${id}-title">${title}</title><desc id="${id}-desc">${summary}</desc>
<line class="grid" x1="0" x2="100%" y1="16" y2="16"/><line class="grid" x1="0" x2="100%" y1="66" y2="66"/><line class="grid" x1="0" x2="100%" y1="116" y2="116"/>
<svg x="0" y="16" width="100%" height="100" viewBox="0 0 ${steps.length} ${HEIGHT}" preserveAspectRatio="none">${drawn}</svg>
<text x="0" y="11">${scale(top)}</text>
${timeLabels(steps)}</svg>${links.length > 0 && html`<div class="plot-links" aria-hidden="true">${links}</div>`}</div>
<ul class="legend">${series.map(
    ({ name, form, total, href }) =>
      html`<li><svg class="swatch" aria-hidden="true">${swatch(form)}</svg>${href === undefined ? name : html`<a href="${href}">${name}</a>`}${total !== undefined && html` <b>${total}</b>`}</li>`,
  )}</ul>
<p class="what" id="${id}-what">${what}</p></figure>`;
}

/** `3 accepted, 1 duplicate`. */
const saidOf = (series: readonly Series[], step: number): string =>
  series
    .filter(({ values }) => (values[step] ?? 0) > 0)
    .map(({ name, values }) => `${exact(values[step] ?? 0)} ${name}`)
    .join(', ') || 'nothing';

/** At the start, the middle and the end. The last step has just begun, so it is lower than it will be. */
function timeLabels(steps: readonly string[]): Content {
  const at = (step: number, x: string, anchor: string, more = '') => {
    const time = steps[step];
    return (
      time !== undefined &&
      html`<text x="${x}" y="131" text-anchor="${anchor}">${shortTime(time, steps)}${more}</text>`
    );
  };
  return [
    at(0, '0', 'start'),
    at(Math.floor(steps.length / 2), '50%', 'middle'),
    at(steps.length - 1, '100%', 'end', ', so far'),
  ];
}

const DAY_MS = 86_400_000;

/** `13:40`; with the day where the chart covers more than one. */
function shortTime(time: string, steps: readonly string[]): string {
  const span = Date.parse(steps.at(-1) ?? time) - Date.parse(steps[0] ?? time);
  return span >= DAY_MS ? `${time.slice(5, 10)} ${time.slice(11, 16)}` : time.slice(11, 16);
}

const rounded = (value: number) => Number(value.toFixed(3));
