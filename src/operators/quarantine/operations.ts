// The list of deliveries in quarantine, and the API's orders about them. Release: they are understood again, by the present
// schemas, and tallied if they can be. Discard: they no longer wait. Each has a line in the operator log.

import { keepDays } from '../../ledger/index.ts';
import { apiList, scoped } from '../kernel/list/list.operations.ts';
import type { Operation } from '../kernel/operation/operation.ts';
import { type OrderSpec, orderOperation } from '../kernel/order/order.operations.ts';
import { DISCARDED_AT_ONCE, type QuarantineFilter, RELEASED_AT_ONCE, UNDERSTOOD } from './contract.ts';
import { discard } from './discard.queries.ts';
import { previewWaiting, RELEASED_OF_A_JOB } from './picked.queries.ts';
import { quarantine } from './queries.ts';
import { release } from './release.queries.ts';
import { previewRelease } from './trial.queries.ts';

export const quarantineList = apiList('quarantine', quarantine, scoped);

const TYPES = ['time', 'uuid'] as const;

export function createQuarantineOrders(): readonly Operation[] {
  return [
    orderOperation('quarantine/release', releaseSpec),
    orderOperation('quarantine/discard', discardSpec),
  ];
}

const releaseSpec: OrderSpec<QuarantineFilter> = {
  types: TYPES,
  preview: previewRelease,
  summary: 'Try to understand deliveries again',
  description: `With the present schemas. What is understood is tallied and published as if it came now; what is not stays where it \
is. A dry run tries the oldest ones, and says how many are understood, and why the others are not. At most ${RELEASED_AT_ONCE} a call, ${RELEASED_OF_A_JOB} of one job, and 8 MiB of bodies (but one at least).`,
  carryOut: async (trx, order) => {
    await keepDays(trx);
    const { releases, others, next } = await release(trx, order);
    return {
      done: releases.filter(({ result }) => UNDERSTOOD.some((one) => one === result)).length,
      items: [...releases, ...others],
      lines: releases.map(({ delivery_id: subject, source, result, event_id, reason }) => ({
        action: 'quarantine.release',
        source,
        subject,
        detail: { result, event_id, reason },
      })),
      next,
    };
  },
};

const discardSpec: OrderSpec<QuarantineFilter> = {
  types: TYPES,
  preview: previewWaiting,
  summary: 'Give up deliveries in quarantine for good',
  description: `They no longer wait, and can no longer be released. They stay in the list of deliveries, with their bodies, for as \
long as any other. At most ${DISCARDED_AT_ONCE} a call.`,
  carryOut: async (trx, order) => {
    const { discarded, others, next } = await discard(trx, order);
    const done = discarded.map(({ id }) => ({
      delivery_id: id,
      result: 'discarded',
      event_id: null,
      reason: null,
    }));
    return {
      done: discarded.length,
      items: order.which.filter === undefined ? [...done, ...others] : undefined,
      lines: discarded.map(({ id: subject, source, reason }) => ({
        action: 'quarantine.discard',
        source,
        subject,
        detail: { reason, note: order.note },
      })),
      next,
    };
  },
};
