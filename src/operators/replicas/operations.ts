// GET /replicas: the processes of the service, their versions and heartbeats, and which one leads the relay.

import type { DatabaseConnection } from '../../ledger/index.ts';
import { defineRead, type Operation } from '../kernel/operation/operation.ts';
import { ReplicaList } from './contract.ts';
import { readLoss, readReplicas } from './queries.ts';

export function createReplicaOperations({
  connection,
}: {
  readonly connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [
    defineRead({
      id: 'listReplicas',
      path: '/replicas',
      tag: 'Service',
      summary: 'Each replica: its version, its last heartbeat, and whether it leads the relay',
      description: 'The same for every token, since nothing of a source is in it.',
      role: 'viewer',
      answers: { 200: { description: 'All replicas.', schema: ReplicaList } },
      run: async () => {
        const [items, loss] = await Promise.all([readReplicas(connection.db), readLoss(connection.db)]);
        return { status: 200, body: { items, loss } };
      },
    }),
  ];
}
