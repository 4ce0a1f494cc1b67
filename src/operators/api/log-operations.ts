// The operation that shows the operator log: who looked at what, and who changed what.

import type { DatabaseConnection } from '../../ledger/index.ts';
import { listOperation, LISTS } from './lists.ts';
import type { Operation } from './operation.ts';

export function createLogOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [
    listOperation(LISTS['operator-log'], connection, { role: 'auditor', answer: 'A page of the log.' }),
  ];
}
