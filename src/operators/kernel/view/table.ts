// Lists as tables. On a narrow screen each row becomes a small block, whose values are named by their column.

import { type Content, type Html, html } from '../../../web/index.ts';
import { isPresent } from './present.ts';

export type Column<Item> = {
  readonly head: string;
  readonly cell: (item: Item) => Content;
  /**
   * Nothing is cut: who reads a list on a tablet cannot point at it. `number` is set to the right, `brief` never breaks, `name` and
   * `text` ask for the room of an id or of a sentence and take further lines for more, `long` and `wide` break anywhere and are never
   * narrower than a few words or a sentence, and `act`, the last one, stays in sight where the list is wider than its box.
   */
  readonly form?: 'number' | 'brief' | 'name' | 'text' | 'long' | 'wide' | 'act';
  /** Left out where no row has a value. */
  readonly isOptional?: true;
};

export type TableOptions<Item> = {
  readonly caption: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  /** Shown instead of an empty table: what would fill it. */
  readonly empty: Content;
};

export function renderTable<Item>({ caption, columns: all, items, empty }: TableOptions<Item>): Html {
  if (items.length === 0) return html`<p class="empty">${empty}</p>`;
  const columns = all.filter(
    ({ isOptional, cell }) => !isOptional || items.some((item) => isPresent(cell(item))),
  );
  // The roles: `display: block` on a narrow screen takes the native ones away.
  return html`<div class="scroll"><table class="list" role="table">
<caption class="unseen">${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map(({ head, form }) => html`<th scope="col" role="columnheader"${classOf(form)}>${head}</th>`)}</tr></thead>
<tbody role="rowgroup">
${items.map((item) => renderRow(item, columns))}</tbody>
</table></div>`;
}

function renderRow<Item>(item: Item, columns: readonly Column<Item>[]): Html {
  return html`<tr role="row">${columns.map(
    ({ head, cell, form }) => html`<td role="cell" data-head="${head}"${classOf(form)}>${cell(item)}</td>`,
  )}</tr>\n`;
}

const classOf = (form: string | undefined): Content => form && html` class="${form}"`;
