// How a list's columns look on a page.

import type { Content } from '../../../web/index.ts';
import { LISTS, type ListName } from '../../lists.contract.ts';
import type { ItemOf } from '../console/calls.ts';
import { exact } from '../view/numbers.ts';
import { state } from '../view/states.ts';
import type { Column } from '../view/table.ts';
import { id, seen, size } from '../view/texts.ts';
import { duration, since, utc } from '../view/times.ts';
import {
  columnsFor,
  drawnBy,
  type ListColumn,
  type ListColumns,
  type Look,
  type Value,
} from './columns.contract.ts';

type Drawing = {
  readonly cell: (value: NonNullable<Value>) => Content;
  readonly form: NonNullable<Column<never>['form']>;
};

const text = (value: NonNullable<Value>): Content => seen(String(value));

const LOOKS: { readonly [L in Look]: Drawing } = {
  name: { cell: text, form: 'name' },
  id: { cell: (value) => id(String(value)), form: 'name' },
  word: { cell: (value) => state(String(value)), form: 'brief' },
  time: { cell: (value) => utc(String(value)), form: 'brief' },
  age: { cell: (value) => since(String(value)), form: 'brief' },
  count: { cell: (value) => exact(Number(value)), form: 'number' },
  percent: { cell: (value) => `${value} %`, form: 'number' },
  duration: { cell: (value) => duration(Number(value)), form: 'number' },
  size: { cell: (value) => size(Number(value)), form: 'number' },
  text: { cell: text, form: 'text' },
};

type Cell<Item> = ((item: Item) => Content) | Pick<Column<Item>, 'cell' | 'form'>;

/** What a page shows otherwise, by the columns' keys: a link, for example. */
export type Cells<N extends ListName> = {
  readonly [K in keyof (typeof LISTS)[N]['columns']]?: Cell<ItemOf<N>>;
};

/** The columns of a list, as its contract has them. */
export function pageColumns<N extends ListName>(name: N, cells: Cells<N>): readonly Column<ItemOf<N>>[] {
  const own: Readonly<Record<string, Cell<ItemOf<N>> | undefined>> = cells;
  const columns = LISTS[name].columns as unknown as ListColumns<ItemOf<N>>;
  return columnsFor(columns, 'pages').map(([key, column]) => pageColumn(column, own[key]));
}

function pageColumn<Item>(
  { head, look, of, isRare }: ListColumn<Item>,
  own: Cell<Item> | undefined,
): Column<Item> {
  const { cell, form } = LOOKS[look];
  return {
    head: `${head.charAt(0).toUpperCase()}${head.slice(1)}`,
    form,
    ...(typeof own === 'object' ? own : { cell: own ?? drawnBy(of, cell) }),
    ...(isRare && { isOptional: true }),
  };
}
