// The form of a table: which columns it has, and how wide they are. Where it is too wide for the terminal, its columns give
// way in a fixed order. No word or number of a result is ever cut: text continues in the next line or stands below the row,
// what is needed least is left out, ids are shortened in the middle.

import type { Format, Paint } from './io.ts';
import { clean } from './readable.ts';
import { SHORT_UUID_WIDTH, widthOf } from './text-width.ts';

type Text = string | number | null | undefined;

export type Column<T> = {
  readonly head: string;
  readonly text: (item: T) => Text;
  readonly colour?: (item: T) => Format | undefined;
  readonly right?: boolean;
  /** What is shown in a narrow table instead. */
  readonly brief?: (item: T) => Text;
  /** The text continues in the next line where the column has no more room than this. */
  readonly wrapTo?: number;
  /** In a narrow table, the text stands in lines of its own below the row: before or after ids are shortened. */
  readonly below?: 'first' | 'last' | undefined;
  /** Below the row, the text stands without the column's head. */
  readonly unlabelled?: true;
  /** Left out of a narrow table. */
  readonly drop?: true;
  /** Shortened in the middle: ids that nobody reads first, names last. */
  readonly shorten?: 'first' | 'last';
};

export type TableOptions = {
  /** Characters a line. */
  readonly width: number;
  readonly head?: boolean;
  /** Without it there are no colours. */
  readonly paint?: Paint;
};

/** A column of one table. `min` is the least width that the present form of the table allows. */
export type Part<T> = {
  readonly column: Column<T>;
  readonly cells: readonly string[];
  readonly widest: number;
  readonly min: number;
  readonly isBelow?: true;
};

export const GAP = '  ';
const NAME_WIDTH = 12;
/** An event's id with a UUID in it is whole. One that is longer must not cost the other columns their room. */
const LONG_NAME_WIDTH = 60;

/** The first of the forms that fits; if none does, the narrowest. */
export function formOf<T>(
  items: readonly T[],
  columns: readonly Column<T>[],
  { width, head }: Required<Pick<TableOptions, 'width' | 'head'>>,
): readonly Part<T>[] {
  const least = (column: Column<T>) => (head ? column.head.length : 1);
  const part = (column: Column<T>, textOf: (item: T) => Text): Part<T> => {
    const cells = items.map((item) => cell(textOf(item)));
    const widest = Math.max(least(column), ...cells.map(widthOf));
    return { column, cells, widest, min: Math.min(widest, Math.max(least(column), column.wrapTo ?? widest)) };
  };
  const whole = columns.map((column) => part(column, column.text)).filter(isFilled);
  let narrowest: readonly Part<T>[] = whole;
  for (const form of narrower(whole, part, least)) {
    narrowest = form;
    if (widthOfRow(inRowOf(form).map(({ min }) => min)) <= width) break;
  }
  return narrowest;
}

const isFilled = ({ cells }: Part<never>) => cells.some((text) => text !== '');
export const inRowOf = <T>(parts: readonly Part<T>[]) => parts.filter(({ isBelow }) => !isBelow);

/** Each narrower than the one before. */
function* narrower<T>(
  whole: readonly Part<T>[],
  part: (column: Column<T>, textOf: (item: T) => Text) => Part<T>,
  least: (column: Column<T>) => number,
): Generator<readonly Part<T>[]> {
  const shortened = (parts: readonly Part<T>[], which: Column<T>['shorten'], to: number) =>
    parts.map((one) =>
      one.column.shorten === which
        ? { ...one, min: Math.min(one.min, Math.max(least(one.column), to)) }
        : one,
    );
  const putBelow = (parts: readonly Part<T>[], which: Column<T>['below']) =>
    parts.map((one) => (one.column.below === which ? { ...one, isBelow: true as const } : one));
  const steps: readonly ((parts: readonly Part<T>[]) => readonly Part<T>[])[] = [
    (parts) =>
      parts.map((one) => (one.column.brief ? part(one.column, one.column.brief) : one)).filter(isFilled),
    (parts) => putBelow(parts, 'first'),
    (parts) => parts.filter(({ column }) => !column.drop),
    (parts) => shortened(parts, 'first', SHORT_UUID_WIDTH),
    (parts) => putBelow(parts, 'last'),
    (parts) => shortened(parts, 'last', NAME_WIDTH),
  ];
  let parts: readonly Part<T>[] = shortened(whole, 'last', LONG_NAME_WIDTH);
  yield parts;
  for (const step of steps) {
    parts = step(parts);
    yield parts;
  }
}

/** The widths of the columns. Ids give way first, then the widest column that may be narrower. */
export function share<T>(parts: readonly Part<T>[], width: number): number[] {
  const widths = parts.map(({ widest }) => widest);
  for (let surplus = widthOfRow(widths) - width; surplus > 0; surplus -= 1) {
    const giving = parts
      .map(({ min, column }, at) => ({ at, has: widths[at] ?? 0, min, isId: column.shorten === 'first' }))
      .filter(({ has, min }) => has > min)
      .toSorted((a, b) => Number(b.isId) - Number(a.isId) || b.has - a.has)[0];
    if (giving === undefined) break;
    widths[giving.at] = giving.has - 1;
  }
  return widths;
}

const widthOfRow = (widths: readonly number[]) =>
  widths.reduce((sum, columnWidth) => sum + columnWidth + GAP.length, -GAP.length);

function cell(value: Text): string {
  return typeof value === 'number' ? String(value) : clean(value);
}
