// The operations on events: their list, and one.

import { z } from 'zod';
import { parseEventId, routingKey } from '../../event/index.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { eventIdText } from '../kernel/list/filters.contract.ts';
import { apiList, scoped } from '../kernel/list/list.operations.ts';
import { defineRead, notFound, type Operation, scopeOf } from '../kernel/operation/operation.ts';
import type { Publication } from '../publications/contract.ts';
import type { Bus } from './cloud-event.operations.ts';
import { EventDetail } from './contract.ts';
import { events, findEvent } from './queries.ts';

export const eventsList = apiList('events', events, scoped);

type Deps = {
  readonly connection: Pick<DatabaseConnection, 'db'>;
  /** Where events are published. */
  readonly bus: Bus;
  /** The last ones. */
  readonly publicationsOf: (eventId: string) => Promise<readonly Publication[]>;
};

export function createEventOperations({ connection, bus, publicationsOf }: Deps): readonly Operation[] {
  return [
    defineRead({
      id: 'showEvent',
      path: '/events/{id}',
      tag: 'Events',
      summary: 'One event, with its publications',
      role: 'viewer',
      params: z.strictObject({ id: eventIdText }),
      answers: { 200: { description: 'The event.', schema: EventDetail } },
      run: async ({ params: { id } }, { caller }) => {
        // Before the query, so that the answer does not tell whether an event of another source exists.
        scopeOf(caller, parseEventId(id)?.source);
        const event = await findEvent(connection.db, id);
        if (event === undefined) throw notFound('event');
        scopeOf(caller, event.source);
        const published_to = {
          exchange: bus.exchange,
          routing_key: routingKey(bus.routingPrefix, event.kind, event.source),
        };
        return { status: 200, body: { ...event, published_to, publications: await publicationsOf(id) } };
      },
    }),
  ];
}
