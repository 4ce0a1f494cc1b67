// Draws plots for the documents: takes numbers, returns SVG text, by ECharts without a browser. The same input gives the same
// bytes, so that a plot changes in git only with its numbers. White background, since pages are shown light and dark. Reads and
// writes no file. Does not smooth, and does not fill gaps.

import { type EChartsOption, init } from 'echarts';

type Axis = {
  readonly name: string;
  /** Printed after the name: `MiB`, `ms`, `events/s`. Left out for plain counts. */
  readonly unit?: string;
  /** Undefined fits the axis to the values; 0 shows true proportions. */
  readonly min?: number;
  readonly max?: number;
  readonly scale?: 'linear' | 'log';
};

export type LineSeries = {
  readonly name: string;
  /** null is a gap: nothing was measured there. */
  readonly points: readonly (readonly [x: number, y: number | null])[];
  /** For a series close to another one, or a limit. */
  readonly dashed?: boolean;
};

/** A range of the x axis in which something else happened, such as a fault. */
export type Band = { readonly from: number; readonly to: number; readonly name?: string };

/** A horizontal line across the plot, such as a target. */
type Mark = { readonly value: number; readonly name: string };

type Frame = {
  readonly title: string;
  readonly subtitle?: string;
  readonly width?: number;
  readonly height?: number;
};

type LinePlot = Frame & {
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly LineSeries[];
  readonly bands?: readonly Band[];
  readonly marks?: readonly Mark[];
};

type BarPlot = Frame & {
  readonly y: Axis;
  /** The names of the groups of bars. */
  readonly groups: readonly string[];
  /** Each has one bar in each group; `values` in the order of the groups, null for no bar. */
  readonly series: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
  readonly marks?: readonly Mark[];
};

/** As wide as a page of text on GitHub. */
const WIDTH = 880;
const HEIGHT = 340;

/** Okabe and Ito's colours, which the colour-blind can tell apart. All are visible on white. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f7f7f', '#000000'];
const INK = '#24292f';
const FAINT = '#d0d7de';
const BAND = 'rgba(213, 94, 0, 0.16)';
const FONT = 'DejaVu Sans, Verdana, sans-serif';

const LEGEND_ROW = 34;
const LEGEND_ICON = 18;
const LEGEND_GAP = 24;
const LEGEND_LETTER = 7.5;

/** With more, the names overlap. */
const NAMED_BANDS_MAX = 8;
const GROUPS_UPRIGHT_MAX = 8;

/** A line for each series of values over x. */
export function linePlot(plot: LinePlot): string {
  return draw(plot, {
    ...frame(plot, plot.series),
    xAxis: { type: 'value', ...axis(plot.x), nameGap: 28, splitLine: { show: false } },
    yAxis: { ...valueAxis(plot.y), nameGap: 62 },
    series: plot.series.map(({ name, points, dashed }, index) => ({
      type: 'line',
      name,
      data: points.map(([x, y]) => [x, y ?? '-']),
      showSymbol: points.length === 1,
      lineStyle: { width: 1.6, type: dashed ? 'dashed' : 'solid' },
      // Drawn once, under all lines.
      ...(index === 0 && { markArea: markArea(plot.bands ?? []), markLine: markLine(plot.marks ?? []) }),
    })),
  });
}

/** Groups of bars from zero (or from `y.min`), with its value above each bar. */
export function barPlot(plot: BarPlot): string {
  return draw(plot, {
    ...frame(plot, plot.series.length > 1 ? plot.series : []),
    xAxis: {
      type: 'category',
      data: [...plot.groups],
      axisTick: { show: false },
      axisLine: { lineStyle: { color: INK } },
      axisLabel: { color: INK, interval: 0, rotate: plot.groups.length > GROUPS_UPRIGHT_MAX ? 25 : 0 },
    },
    yAxis: { ...valueAxis(plot.y), nameGap: 62 },
    series: plot.series.map(({ name, values }, index) => ({
      type: 'bar',
      name,
      data: values.map((value) => value ?? '-'),
      barMaxWidth: 56,
      label: {
        show: true,
        position: 'top',
        color: INK,
        fontSize: 11,
        formatter: ({ value }) => short(Number(value)),
      },
      ...(index === 0 && { markLine: markLine(plot.marks ?? []) }),
    })),
  });
}

/** With three significant digits: 1234567 is 1.23 M. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '';
  const size = Math.abs(value);
  if (size >= 999_500) return `${digits(value / 1_000_000)} M`;
  if (size >= 9_995) return `${digits(value / 1_000)} k`;
  return digits(value);
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return String(Number(value.toPrecision(3)));
}

function frame(plot: Frame, named: readonly { readonly name: string }[]): EChartsOption {
  const top = plot.subtitle === undefined ? 40 : 60;
  const rows = legendRows(named, plot.width ?? WIDTH);
  return {
    animation: false,
    backgroundColor: '#ffffff',
    color: COLOURS,
    textStyle: { fontFamily: FONT, color: INK },
    title: {
      text: plot.title,
      ...(plot.subtitle !== undefined && { subtext: plot.subtitle }),
      left: 16,
      top: 8,
      itemGap: 6,
      textStyle: { fontSize: 15, color: INK, fontFamily: FONT },
      subtextStyle: { fontSize: 12, color: INK, fontFamily: FONT },
    },
    legend: {
      show: named.length > 0,
      data: named.map(({ name }) => name),
      left: 16,
      top,
      icon: 'roundRect',
      itemHeight: 4,
      itemWidth: LEGEND_ICON,
      itemGap: LEGEND_GAP,
      textStyle: { color: INK, fontFamily: FONT },
    },
    grid: { left: 92, right: 28, top: top + 16 + rows * LEGEND_ROW, bottom: 52 },
  };
}

/** The width of names cannot be measured without a browser, so the widest possible one is assumed. */
function legendRows(named: readonly { readonly name: string }[], width: number): number {
  let [rows, used] = [Math.min(1, named.length), 0];
  for (const { name } of named) {
    const wanted = LEGEND_ICON + LEGEND_GAP + name.length * LEGEND_LETTER;
    if (used > 0 && used + wanted > width - 2 * LEGEND_GAP) [rows, used] = [rows + 1, 0];
    used += wanted;
  }
  return rows;
}

function axis({ name, unit, min, max }: Axis) {
  return {
    name: unit === undefined ? name : `${name} (${unit})`,
    nameLocation: 'middle',
    nameTextStyle: { color: INK, fontFamily: FONT },
    axisLine: { show: true, lineStyle: { color: INK } },
    axisLabel: { color: INK, formatter: (value: number) => short(value) },
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
  } as const;
}

function valueAxis(described: Axis) {
  const isLog = described.scale === 'log';
  return {
    ...axis(described),
    type: isLog ? 'log' : 'value',
    scale: described.min === undefined,
    splitLine: { lineStyle: { color: FAINT } },
  } as const;
}

function markArea(bands: readonly Band[]) {
  const areNamed = bands.length <= NAMED_BANDS_MAX;
  return {
    silent: true,
    itemStyle: { color: BAND },
    label: { color: INK, fontSize: 10, show: areNamed },
    data: bands.map(({ from, to, name }): [{ xAxis: number; name?: string }, { xAxis: number }] => [
      { xAxis: from, ...(name !== undefined && areNamed && { name }) },
      { xAxis: to },
    ]),
  };
}

function markLine(marks: readonly Mark[]) {
  return {
    silent: true,
    symbol: 'none',
    lineStyle: { color: INK, type: 'dashed' as const, width: 1 },
    label: { color: INK, fontSize: 11, position: 'insideEndTop' as const, formatter: '{b}' },
    data: marks.map(({ value, name }) => ({ yAxis: value, name })),
  };
}

function draw({ width = WIDTH, height = HEIGHT }: Frame, option: EChartsOption): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    chart.setOption(option);
    return `${withoutCounters(chart.renderToSVGString())}\n`;
  } finally {
    chart.dispose();
  }
}

/** ECharts numbers charts and clip paths through the whole program. This makes the numbers start anew in each plot. */
function withoutCounters(svg: string): string {
  const numbers = new Map<string, string>();
  return svg.replace(/\bzr\d+-(\w+?)-?(\d+)\b/g, (whole, kind: string) => {
    const known = numbers.get(whole) ?? `p-${kind}-${numbers.size}`;
    numbers.set(whole, known);
    return known;
  });
}
