// What an order is about: the ticked rows, or all that match a filter. It stands in the address of the order's first page, and in
// the fields of the form on it.

import { type Content, html } from '../../../web/index.ts';
import type { OrderName } from '../../orders.contract.ts';
import { filtersIn } from '../list/filter-form.pages.ts';
import type { Filters } from '../list/filters.contract.ts';
import { withUnits } from '../list/list.pages.ts';
import { textIn } from '../view/act.ts';
import { address } from '../view/links.ts';

export type Selectable = {
  /** The parameters of its filter. */
  readonly filters: Filters;
  /** The parameter that bounds it to what its preview was of. */
  readonly bound: 'up_to' | 'to';
};

/** Which ones: by their ids, or all that match a filter. */
export type Wanted = { readonly ids: string[] } | { readonly filter: Record<string, string> };

/** `all` must be said: a form whose boxes are all empty means nothing, and not everything. */
export function wantedIn(fields: URLSearchParams, { filters, bound }: Selectable): Wanted | undefined {
  const ids = fields.getAll('ids').flatMap((text) => text.split('\n'));
  const given = ids.map((id) => id.trim()).filter((id) => id !== '');
  if (given.length > 0) return { ids: [...new Set(given)] };
  if (fields.get('all') !== 'true') return undefined;
  const limit = textIn(fields, bound);
  return {
    filter: {
      ...withUnits(filtersIn(fields, filters), filters),
      ...(limit !== undefined && { [bound]: limit }),
    },
  };
}

/** The fields of a form that carries it. */
export const fieldsOf = (wanted: Wanted) =>
  'ids' in wanted ? { ids: wanted.ids.join('\n') } : { all: 'true' as const, ...wanted.filter };

/** The box that ticks a row, and the address of an order. */
export const tick = (id: string, what: string): Content =>
  html`<input type="checkbox" name="ids" value="${id}" aria-label="Select ${what}">`;

export const orderHref = (
  name: OrderName,
  which: { readonly ids: string } | { readonly all: 'true'; readonly [name: string]: string | undefined },
): string => address(`/console/${name}`, which);
