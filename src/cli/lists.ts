// The verb `list`: the same for every noun.

import type { Env } from '../config.ts';
import type { Items, ListName } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import { COLUMNS } from './columns.ts';
import { type FilterName, FILTERS_OF, filterHelp, filterOptions, readFilters } from './filters.ts';
import { LISTING_HELP, LISTING_OPTIONS, limitOf, printList } from './listing.ts';
import type { Column } from './table.ts';

/** `noun`: of one item. */
export function listVerb(name: ListName, noun: string): (args: string[], env: Env) => Promise<number> {
  const filters: readonly FilterName[] = FILTERS_OF[name];
  return (args, env) => {
    const { values } = parse(args, { ...filterOptions(filters), ...LISTING_OPTIONS });
    const limit = limitOf(values);
    const query = readFilters(filters, values);
    const items: AsyncIterable<Items[ListName]> = openApi(env).client.each(name, query, limit);
    return printList(items, { columns: COLUMNS[name] as readonly Column<Items[ListName]>[], noun, limit });
  };
}

/** What `list` takes, for a command's help. */
export function listHelp(name: ListName, states = ''): string {
  return `${filterHelp(FILTERS_OF[name], states)}\n${LISTING_HELP}`;
}
