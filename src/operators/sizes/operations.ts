// GET /sizes: what the tables hold, what a day adds, and what that comes to.

import type { DatabaseConnection } from '../../ledger/index.ts';
import { defineRead, type Operation } from '../kernel/operation/operation.ts';
import { Sizes } from './contract.ts';
import { readSizes } from './queries.ts';

export function createSizeOperations({
  connection,
  retentionDays,
}: {
  readonly connection: Pick<DatabaseConnection, 'db'>;
  readonly retentionDays: number;
}): readonly Operation[] {
  return [
    defineRead({
      id: 'getSizes',
      path: '/sizes',
      tag: 'Service',
      summary: 'What the tables hold now, what a day adds, and what it comes to at the retention',
      description:
        'Estimated from the statistics and files of Postgres: no table is counted, so it costs as much in a large ledger as in a ' +
        'small one. For tokens that are not limited to some sources, since it is of all of them.',
      role: 'viewer',
      needsAllSources: true,
      answers: { 200: { description: 'The tables, the largest first, and all together.', schema: Sizes } },
      run: async () => ({ status: 200, body: await readSizes(connection.db, { retentionDays }) }),
    }),
  ];
}
