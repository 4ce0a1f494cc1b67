import { expect, test } from 'vitest';
import { createProgressReader } from '../../../src/sandbox/engine/progress.ts';

/** Reads these lines, one per second, and returns the reported progress. */
function read(lines: readonly string[], totalSeconds: number | undefined) {
  const told: [number, number | undefined][] = [];
  let nowMs = 0;
  const onProgress = (percentage: number, remainingMs: number | undefined) =>
    void told.push([percentage, remainingMs]);
  const reader = createProgressReader({ totalSeconds, onProgress, now: () => nowMs });
  for (const line of lines) {
    nowMs += 1_000;
    reader.read(line);
  }
  return { told, seconds: reader.seconds() };
}

test('the percentage is what is written of the whole, and what remains is estimated from the time it took', () => {
  const lines = ['out_time_us=2500000', 'out_time_us=5000000', 'out_time_us=7500000'];

  expect(read(lines, 10)).toEqual({
    told: [
      [25, 3_000],
      [50, 2_000],
      [75, 1_000],
    ],
    seconds: 7.5,
  });
});

test('it never falls and never reaches 100', () => {
  const lines = [
    'out_time_us=5000000',
    'out_time_us=4000000',
    'out_time_us=10000000',
    'out_time_us=12000000',
  ];

  expect(read(lines, 10).told.map(([percentage]) => percentage)).toEqual([50, 50, 99, 99]);
});

test('there is no estimate from next to nothing', () => {
  expect(read(['out_time_us=0', 'out_time_us=100000'], 10).told).toEqual([
    [0, undefined],
    [1, undefined],
  ]);
});

test('lines that say nothing of the time are passed over', () => {
  const lines = [
    'frame=1',
    'out_time_us=N/A',
    'out_time_us=-21000',
    'out_time_ms=5000000',
    'progress=end',
    '',
  ];

  expect(read(lines, 10)).toEqual({ told: [], seconds: 0 });
});

test('without a known length only the seconds are counted', () => {
  expect(read(['out_time_us=3000000'], undefined)).toEqual({ told: [], seconds: 3 });
});
