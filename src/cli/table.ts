// Tables as wide as the terminal. Columns with `cutTo` are cut first; ids and times are never cut, since users copy them.

import Table from 'cli-table3';
import { type Format, paint } from './output.ts';
import { clean } from './readable.ts';

export type Column<T> = {
  readonly head: string;
  readonly text: (item: T) => string | number | null | undefined;
  readonly colour?: (item: T) => Format | undefined;
  readonly right?: boolean;
  /** May be cut to so many characters where the terminal is too narrow. */
  readonly cutTo?: number;
};

export type TableOptions = {
  /** Characters a line. */
  readonly width: number;
  readonly head?: boolean;
  /** Text that does not fit continues in the next line instead of being cut. */
  readonly wrap?: boolean;
};

const GAP = '  ';
const NARROW_WIDTH = 80;

const NO_LINES = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: GAP,
} as const;

/** Of standard output, in characters. */
export function terminalWidth(): number {
  return process.stdout.columns || NARROW_WIDTH;
}

/** Columns without a value in any row are left out. */
export function renderTable<T>(
  items: readonly T[],
  columns: readonly Column<T>[],
  { width, head = true, wrap = false }: TableOptions,
): string {
  const filled = columns
    .map((column) => ({ column, cells: items.map((item) => cell(column.text(item))) }))
    .filter(({ cells }) => cells.some((text) => text !== ''));
  const widths = fit(filled, { width, head });
  const table = new Table({
    chars: NO_LINES,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
    colWidths: widths,
    wordWrap: wrap,
    colAligns: filled.map(({ column }) => (column.right ? 'right' : 'left')),
    ...(head && { head: filled.map(({ column }) => paint('dim', column.head)) }),
  });
  for (const [row, item] of items.entries()) {
    table.push(
      filled.map(({ column, cells }) => {
        const colour = column.colour?.(item);
        const text = cells[row] ?? '';
        return colour === undefined ? text : paint(colour, text);
      }),
    );
  }
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

function cell(value: string | number | null | undefined): string {
  return typeof value === 'number' ? String(value) : clean(value);
}

function fit<T>(
  filled: readonly { readonly column: Column<T>; readonly cells: readonly string[] }[],
  { width, head }: { width: number; head: boolean },
): number[] {
  const widths = filled.map(({ column, cells }) =>
    Math.max(head ? column.head.length : 1, ...cells.map((text) => Array.from(text).length)),
  );
  let surplus = widths.reduce((sum, columnWidth) => sum + columnWidth + GAP.length, -GAP.length) - width;
  while (surplus > 0) {
    // The widest column that may still be cut.
    const index = widths.reduce((best, columnWidth, at) => {
      const room = columnWidth - (filled[at]?.column.cutTo ?? Number.POSITIVE_INFINITY);
      return room > 0 && columnWidth > (widths[best] ?? 0) ? at : best;
    }, -1);
    if (index < 0) break;
    widths[index] = (widths[index] ?? 0) - 1;
    surplus -= 1;
  }
  return widths;
}
