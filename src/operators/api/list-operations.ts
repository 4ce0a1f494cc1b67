// The operations that show lists: jobs, deliveries, events, publications, the quarantine, and the outbox with its depth.

import { z } from 'zod';
import { readDepth } from '../audit/outbox.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { paging } from '../contract/filters.ts';
import { LISTS, listOperation, readListPage } from './lists.ts';
import { defineRead, type Operation, scopeOf } from './operation.ts';
import { Entry, page, timestamp } from '../contract/items.ts';

export const OutboxPage = page(Entry)
  .extend({
    counts: z
      .object({
        pending: z.int().min(0),
        returned: z.int().min(0),
        parked: z.int().min(0),
      })
      .describe('Of events themselves; replays’ copies are counted apart.'),
    copies: z.int().min(0).describe('How many copies of replays there are, in any state.'),
    counts_complete: z
      .boolean()
      .describe(
        'False if there may be more than were counted: the oldest 100,000 of each state are looked at, whosoever they are.',
      ),
    oldest_pending_at: timestamp
      .nullable()
      .describe('When the oldest pending one was accepted. Null if none was found among those looked at.'),
  })
  .meta({ id: 'OutboxPage', description: 'What waits, and how much of it there is.' });

export function createListOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  const { outbox, ...others } = LISTS;
  return [
    ...Object.values(others).map((list) => listOperation(list, connection)),
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
        const depth = await readDepth(connection.db, { sources: scopeOf(caller, query.source) });
        const { counts, copies, is_complete, oldest_pending_at } = depth;
        return {
          status: 200,
          body: { ...found, counts, copies, counts_complete: is_complete, oldest_pending_at },
        };
      },
    }),
  ];
}
