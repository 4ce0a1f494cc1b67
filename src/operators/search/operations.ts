// GET /search: one box for all that an operator has in hand.

import { z } from 'zod';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { defineRead, type Operation } from '../kernel/operation/operation.ts';
import type { ConfiguredSource } from '../sources/queries.ts';
import { SearchAnswer, searchQuery } from './contract.ts';
import { search } from './queries.ts';

export function createSearchOperations(deps: {
  readonly connection: Pick<DatabaseConnection, 'db'>;
  readonly configuredSources: () => readonly ConfiguredSource[];
}): readonly Operation[] {
  return [
    defineRead({
      id: 'search',
      path: '/search',
      tag: 'Search',
      summary: 'What an id, an error code, a source or a part of a job’s id leads to',
      description:
        'A token that is limited to some sources finds only what it may see. Such a token finds an error code only if one of ' +
        'the newest events or deliveries that have the code is of its sources. The beginning of a job’s id finds all that there are; ' +
        'the middle of one is looked for among the newest jobs, where nothing has the text as its id, code or name.',
      role: 'viewer',
      query: z.strictObject(searchQuery),
      answers: { 200: { description: 'What was found.', schema: SearchAnswer } },
      run: async ({ query: { q } }, { caller: { sources } }) => {
        const configured = deps.configuredSources().map(({ name }) => name);
        return { status: 200, body: await search(deps.connection.db, q, { sources, configured }) };
      },
    }),
  ];
}
