// Tables as wide as the terminal; table-form.ts decides on the columns and their widths.

import { type Format, type Io, type Paint, withoutColours } from './io.ts';
import { type Column, formOf, GAP, inRowOf, type Part, share, type TableOptions } from './table-form.ts';
import { shorten, widthOf, wrap } from './text-width.ts';

export type { Column, TableOptions } from './table-form.ts';

const INDENT = '    ';
const NARROW_WIDTH = 80;

/** Of standard output, in characters. */
export function terminalWidth({ stdout }: Io): number {
  return stdout.columns || NARROW_WIDTH;
}

export function renderTable<T>(
  items: readonly T[],
  columns: readonly Column<T>[],
  options: TableOptions,
): string {
  return layTable(items, columns, options).text;
}

/** Columns without a value in any row are left out. `isShortened`: there was no room for a whole id or name. */
export function layTable<T>(
  items: readonly T[],
  columns: readonly Column<T>[],
  { width, head = true, paint = withoutColours }: TableOptions,
): { readonly text: string; readonly isShortened: boolean } {
  const parts = formOf(items, columns, { width, head });
  const inRow = inRowOf(parts);
  const below = parts.filter(({ isBelow }) => isBelow);
  const widths = share(inRow, width);
  const heads = inRow.map(({ column }) => ({ lines: [column.head], colour: 'dim' as const }));
  const lines = items.flatMap((item, row) => [
    ...rowLines(
      inRow.map(({ column, cells }, at) => ({
        lines: fit(cells[row] ?? '', column, widths[at] ?? 0),
        colour: column.colour?.(item),
      })),
      { parts: inRow, widths, paint },
    ),
    ...belowLines(below, row, width),
  ]);
  return {
    text: [...(head ? rowLines(heads, { parts: inRow, widths, paint }) : []), ...lines].join('\n'),
    isShortened: inRow.some(
      ({ column, cells }, at) =>
        column.shorten !== undefined && cells.some((text) => widthOf(text) > (widths[at] ?? 0)),
    ),
  };
}

const fit = (text: string, column: Column<never>, width: number): string[] =>
  column.shorten === undefined ? wrap(text, width) : [shorten(text, width)];

type Cell = { readonly lines: readonly string[]; readonly colour: Format | undefined };

type Row<T> = {
  readonly parts: readonly Part<T>[];
  readonly widths: readonly number[];
  readonly paint: Paint;
};

function rowLines<T>(cells: readonly Cell[], { parts, widths, paint }: Row<T>): string[] {
  const height = Math.max(...cells.map(({ lines }) => lines.length));
  return Array.from({ length: height }, (_, at) =>
    cells
      .map(({ lines, colour }, index) => {
        const text = lines[at] ?? '';
        const room = ' '.repeat(Math.max(0, (widths[index] ?? 0) - widthOf(text)));
        const painted = colour === undefined || text === '' ? text : paint(colour, text);
        return parts[index]?.column.right ? room + painted : painted + room;
      })
      .join(GAP)
      .trimEnd(),
  );
}

/** With their heads, as in the row. */
function belowLines<T>(below: readonly Part<T>[], row: number, width: number): string[] {
  const texts = below.flatMap(({ column, cells }) => {
    const text = cells[row] ?? '';
    if (text === '') return [];
    return column.unlabelled ? text : `${column.head}: ${text}`;
  });
  if (texts.length === 0) return [];
  return wrap(texts.join('; '), width - INDENT.length).map((line) => INDENT + line);
}
