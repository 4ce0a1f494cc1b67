// The list of the outbox, with its depth.

import { type DatabaseConnection, readOutboxDepth } from '../../ledger/index.ts';
import { apiList, listOperation, scoped } from '../kernel/list/list.operations.ts';
import { type Operation, scopeOf } from '../kernel/operation/operation.ts';
import { outbox } from './queries.ts';

export const outboxList = apiList('outbox', outbox, scoped, { answer: 'A page of the outbox.' });

export function listOutbox(connection: Pick<DatabaseConnection, 'db'>): Operation {
  return listOperation(outboxList, connection, async ({ source }, caller) => {
    const depth = await readOutboxDepth(connection.db, scopeOf(caller, source));
    const { counts, copies, isComplete, oldestPendingAt } = depth;
    return { counts, copies, counts_complete: isComplete, oldest_pending_at: oldestPendingAt };
  });
}
