// What the console's pages are made of: tables, numbers and durations.

import { expect, test } from 'vitest';
import { counted, rate } from '../../../src/operators/kernel/view/numbers.ts';
import { type Column, renderTable } from '../../../src/operators/kernel/view/table.ts';
import { duration } from '../../../src/operators/kernel/view/times.ts';

type Row = { readonly name: string; readonly queue: string | null };

const COLUMNS: readonly Column<Row>[] = [
  { head: 'Name', cell: ({ name }) => name },
  { head: 'Queue', cell: ({ queue }) => queue, isOptional: true },
];

const headsOf = (items: readonly Row[]) => {
  const table = String(renderTable({ caption: 'Rows', columns: COLUMNS, items, empty: '' }));
  return Array.from(table.matchAll(/<th [^>]*>([^<]*)</g), ([, head]) => head);
};

test('an optional column is left out where no row has a value, and there where one has', () => {
  const plain = { name: 'a', queue: null };
  expect(headsOf([plain, plain])).toEqual(['Name']);
  expect(headsOf([plain, { name: 'b', queue: 'billing' }])).toEqual(['Name', 'Queue']);
});

test.for([
  [0, '0 ms'],
  [999, '999 ms'],
  [1_500, '1.5 s'],
  [59_400, '59.4 s'],
  [59_600, '1 min 0 s'],
  [119_906, '2 min 0 s'],
  [3_599_700, '1 h 0 min'],
  [7_500_000, '2 h 5 min'],
] as const)('%i ms are shown as %s', ([ms, text]) => {
  expect(duration(ms)).toBe(text);
});

test.for([
  [0, '0'],
  [0.004, '< 0.01'],
  [0.38, '0.38'],
  [1_234.4, '1,234'],
] as const)('a rate of %d is shown as %s', ([value, text]) => {
  expect(rate(value)).toBe(text);
});

test('a noun fits its number', () => {
  expect([counted(1, 'copy'), counted(2, 'copy')]).toEqual(['1 copy', '2 copies']);
});
