// The operations that show one item: a delivery, its body, or an event.

import { Readable } from 'node:stream';
import { z } from 'zod';
import { findBody, findDelivery, shownTo } from './queries.ts';
import { findEvent } from '../events/queries.ts';
import { publications } from '../publications/queries.ts';
import { parseEventId } from '../../event/index.ts';
import { type DatabaseConnection } from '../../ledger/index.ts';
import { DeliveryDetail } from './contract.ts';
import { EventDetail, PUBLICATIONS_SHOWN_MAX } from '../events/contract.ts';
import { eventIdText } from '../kernel/list/filters.contract.ts';
import { ApiError, defineRead, notFound, type Operation, scopeOf } from '../kernel/operation/operation.ts';

/** Who may read bodies, and what is taken from them. */
export const BODY_ROLE = 'auditor';

type Deps = { readonly connection: Pick<DatabaseConnection, 'db'> };

export function createItemOperations(deps: Deps): readonly Operation[] {
  return [showDelivery(deps), showBody(deps), showEvent(deps)];
}

export const deliveryId = z.strictObject({
  id: z.uuid('must be a UUID').transform((id) => id.toLowerCase()),
});

function showDelivery({ connection }: Deps): Operation {
  return defineRead({
    id: 'showDelivery',
    path: '/deliveries/{id}',
    tag: 'Deliveries',
    summary: 'One delivery, with its headers',
    role: 'viewer',
    params: deliveryId,
    answers: { 200: { description: 'The delivery.', schema: DeliveryDetail } },
    run: async ({ params: { id } }, { caller }) => {
      const delivery = await findDelivery(connection.db, id);
      if (delivery === undefined) throw notFound('delivery');
      scopeOf(caller, delivery.source);
      return { status: 200, body: shownTo(caller.sources, delivery) };
    },
  });
}

function showBody({ connection }: Deps): Operation {
  return defineRead({
    id: 'showDeliveryBody',
    path: '/deliveries/{id}/body',
    tag: 'Deliveries',
    summary: 'A delivery’s body, byte for byte as it came',
    description:
      'The operator log records each read. The bodies of duplicate, refused and unauthorized deliveries are not kept.',
    role: BODY_ROLE,
    params: deliveryId,
    answers: { 200: { description: 'The body.', contentType: 'application/octet-stream' } },
    run: async ({ params: { id } }, { caller, record }) => {
      const found = await findBody(connection.db, id);
      if (found === undefined) throw notFound('delivery');
      scopeOf(caller, found.source);
      if (found.body === null) {
        throw new ApiError(404, 'body_not_kept', 'the body of this delivery was not kept');
      }
      await record({ action: 'body.read', source: found.source, subject: id });
      return {
        status: 200,
        contentType: 'application/octet-stream',
        headers: {
          // A body comes from outside: it must not run in an operator's browser.
          'Content-Disposition': `attachment; filename="${id}.bin"`,
          'X-Content-Type-Options': 'nosniff',
          'Content-Length': String(found.body.length),
        },
        stream: Readable.from([found.body], { objectMode: false }),
      };
    },
  });
}

function showEvent({ connection }: Deps): Operation {
  return defineRead({
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
      const filters = { sources: null, event_id: id };
      const options = { after: null, limit: PUBLICATIONS_SHOWN_MAX };
      const { items } = await publications.read(connection.db, filters, options);
      return { status: 200, body: { ...event, publications: items } };
    },
  });
}
