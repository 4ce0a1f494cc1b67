// The verb `list`, the same for every noun.

import { type ListName, LISTS, type ListQuery } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { parse } from './arguments.ts';
import { COLUMNS } from './columns.ts';
import type { Verb } from './command.ts';
import { filterHelp, filterOptions, readFilters } from './filters.ts';
import { LISTING_OPTIONS, limitOf, printList } from './listing.ts';
import { optionHelp } from './options.ts';

/** `noun`: of one item. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it ties the filters and columns to the items
export function listVerb<N extends ListName>(name: N, noun: string): Verb {
  const { filters } = LISTS[name];
  return (args, env, io) => {
    const { values } = parse(args, { ...filterOptions(filters), ...LISTING_OPTIONS });
    const limit = limitOf(values);
    const query: ListQuery<N> = readFilters(filters, values);
    return printList(io, openApi(env, io).client.each(name, query, limit), {
      columns: COLUMNS[name],
      noun,
      limit,
    });
  };
}

/** What `list` takes, for a command's help. */
export function listHelp(name: ListName): string {
  return `${filterHelp(LISTS[name].filters)}\n${optionHelp(LISTING_OPTIONS)}`;
}
