// The API's actions on many deliveries in quarantine: release and discard, by ids or by a filter, with a dry run.

import { keepDays } from '../../ledger/index.ts';
import type { LogEntry } from '../access/operator-log.ts';
import { encodeCursor } from '../audit/cursor.ts';
import {
  DiscardAnswer,
  DISCARDED_AT_ONCE,
  DiscardOrder,
  type QuarantineFilter,
  type QuarantinePreview,
  ReleaseAnswer,
  RELEASED_AT_ONCE,
  ReleaseOrder,
} from '../contract/quarantine.ts';
import { type Discarded, discardMany, discardNamed } from '../decisions/discard.ts';
import { previewNamed } from '../decisions/named-deliveries.ts';
import { previewMatching, type QuarantinePlace, RELEASED_OF_A_JOB } from '../decisions/quarantined.ts';
import { releaseMany, releaseNamed, type Release } from '../decisions/release.ts';
import { placeOf } from './lists.ts';
import { type ActionContext, defineAction, type Operation, scopeOf } from './operation.ts';

const DRY_RUN =
  'With `dry_run` nothing is changed, and nothing recorded; the order that follows needs another `Idempotency-Key`.';

export function createQuarantineOrders(): readonly Operation[] {
  return [releaseOperation(), discardOperation()];
}

function releaseOperation(): Operation {
  return defineAction({
    id: 'releaseDeliveries',
    path: '/quarantine/release',
    tag: 'Quarantine',
    summary: 'Try to understand many deliveries again',
    description:
      `By \`ids\` or by a \`filter\`, oldest first: at most \`limit\`, ${RELEASED_AT_ONCE} a call, ${RELEASED_OF_A_JOB} of one job, and 8 MiB ` +
      `of bodies (but one at least). Continue with \`next_cursor\` until it is null. ${DRY_RUN}`,
    role: 'operator',
    body: ReleaseOrder,
    answers: {
      200: { description: 'What became of them; or what a dry run found.', schema: ReleaseAnswer },
    },
    run: async ({ body: { dry_run: isDry, limit, cursor, ...order } }, context) => {
      if (isDry) return { status: 200, body: await preview(order, context) };
      const { trx, record } = context;
      await keepDays(trx);
      const { pages, ids, filter, sources } = wantedBy('release', order, context);
      const place = { sources, limit, after: pages.placeOf(cursor) };
      const { releases, others, next } =
        filter === undefined
          ? await releaseNamed(trx, { ids, ...place })
          : { others: [], ...(await releaseMany(trx, { filter, ...place })) };
      await record(...releases.map(releaseLine)); // in one statement, since the jobs are locked by now
      const passedOver = others.map((other) => ({ ...other, event_id: null }));
      return {
        status: 200,
        body: { items: [...releases, ...passedOver], next_cursor: pages.cursorOf(next) },
      };
    },
  });
}

function discardOperation(): Operation {
  return defineAction({
    id: 'discardDeliveries',
    path: '/quarantine/discard',
    tag: 'Quarantine',
    summary: 'Give up many deliveries in quarantine for good',
    description:
      `By \`ids\` or by a \`filter\`, oldest first: at most \`limit\`, ${DISCARDED_AT_ONCE} a call. Continue with \`next_cursor\` until it is ` +
      `null. ${DRY_RUN}`,
    role: 'operator',
    body: DiscardOrder,
    answers: {
      200: { description: 'How many were discarded; or what a dry run found.', schema: DiscardAnswer },
    },
    run: async ({ body: { note = '', dry_run: isDry, limit, cursor, ...order } }, context) => {
      if (isDry) return { status: 200, body: await preview(order, context) };
      const { caller, trx, record } = context;
      const { pages, ids, filter, sources } = wantedBy('discard', order, context);
      const place = { sources, limit, after: pages.placeOf(cursor) };
      const decided = { by: caller.name, note };
      const { discarded, next, ...rest } =
        filter === undefined
          ? await discardNamed(trx, { ids, ...place }, decided)
          : await discardMany(trx, { filter, ...place }, decided);
      await record(...discarded.map((delivery) => discardLine(delivery, note)));
      return {
        status: 200,
        body: { discarded: discarded.length, ...rest, next_cursor: pages.cursorOf(next) },
      };
    },
  });
}

type Order = {
  readonly ids?: readonly string[] | undefined;
  readonly filter?: QuarantineFilter | undefined;
};

/** @throws ApiError 403 */
function wantedBy(action: 'release' | 'discard', order: Order, { caller }: Pick<ActionContext, 'caller'>) {
  const { ids = [], filter } = order;
  return {
    ids,
    filter,
    sources: scopeOf(caller, filter?.source),
    pages: pagesOf(`quarantine ${action}`, filter ?? { ids }),
  };
}

/** The same for both: what waits and matches. @throws ApiError 403 */
function preview({ ids = [], filter }: Order, { caller, trx }: ActionContext): Promise<QuarantinePreview> {
  const sources = scopeOf(caller, filter?.source);
  return filter === undefined
    ? previewNamed(trx, { ids, sources })
    : previewMatching(trx, { filter, sources });
}

/** The cursors of an order. */
function pagesOf(list: string, filters: object) {
  const binding = { list, filters, types: ['time', 'uuid'] } as const;
  return {
    placeOf: (cursor: string | undefined): QuarantinePlace | undefined => {
      const place = placeOf(cursor, binding, 'this action with this order');
      return place === null ? undefined : { at: place[0], id: place[1] };
    },
    cursorOf: (next: QuarantinePlace | undefined): string | null =>
      next === undefined ? null : encodeCursor([next.at, next.id], list, filters),
  };
}

export function releaseLine({ delivery_id, source, result, event_id, reason }: Release): LogEntry {
  return {
    action: 'quarantine.release',
    source,
    subject: delivery_id,
    detail: { result, event_id, reason },
  };
}

export function discardLine({ id, source, reason }: Discarded, note: string): LogEntry {
  return { action: 'quarantine.discard', source, subject: id, detail: { reason, note } };
}
