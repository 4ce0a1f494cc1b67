// The API's actions on one delivery in quarantine. Release: it is understood again, by the present schemas, and tallied if it
// can be. Discard: it no longer waits. Actions on many: quarantine-orders.ts.

import { z } from 'zod';
import { keepDays } from '../../ledger/index.ts';
import { discardOne } from '../decisions/discard.ts';
import { NOT_WAITING, type NotWaiting, sourceOfDelivery } from '../decisions/quarantined.ts';
import { releaseOne } from '../decisions/release.ts';
import { Delivery } from '../contract/deliveries.ts';
import { Discard, ReleaseResult } from '../contract/quarantine.ts';
import {
  type ActionContext,
  ApiError,
  type Caller,
  defineAction,
  notFound,
  type Operation,
  scopeOf,
} from './operation.ts';
import { createQuarantineOrders, discardLine, releaseLine } from './quarantine-orders.ts';

const params = z.strictObject({ id: z.uuid() });

export function createQuarantineOperations(): readonly Operation[] {
  return [releaseOneOperation(), discardOneOperation(), ...createQuarantineOrders()];
}

function releaseOneOperation(): Operation {
  return defineAction({
    id: 'releaseDelivery',
    path: '/quarantine/{id}/release',
    tag: 'Quarantine',
    summary: 'Try to understand a delivery again',
    description:
      'With the present schemas. What is understood is tallied and published as if it came now; what is not stays where it is.',
    role: 'operator',
    params,
    answers: { 200: { description: 'What became of it.', schema: ReleaseResult } },
    run: async ({ params: { id } }, { caller, trx, record }) => {
      await keepDays(trx);
      await requireVisible(id, { caller, trx });
      const release = requireWaiting(await releaseOne(trx, id));
      await record(releaseLine(release));
      return { status: 200, body: release };
    },
  });
}

function discardOneOperation(): Operation {
  return defineAction({
    id: 'discardDelivery',
    path: '/quarantine/{id}/discard',
    tag: 'Quarantine',
    summary: 'Give up a delivery in quarantine for good',
    description:
      'It no longer waits, and can no longer be released. It stays in the list of deliveries, with its body, for as long as any other.',
    role: 'operator',
    params,
    body: Discard,
    answers: { 200: { description: 'The delivery, discarded.', schema: Delivery } },
    run: async ({ params: { id }, body: { note } }, { caller, trx, record }) => {
      await requireVisible(id, { caller, trx });
      const delivery = requireWaiting(await discardOne(trx, id, { by: caller.name, note }));
      await record(discardLine(delivery, note));
      return { status: 200, body: delivery };
    },
  });
}

/** @throws ApiError 404, 403 */
async function requireVisible(
  id: string,
  { caller, trx }: { caller: Caller; trx: ActionContext['trx'] },
): Promise<void> {
  const source = await sourceOfDelivery(trx, id);
  if (source === undefined) throw notFound('delivery');
  scopeOf(caller, source);
}

/** @throws ApiError 404, 409 */
function requireWaiting<T extends object>(found: T | NotWaiting | undefined): T {
  if (found === undefined) throw notFound('delivery');
  if (typeof found === 'string') throw new ApiError(409, 'wrong_state', NOT_WAITING[found]);
  return found;
}
