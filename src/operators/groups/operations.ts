// The operations that count what is in the outbox and in quarantine, by what it has in common.

import { z } from 'zod';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { defineRead, type Operation, scopeOf } from '../kernel/operation/operation.ts';
import { COUNTED_MAX } from '../kernel/order/fields.contract.ts';
import { OutboxGroups, outboxGroupFilters, QuarantineGroups, quarantineGroupFilters } from './contract.ts';
import { groupOutbox, groupQuarantine } from './queries.ts';

const HOW = `The largest groups first. A group is counted to ${COUNTED_MAX.toLocaleString('en-US')} at most.`;

export function createGroupOperations({
  connection: { db },
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [
    defineRead({
      id: 'groupOutbox',
      path: '/outbox/groups',
      tag: 'Outbox',
      summary: 'How much there is in the outbox, by reason, queue or source',
      description: `${HOW} Each state is counted for itself, and so are the copies of replays.`,
      role: 'viewer',
      query: z.strictObject(outboxGroupFilters),
      answers: { 200: { description: 'The groups.', schema: OutboxGroups } },
      run: async ({ query: { source, ...asked } }, { caller }) => ({
        status: 200,
        body: await groupOutbox(db, { ...asked, sources: scopeOf(caller, source) }),
      }),
    }),
    defineRead({
      id: 'groupQuarantine',
      path: '/quarantine/groups',
      tag: 'Quarantine',
      summary: 'How much there is in quarantine, by reason or source',
      description: HOW,
      role: 'viewer',
      query: z.strictObject(quarantineGroupFilters),
      answers: { 200: { description: 'The groups.', schema: QuarantineGroups } },
      run: async ({ query: { source, ...asked } }, { caller }) => ({
        status: 200,
        body: await groupQuarantine(db, { ...asked, sources: scopeOf(caller, source) }),
      }),
    }),
  ];
}
