// The operator log, to be read: who looked at what, and who changed what. Nothing here writes to it.

import { z } from 'zod';
import { type LogFilter, readLog } from '../access/operator-log.ts';
import { encodeCursor } from '../audit/cursor.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { paging } from '../contract/filters.ts';
import { LISTS } from '../contract/lists.ts';
import { placeOf } from './lists.ts';
import { defineRead, forbidden, type Operation } from './operation.ts';

const LIST = 'operator-log';

export function createLogOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  const { filters: logFilters, page, tag, summary, description } = LISTS[LIST];
  return [
    defineRead({
      id: 'listOperatorLog',
      path: '/operator-log',
      tag,
      summary,
      description,
      role: 'auditor',
      query: z.strictObject({ ...logFilters, ...paging }),
      answers: { 200: { description: 'A page of the log.', schema: page } },
      run: async ({ query }, { caller }) => {
        if (caller.sources !== null) throw forbidden();
        const { limit, cursor, ...filters } = query;
        const after = positionOf(cursor, filters);
        const items = await readLog(connection.db, filters, { limit, after });
        const last = items.length === limit ? items.at(-1) : undefined;
        return {
          status: 200,
          body: {
            items,
            next_cursor: last === undefined ? null : encodeCursor([last.at, last.id], LIST, filters),
          },
        };
      },
    }),
  ];
}

function positionOf(cursor: string | undefined, filters: LogFilter) {
  const place = placeOf(cursor, { list: LIST, filters, types: ['time', 'bigint'] });
  return place === null ? undefined : { at: place[0], id: place[1] };
}
