// The API's actions on the quarantine: deliveries are understood again, by the present schemas, and tallied if they can be.

import { z } from 'zod';
import type { LogEntry } from '../access/operator-log.ts';
import { encodeCursor } from '../audit/cursor.ts';
import { RELEASED_OF_A_JOB, sourceOfDelivery } from '../decisions/quarantined.ts';
import { releaseMany, releaseOne, type Release } from '../decisions/release.ts';
import { ReleaseOrder, ReleasePage, ReleaseResult } from '../contract/quarantine.ts';
import { placeOf } from './lists.ts';
import { ApiError, defineAction, notFound, type Operation, scopeOf } from './operation.ts';

const LIST = 'quarantine release';

export function createQuarantineOperations(): readonly Operation[] {
  return [
    defineAction({
      id: 'releaseDelivery',
      path: '/quarantine/{id}/release',
      tag: 'Quarantine',
      summary: 'Try to understand a delivery again',
      description:
        'With the present schemas. What is understood is tallied and published as if it came now; what is not stays where it is.',
      role: 'operator',
      params: z.strictObject({ id: z.uuid() }),
      answers: { 200: { description: 'What became of it.', schema: ReleaseResult } },
      run: async ({ params: { id } }, { caller, trx, record }) => {
        const source = await sourceOfDelivery(trx, id);
        if (source === undefined) throw notFound('delivery');
        scopeOf(caller, source);
        const release = await releaseOne(trx, id);
        if (release === undefined) throw notFound('delivery');
        if (release === 'wrong state') {
          throw new ApiError(409, 'wrong_state', 'it is not in quarantine, or not any more');
        }
        await record(logEntryOf(release));
        return { status: 200, body: release };
      },
    }),
    defineAction({
      id: 'releaseDeliveries',
      path: '/quarantine/release',
      tag: 'Quarantine',
      summary: 'Try to understand many deliveries again',
      description:
        `Oldest first: at most \`limit\`, ${RELEASED_OF_A_JOB} of one job, and 8 MiB of bodies (but one at least). Go on ` +
        'with `next_cursor` until it is null.',
      role: 'operator',
      body: ReleaseOrder,
      answers: { 200: { description: 'What became of them.', schema: ReleasePage } },
      run: async ({ body: { filter, limit, cursor } }, { caller, trx, record }) => {
        const sources = scopeOf(caller, filter.source);
        const binding = { list: LIST, filters: filter, types: ['time', 'uuid'] } as const;
        const place = placeOf(cursor, binding, 'this action with this filter');
        const { releases, next } = await releaseMany(trx, {
          filter,
          sources,
          limit,
          after: place === null ? undefined : { at: place[0], id: place[1] },
        });
        await record(...releases.map(logEntryOf)); // in one statement, since the jobs are locked by now
        const nextCursor = next === undefined ? null : encodeCursor([next.at, next.id], LIST, filter);
        return { status: 200, body: { items: releases, next_cursor: nextCursor } };
      },
    }),
  ];
}

function logEntryOf({ delivery_id, source, result, event_id, reason }: Release): LogEntry {
  return {
    action: 'quarantine.release',
    source,
    subject: delivery_id,
    detail: { result, event_id, reason },
  };
}
