import { expect, test } from 'vitest';
import { barPlot, linePlot, short } from '../../bench/plots.ts';

const MEMORY = {
  title: 'Memory',
  x: { name: 'time', unit: 'min' },
  y: { name: 'resident', unit: 'MiB', min: 0 },
  series: [
    {
      name: 'replica 1',
      points: [
        [0, 80],
        [1, null],
        [2, 90],
        [3, 91],
      ],
    },
    {
      name: 'replica 2',
      points: [
        [0, 70],
        [3, 71],
      ],
    },
  ],
  bands: [{ from: 1, to: 2, name: 'postgres killed' }],
} as const;

const RATES = {
  title: 'Rates',
  y: { name: 'rate', unit: 'events/s', min: 0 },
  groups: ['1 replica', '2 replicas'],
  series: [
    { name: 'answered', values: [6_000, 9_000] },
    { name: 'confirmed', values: [5_900, null] },
  ],
  marks: [{ value: 5_000, name: 'target' }],
} as const;

test('the same numbers give the same plot, whatever was drawn before', () => {
  const [lines, bars] = [linePlot(MEMORY), barPlot(RATES)];

  expect(barPlot(RATES)).toBe(bars);
  expect(linePlot(MEMORY)).toBe(lines);
});

test('other numbers give another plot', () => {
  const changed = { ...RATES, series: [{ name: 'answered', values: [6_000, 9_001] }] };

  expect(barPlot(changed)).not.toBe(barPlot(RATES));
  expect(linePlot({ ...MEMORY, bands: [] })).not.toBe(linePlot(MEMORY));
});

test('a plot names its title, its axes with their units, its series, bands and marks', () => {
  const lines = linePlot(MEMORY);
  for (const text of ['Memory', 'time (min)', 'resident (MiB)', 'replica 1', 'replica 2', 'postgres killed'])
    expect(lines).toContain(text);

  const bars = barPlot(RATES);
  for (const text of ['rate (events/s)', '1 replica', 'confirmed', 'target', '6000'])
    expect(bars).toContain(text);
});

test('each reference within a plot has what it refers to', () => {
  for (const svg of [linePlot(MEMORY), barPlot(RATES)]) {
    const references = [...svg.matchAll(/url\(#([^)]+)\)/g)].map((match) => match[1]);
    for (const id of references) expect(svg).toContain(`id="${id}"`);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  }
});

test('a gap breaks the line', () => {
  const whole = linePlot({
    ...MEMORY,
    series: [
      {
        name: 'a',
        points: [
          [0, 1],
          [1, 2],
          [2, 3],
          [3, 4],
        ],
      },
    ],
    bands: [],
  });
  const broken = linePlot({
    ...MEMORY,
    series: [
      {
        name: 'a',
        points: [
          [0, 1],
          [1, 2],
          [2, null],
          [3, 4],
        ],
      },
    ],
    bands: [],
  });

  expect(broken).not.toBe(whole);
});

test.each([
  [0, '0'],
  [0.123_45, '0.123'],
  [12.345, '12.3'],
  [999.6, '1000'],
  [9_994, '9994'],
  [12_345, '12.3 k'],
  [999_600, '1 M'],
  [1_234_567, '1.23 M'],
  [Number.NaN, ''],
])('%d is written %s', (value, text) => {
  expect(short(value)).toBe(text);
});
