// GET /deliveries/{id}/difference: what a conflicting delivery says otherwise than the event. It reads two bodies, and the
// operator log has a line of each.

import type { DatabaseConnection } from '../../ledger/index.ts';
import { findEvent } from '../events/queries.ts';
import { BODY_ROLE } from '../kernel/access/roles.ts';
import {
  ApiError,
  type CallContext,
  defineRead,
  notFound,
  type Operation,
  scopeOf,
} from '../kernel/operation/operation.ts';
import { deliveryId } from './contract.ts';
import { Difference } from './difference.contract.ts';
import { differencesOf } from './difference.queries.ts';
import { type AuditedDelivery, findBody, findDelivery, shownTo } from './queries.ts';

type Deps = { readonly connection: Pick<DatabaseConnection, 'db'> };
type Db = DatabaseConnection['db'];

export function createDifferenceOperations({ connection }: Deps): readonly Operation[] {
  return [
    defineRead({
      id: 'showDifference',
      path: '/deliveries/{id}/difference',
      tag: 'Deliveries',
      summary: 'What a conflicting delivery says otherwise than the event',
      description:
        'For a delivery with the outcome `conflict`: the fields in which its body differs from the body that made the event. The ' +
        'operator log records that both bodies were read. Both must be kept: else 404 `body_not_kept`. A delivery without a ' +
        'conflict is 404 `no_conflict`.',
      role: BODY_ROLE,
      params: deliveryId,
      answers: { 200: { description: 'The delivery, the event, and what differs.', schema: Difference } },
      run: async ({ params: { id } }, context) => ({
        status: 200,
        body: await readDifference(connection.db, id, context),
      }),
    }),
  ];
}

async function readDifference(db: Db, id: string, { caller, record }: CallContext) {
  const delivery = await findDelivery(db, id);
  if (delivery === undefined) throw notFound('delivery');
  scopeOf(caller, delivery.source);
  const { event, first } = await findContradicted(db, delivery);
  // Both first: the operator log records what was shown, and nothing is shown without both.
  const bodies = [
    { of: first, body: await bodyOf(db, first, 'the delivery that made the event') },
    { of: delivery, body: await bodyOf(db, delivery, 'this delivery') },
  ] as const;
  for (const { of } of bodies) {
    await record({ action: 'body.read', source: of.source, subject: of.id, detail: { difference: id } });
  }
  const { differences, hasMore } = differencesOf(bodies[0].body, bodies[1].body);
  return {
    delivery: shownTo(caller.sources, delivery),
    event,
    first_delivery: shownTo(caller.sources, first),
    differences,
    has_more: hasMore,
  };
}

/** @throws ApiError 404 */
async function findContradicted(db: Db, { outcome, event_id: eventId }: AuditedDelivery) {
  const event = outcome === 'conflict' && eventId !== null ? await findEvent(db, eventId) : undefined;
  if (event === undefined) {
    throw new ApiError(404, 'no_conflict', `this delivery contradicts no event: its outcome is ${outcome}`);
  }
  const first = await findDelivery(db, event.delivery_id);
  if (first === undefined) throw notKept('the delivery that made the event');
  return { event, first };
}

async function bodyOf(db: Db, { id }: AuditedDelivery, what: string): Promise<Buffer> {
  const found = await findBody(db, id);
  if (!found?.body) throw notKept(what);
  return found.body;
}

const notKept = (what: string) =>
  new ApiError(404, 'body_not_kept', `the body of ${what} is no longer kept, so they cannot be compared`);
