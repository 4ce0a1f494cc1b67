// The operations that show lists: jobs, deliveries, events, publications, the quarantine, and the outbox with its depth.

import { z } from 'zod';
import { type DatabaseConnection, readOutboxDepth } from '../../ledger/index.ts';
import { paging } from '../kernel/list/filters.contract.ts';
import { LISTS, listOperation, readListPage } from '../lists.operations.ts';
import { defineRead, type Operation, scopeOf } from '../kernel/operation/operation.ts';
import { OutboxPage } from './contract.ts';

export function createListOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  const { jobs, deliveries, events, publications, quarantine, outbox } = LISTS;
  return [
    ...[jobs, deliveries, events, publications, quarantine].map((list) => listOperation(list, connection)),
    defineRead({
      id: 'listOutbox',
      path: '/outbox',
      tag: outbox.tag,
      summary: outbox.summary,
      role: 'viewer',
      query: z.strictObject({ ...outbox.filters, ...paging }),
      answers: { 200: { description: 'A page of the outbox.', schema: OutboxPage } },
      run: async ({ query }, { caller }) => {
        const found = await readListPage(outbox, query, { caller, connection });
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
    }),
  ];
}
