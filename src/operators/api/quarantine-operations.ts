// The API's actions on the quarantine. Release: deliveries are understood again, by the present schemas, and tallied if they
// can be. Discard: they no longer wait.

import { z } from 'zod';
import type { LogEntry } from '../access/operator-log.ts';
import { encodeCursor } from '../audit/cursor.ts';
import { type Discarded, discardMany, discardOne, previewDiscard } from '../decisions/discard.ts';
import {
  type NotWaiting,
  type QuarantinePlace,
  RELEASED_OF_A_JOB,
  sourceOfDelivery,
} from '../decisions/quarantined.ts';
import { releaseMany, releaseOne, type Release } from '../decisions/release.ts';
import { Delivery } from '../contract/deliveries.ts';
import {
  Discard,
  DISCARDED_AT_ONCE,
  DiscardAnswer,
  DiscardOrder,
  type QuarantineFilter,
  ReleaseOrder,
  ReleasePage,
  ReleaseResult,
} from '../contract/quarantine.ts';
import { placeOf } from './lists.ts';
import {
  type ActionContext,
  ApiError,
  type Caller,
  defineAction,
  notFound,
  type Operation,
  scopeOf,
} from './operation.ts';

const params = z.strictObject({ id: z.uuid() });

export function createQuarantineOperations(): readonly Operation[] {
  return [releaseOneOperation(), releaseManyOperation(), discardOneOperation(), discardManyOperation()];
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
      await requireVisible(id, { caller, trx });
      const release = requireWaiting(await releaseOne(trx, id));
      await record(releaseEntry(release));
      return { status: 200, body: release };
    },
  });
}

function releaseManyOperation(): Operation {
  return defineAction({
    id: 'releaseDeliveries',
    path: '/quarantine/release',
    tag: 'Quarantine',
    summary: 'Try to understand many deliveries again',
    description:
      `Oldest first: at most \`limit\`, ${RELEASED_OF_A_JOB} of one job, and 8 MiB of bodies (but one at least). Continue ` +
      'with `next_cursor` until it is null.',
    role: 'operator',
    body: ReleaseOrder,
    answers: { 200: { description: 'What became of them.', schema: ReleasePage } },
    run: async ({ body: { filter, limit, cursor } }, { caller, trx, record }) => {
      const pages = pagesOf('quarantine release', filter);
      const sources = scopeOf(caller, filter.source);
      const { releases, next } = await releaseMany(trx, {
        filter,
        sources,
        limit,
        after: pages.placeOf(cursor),
      });
      await record(...releases.map(releaseEntry)); // in one statement, since the jobs are locked by now
      return { status: 200, body: { items: releases, next_cursor: pages.cursorOf(next) } };
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
      await record(discardEntry(delivery, note));
      return { status: 200, body: delivery };
    },
  });
}

function discardManyOperation(): Operation {
  return defineAction({
    id: 'discardDeliveries',
    path: '/quarantine/discard',
    tag: 'Quarantine',
    summary: 'Give up many deliveries in quarantine for good',
    description:
      `Oldest first: at most \`limit\`, ${DISCARDED_AT_ONCE} a call. Continue with \`next_cursor\` until it is null. With \`dry_run\` ` +
      'nothing is changed, and nothing recorded; the order that follows needs another `Idempotency-Key`.',
    role: 'operator',
    body: DiscardOrder,
    answers: {
      200: {
        description: 'How many were discarded; or what a dry run found.',
        schema: DiscardAnswer,
      },
    },
    run: async ({ body: { filter, note = '', dry_run: isDry, limit, cursor } }, { caller, trx, record }) => {
      const pages = pagesOf('quarantine discard', filter);
      const sources = scopeOf(caller, filter.source);
      const request = { filter, sources, limit, after: pages.placeOf(cursor) };
      if (isDry) return { status: 200, body: await previewDiscard(trx, request) };
      const { discarded, next } = await discardMany(trx, request, { by: caller.name, note });
      await record(...discarded.map((delivery) => discardEntry(delivery, note)));
      return { status: 200, body: { discarded: discarded.length, next_cursor: pages.cursorOf(next) } };
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

const NOT_WAITING: Readonly<Record<NotWaiting, string>> = {
  'never quarantined': 'it is not in quarantine, and never was',
  released: 'it is not in quarantine any more: it was released',
  discarded: 'it is not in quarantine any more: it was discarded; this cannot be undone',
};

/** @throws ApiError 404, 409 */
function requireWaiting<T extends object>(found: T | NotWaiting | undefined): T {
  if (found === undefined) throw notFound('delivery');
  if (typeof found === 'string') throw new ApiError(409, 'wrong_state', NOT_WAITING[found]);
  return found;
}

/** The cursors of an action on all deliveries that match. */
function pagesOf(list: string, filters: QuarantineFilter) {
  const binding = { list, filters, types: ['time', 'uuid'] } as const;
  return {
    placeOf: (cursor: string | undefined): QuarantinePlace | undefined => {
      const place = placeOf(cursor, binding, 'this action with this filter');
      return place === null ? undefined : { at: place[0], id: place[1] };
    },
    cursorOf: (next: QuarantinePlace | undefined): string | null =>
      next === undefined ? null : encodeCursor([next.at, next.id], list, filters),
  };
}

function releaseEntry({ delivery_id, source, result, event_id, reason }: Release): LogEntry {
  return {
    action: 'quarantine.release',
    source,
    subject: delivery_id,
    detail: { result, event_id, reason },
  };
}

function discardEntry({ id, source, reason }: Discarded, note: string): LogEntry {
  return { action: 'quarantine.discard', source, subject: id, detail: { reason, note } };
}
