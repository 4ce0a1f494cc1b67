// The operations on deliveries: their list, one, and its body.

import { Readable } from 'node:stream';
import { type DatabaseConnection } from '../../ledger/index.ts';
import { BODY_ROLE } from '../kernel/access/roles.ts';
import { apiList, scoped } from '../kernel/list/list.operations.ts';
import { ApiError, defineRead, notFound, type Operation, scopeOf } from '../kernel/operation/operation.ts';
import { DeliveryDetail, deliveryId } from './contract.ts';
import { deliveries, findBody, findDelivery, shownTo } from './queries.ts';

export const deliveriesList = apiList('deliveries', deliveries, scoped, { shown: shownTo });

type Deps = { readonly connection: Pick<DatabaseConnection, 'db'> };

export function createDeliveryOperations(deps: Deps): readonly Operation[] {
  return [showDelivery(deps), showBody(deps)];
}

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
