// What the dashboard would show of webhooks: every notice with its attempts, and a way to send one again.

import type { RequestHandler, Response } from 'express';
import type { Deliverer, NoticeRecord, NoticeStore } from '../webhooks/deliverer.ts';
import { fromCursor, toCursor } from './cursors.ts';
import { callerOf } from './gate.ts';
import { invalid, NOT_FOUND, refuse } from './errors.ts';
import { deliveriesQuery, understand } from './schemas.ts';

export const DELIVERIES_PATH = '/v1/webhook_deliveries';

export type DeliveryRoutesOptions = {
  readonly notices: Pick<NoticeStore, 'find' | 'list'>;
  readonly deliverer: Pick<Deliverer, 'redeliver'>;
};

export function listDeliveriesRoute({ notices }: DeliveryRoutesOptions): RequestHandler {
  return (request, response) => {
    const understood = understand(deliveriesQuery, { ...request.query });
    if ('details' in understood) return refuse(response, invalid(understood.details));
    const { job_id: jobId, limit, cursor } = understood.value;
    const before = cursor === undefined ? undefined : fromCursor('deliveries', cursor);
    if (cursor !== undefined && (before === undefined || findOwn(notices, before, response) === undefined)) {
      return refuse(response, invalid([{ field: 'cursor', message: 'is not one of ours' }]));
    }

    const found = notices.list({
      accountId: callerOf(response).account.id,
      limit: limit + 1, // one more tells whether there is a next page
      ...(jobId !== undefined && { jobId }),
      ...(before !== undefined && { before }),
    });
    const shown = found.slice(0, limit);
    const last = found.length > limit ? shown.at(-1) : undefined;
    response.json({
      webhook_deliveries: shown.map((record) => summary(record)),
      next_cursor: last === undefined ? null : toCursor('deliveries', last.notice.id),
    });
  };
}

type WithId = RequestHandler<{ id: string }>;

export function readDeliveryRoute({ notices }: DeliveryRoutesOptions): WithId {
  return (request, response) => {
    const found = findOwn(notices, request.params.id, response);
    if (found === undefined) return refuse(response, NOT_FOUND);
    // As text: the signature is over these bytes, and not over what somebody's parser makes of them.
    response.json({ ...summary(found), body: found.notice.body.toString('utf8') });
  };
}

export function redeliverRoute({ notices, deliverer }: DeliveryRoutesOptions): WithId {
  return (request, response) => {
    const found = findOwn(notices, request.params.id, response);
    if (found === undefined || !deliverer.redeliver(found.notice.id)) return refuse(response, NOT_FOUND);
    response.status(202).json(summary(found));
  };
}

/** Somebody else's is none. */
function findOwn(
  notices: Pick<NoticeStore, 'find'>,
  id: string,
  response: Response,
): NoticeRecord | undefined {
  const found = notices.find(id);
  return found?.notice.accountId === callerOf(response).account.id ? found : undefined;
}

function summary({ notice, state, attempts }: NoticeRecord) {
  return {
    id: notice.id,
    job_id: notice.jobId,
    event: notice.kind,
    url: notice.url,
    state,
    created_at: notice.createdAt,
    attempts: attempts.map((attempt) => ({
      attempt: attempt.attempt,
      started_at: attempt.startedAt,
      duration_ms: attempt.durationMs,
      http_status: attempt.httpStatus,
      error: attempt.error,
    })),
  };
}
