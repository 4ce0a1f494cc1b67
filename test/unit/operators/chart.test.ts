// What a chart shows where little or nothing was measured.

import { expect, test } from 'vitest';
import { lineChart } from '../../../src/operators/kernel/view/chart.ts';

const steps = Array.from({ length: 6 }, (_, minute) => `2026-01-31T12:0${minute}:00Z`);

const chartOf = (values: readonly (number | null)[]): string =>
  String(
    lineChart({
      id: 'lag',
      title: 'Lag',
      what: 'How long it took.',
      summary: 'p50.',
      steps,
      series: [{ name: 'p50', form: 'p50', values }],
      scale: (top) => `peak: ${top} ms`,
    }),
  );

test('what was measured in steps that follow each other is a line, and a value alone is a point', () => {
  const chart = chartOf([4, 2, null, 4, null, 1]);
  expect([...chart.matchAll(/<polyline class="p50" points="([^"]+)"/g)].map(([, points]) => points)).toEqual([
    '0.5,0 1.5,50',
  ]);
  expect([...chart.matchAll(/<line class="p50 point" x1="([\d.]+)" x2="\1"/g)].map(([, x]) => x)).toEqual([
    '3.5',
    '5.5',
  ]);
  expect(chart).not.toContain('measured in');
});

test('a chart of which most steps are empty says so', () => {
  expect(chartOf([null, null, 3, null, null, null])).toContain('measured in 1 of 6 steps');
});
