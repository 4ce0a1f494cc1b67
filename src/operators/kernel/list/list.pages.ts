// A page that shows one of the API's lists: filters, rows, and a link to the next page. Its address has the parameters that the
// API has, so a view can be kept, sent and reloaded.

import { z } from 'zod';
import { parseMoment, parseSpan } from '../../../base/time/moments.ts';
import { type Content, html } from '../../../web/index.ts';
import { LISTS, type ListName } from '../../lists.contract.ts';
import { type ItemOf, listId, type PageOf } from '../console/calls.ts';
import { get, type Page, type View, type Visit } from '../console/page.ts';
import { sameAs } from '../console/same-as.ts';
import { faultsIn, faultsOf, InputError, type InputFault, inPlainWords } from '../operation/input-faults.ts';
import { ApiError } from '../operation/operation.ts';
import { address } from '../view/links.ts';
import { type Column, renderTable } from '../view/table.ts';
import { id } from '../view/texts.ts';
import { emptyList, filtersIn, markedNotice, renderFilterForm } from './filter-form.pages.ts';
import { renderExport } from './export-form.pages.ts';
import type { Filters } from './filters.contract.ts';
import { type Cells, pageColumns } from './looks.pages.ts';

/** Rows of a page. As many as the first fit on a screen of ordinary height. */
const ROWS = [25, 50, 100] as const;

/** What a list has, where its title is not the word for it. */
const NOUNS: { readonly [N in ListName]?: string } = {
  outbox: 'events in the outbox',
  quarantine: 'deliveries in quarantine',
  'operator-log': 'entries of the operator log',
};

/** By the parameter of the API. */
function rowsIn(query: URLSearchParams): number {
  const asked = query.get('limit') ?? '';
  if (!/^\d+$/.test(asked)) return ROWS[0];
  // The nearest that there is, and no fewer than were asked for.
  return ROWS.find((rows) => rows >= Number(asked)) ?? Math.max(...ROWS);
}

/** In an address only where it is not the usual number. */
const limitOf = (rows: number) => (rows === ROWS[0] ? {} : { limit: rows });

export type ListPageOptions<N extends ListName> = {
  readonly name: N;
  readonly title: string;
  /** The filters that are shown at once. */
  readonly first: readonly string[];
  /** Beside the heading. */
  readonly beside?: (visit: Visit) => Content;
  /** What differs from the list's contract. */
  readonly cells?: Cells<N>;
  /** With what stands beside the list's own columns, where the role decides. */
  readonly withColumns?: (own: readonly Column<ItemOf<N>>[], visit: Visit) => readonly Column<ItemOf<N>>[];
  /** What would fill the list. */
  readonly empty: Content;
  /** Between the filters and the rows, and around the rows. */
  readonly above?: (
    page: PageOf<N>,
    visit: Visit,
    filters: Readonly<Record<string, string>>,
  ) => Content | Promise<Content>;
  readonly around?: (
    table: Content,
    page: PageOf<N>,
    visit: Visit,
    filters: Readonly<Record<string, string>>,
  ) => Content;
};

export function listPage<N extends ListName>(options: ListPageOptions<N>): Page {
  const { name, title, first, beside, cells = {}, withColumns, empty, above, around } = options;
  const columns = pageColumns(name, cells);
  const path = `/${name}` as const;
  const action = `/console${path}`;
  const shape: Filters = LISTS[name].filters;
  const form = (visit: Visit, values: Readonly<Record<string, string>>, faults: readonly InputFault[] = []) =>
    renderFilterForm({
      action,
      filters: shape,
      values,
      sources: visit.sources,
      first,
      faults,
      kept: limitOf(rowsIn(visit.query)),
    });

  async function view(visit: Visit, values: Readonly<Record<string, string>>): Promise<View> {
    const filters = withUnits(values, shape);
    const cursor = visit.query.get('cursor') ?? undefined;
    const rows = rowsIn(visit.query);
    const page = await visit.calls.list(name, { ...filters, limit: rows, cursor });
    const table = renderTable({
      caption: title,
      columns: withColumns?.(columns, visit) ?? columns,
      items: page.items,
      empty:
        cursor === undefined
          ? emptyList(NOUNS[name] ?? title.toLowerCase(), values, empty)
          : 'There is nothing more.',
    });
    return {
      title,
      beside: beside?.(visit),
      body: html`${form(visit, values)}${renderUnknown(visit.query, shape)}
${await above?.(page, visit, filters)}${around === undefined ? table : around(table, page, visit, filters)}
${pager({ action, values, filters, cursor, rows, next: page.next_cursor })}
${renderExport(name, { filters: shape, values, may: visit.calls.may })}`,
      sameAs: sameAs(visit.origin, {
        command: commandOf(name),
        path,
        query: { ...filters, limit: rows, cursor },
        typed: { ...values, limit: rows },
      }),
    };
  }

  return get(path, [listId(name)], async (visit) => {
    const values = filtersIn(visit.query, shape);
    try {
      return await view(visit, values);
    } catch (error) {
      const faults = filterFaults(error, shape);
      if (faults.length === 0) throw error;
      return {
        title,
        status: 400,
        body: html`${markedNotice(faults, 'filter')}${form(visit, values, faults)}`,
      };
    }
  });
}

/** None of an error of something else than a filter. */
const filterFaults = (error: unknown, shape: Filters): readonly InputFault[] =>
  error instanceof ApiError && error.status === 400
    ? faultsIn(error).filter(({ name }) => Object.hasOwn(shape, name))
    : [];

/** Parameters of a list's page that are no filters. `by`: of its groups. */
const NO_FILTERS: readonly string[] = ['limit', 'cursor', 'by'];
const UNKNOWN_SHOWN = 5;

/** The API refuses a parameter that it does not know; a page says that it does nothing. */
function renderUnknown(query: URLSearchParams, shape: Filters): Content {
  const unknown = [...new Set(query.keys())].filter(
    (name) => !Object.hasOwn(shape, name) && !NO_FILTERS.includes(name),
  );
  if (unknown.length === 0) return undefined;
  const names = unknown.slice(0, UNKNOWN_SHOWN).map((name, index) => html`${index > 0 && ', '}${id(name)}`);
  return html`<div class="notice warn"><p>This list has no filter of this name, so it does nothing: ${names}</p></div>`;
}

/** The words of the command line that show the list. */
const commandOf = (name: ListName): readonly string[] => COMMANDS[name] ?? [name, 'list'];
const COMMANDS: { readonly [N in ListName]?: readonly string[] } = {
  'operator-log': ['log'],
  incidents: ['alerts', 'list'],
};

/** How people write what a filter takes, and what the API takes for it. */
const CONVERSIONS = {
  time: {
    convert: (text: string) => parseMoment(text, Date.now()),
    write: '2026-01-31T12:00:00Z, 2026-01-31, or how long ago: 15m, 24h, 7d',
  },
  seconds: { convert: (text: string) => parseSpan(text)?.toString(), write: '90s, 15m, 24h or 7d' },
} as const;

/**
 * Values as the API takes them. `24h` begins at another moment with each request, and a cursor belongs to its filters: the next
 * page therefore names the moment itself.
 * @throws ApiError 400
 */
export function withUnits(values: Readonly<Record<string, string>>, shape: Filters): Record<string, string> {
  const faults: InputFault[] = [];
  const converted: Record<string, string> = {};
  for (const [name, text] of Object.entries(values)) {
    const as = shape[name]?.form.converts;
    const value = as === undefined ? text : CONVERSIONS[as].convert(text);
    if (value !== undefined) converted[name] = value;
    else if (as !== undefined) faults.push({ name, message: `write ${CONVERSIONS[as].write}` });
  }
  if (faults.length === 0) return converted;
  // The API is not asked then, so the other filters are checked here: all that are at fault are told at once.
  const { error } = z.object(shape).safeParse(converted, { error: inPlainWords });
  throw new InputError([...faults, ...(error === undefined ? [] : faultsOf(error))]);
}

function pager({
  action,
  values,
  filters,
  cursor,
  rows,
  next,
}: {
  action: string;
  values: Readonly<Record<string, string>>;
  filters: Readonly<Record<string, string>>;
  cursor: string | undefined;
  rows: number;
  next: string | null;
}): Content {
  if (cursor === undefined && next === null && rows === ROWS[0]) return undefined;
  const limit = limitOf(rows);
  // The place stays, since a cursor is of the filters alone.
  const choices = ROWS.map(
    (choice) =>
      html` <a href="${address(action, { ...filters, ...limitOf(choice), cursor })}"${choice === rows && html` aria-current="true"`}>${choice}</a>`,
  );
  return html`<nav class="pager" aria-label="Pages of this list">
${cursor !== undefined && html`<a href="${address(action, { ...values, ...limit })}">First page</a> `}${next !== null && html`<a class="next" rel="next" href="${address(action, { ...filters, ...limit, cursor: next })}">Next page</a>`} <span>Rows:${choices}</span>
</nav>`;
}
