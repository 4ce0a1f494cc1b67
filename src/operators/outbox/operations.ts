// The list of the outbox, with its depth.

import { z } from 'zod';
import { type DatabaseConnection, readOutboxDepth } from '../../ledger/index.ts';
import { paging } from '../kernel/list/filters.contract.ts';
import { apiList, readListPage, scoped } from '../kernel/list/list.operations.ts';
import { defineRead, type Operation, scopeOf } from '../kernel/operation/operation.ts';
import { OutboxPage } from './contract.ts';
import { outbox } from './queries.ts';

export const outboxList = apiList('outbox', outbox, scoped);

export function listOutbox(connection: Pick<DatabaseConnection, 'db'>): Operation {
  const { tag, summary, filters } = outboxList;
  return defineRead({
    id: 'listOutbox',
    path: '/outbox',
    tag,
    summary,
    role: 'viewer',
    query: z.strictObject({ ...filters, ...paging }),
    answers: { 200: { description: 'A page of the outbox.', schema: OutboxPage } },
    run: async ({ query }, { caller }) => {
      const found = await readListPage(outboxList, query, { caller, connection });
      const depth = await readOutboxDepth(connection.db, scopeOf(caller, query.source));
      const { counts, copies, isComplete, oldestPendingAt } = depth;
      return {
        status: 200,
        body: {
          ...found,
          counts,
          copies,
          counts_complete: isComplete,
          oldest_pending_at: oldestPendingAt,
        },
      };
    },
  });
}
