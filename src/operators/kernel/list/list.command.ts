// The verb `list`, the same for every noun.

import { parse } from '../../../terminal/arguments.ts';
import type { Verb } from '../../../terminal/command.ts';
import { LISTING_OPTIONS, limitOf, printList } from '../../../terminal/listing.ts';
import { optionHelp } from '../../../terminal/options.ts';
import { LISTS, type ListName, type ListQuery } from '../../client/index.ts';
import { openApi } from '../api.command.ts';
import { COLUMNS } from './columns.command.ts';
import { filterHelp, filterOptions, readFilters } from './filters.command.ts';

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
