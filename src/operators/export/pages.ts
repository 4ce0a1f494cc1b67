// Exports from the browser. A form asks for it, since it leaves a line in the operator log; the answer is a file, and the page stays.

import type { Query } from '../kernel/console/calls.ts';
import { type Page, post } from '../kernel/console/page.ts';
import { filtersIn } from '../kernel/list/filter-form.pages.ts';
import type { Filters } from '../kernel/list/filters.contract.ts';
import { withUnits } from '../kernel/list/list.pages.ts';
import { ApiError } from '../kernel/operation/operation.ts';
import { textIn } from '../kernel/view/act.ts';
import { EXPORTED_LISTS, LISTS } from '../lists.contract.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

export const exportPage: Page = post('/export', ['export'], ({ form, calls }) => {
  const list = EXPORTED_LISTS.find((name) => name === form.get('list'));
  if (list === undefined) throw new ApiError(400, 'invalid_request', 'list: is none that is exported');
  const shape: Filters = LISTS[list].filters;
  const query: Query = {
    list,
    format: textIn(form, 'format'),
    bodies: textIn(form, 'bodies'),
    ...withUnits(filtersIn(form, shape), shape),
    ...dayIn(textIn(form, 'day')),
  };
  return calls.stream('export', { query });
});

/** A day of the calendar, instead of the filter's time. @throws ApiError 400 */
function dayIn(day: string | undefined): { from?: string; to?: string } {
  if (day === undefined) return {};
  const from = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  if (Number.isNaN(from)) throw new ApiError(400, 'invalid_request', 'day: write a day as 2026-01-31');
  return { from: new Date(from).toISOString(), to: new Date(from + DAY_MS).toISOString() };
}
