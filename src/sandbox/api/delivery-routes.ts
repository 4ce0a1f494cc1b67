// The webhooks of an account, which the real service shows in its dashboard: list them with their attempts, read one, and
// send one again.

import type { RequestHandler, Response } from 'express';
import type { Deliverer } from '../webhooks/deliverer.ts';
import type { NotificationRecord, NotificationStore } from '../webhooks/notifications.ts';
import { fromCursor, toCursor } from './cursors.ts';
import { callerOf } from './gate.ts';
import { ApiError, INVALID_CURSOR, NOT_FOUND } from './errors.ts';
import { deliveriesQuery, validate } from './schemas.ts';

export const DELIVERIES_PATH = '/v1/webhook_deliveries';

export type DeliveryRoutesOptions = {
  readonly notifications: Pick<NotificationStore, 'find' | 'list'>;
  readonly deliverer: Pick<Deliverer, 'redeliver'>;
};

export function listDeliveriesRoute({ notifications }: DeliveryRoutesOptions): RequestHandler {
  return (request, response) => {
    const { job_id: jobId, limit, cursor } = validate(deliveriesQuery, { ...request.query });
    const before = cursor === undefined ? undefined : fromCursor('deliveries', cursor);
    if (
      cursor !== undefined &&
      (before === undefined || findOwn(notifications, before, response) === undefined)
    ) {
      throw new ApiError(INVALID_CURSOR);
    }

    const found = notifications.list({
      accountId: callerOf(response).account.id,
      limit: limit + 1, // one more shows whether there is a next page
      ...(jobId !== undefined && { jobId }),
      ...(before !== undefined && { before }),
    });
    const shown = found.slice(0, limit);
    const last = found.length > limit ? shown.at(-1) : undefined;
    response.json({
      webhook_deliveries: shown.map((record) => summary(record)),
      next_cursor: last === undefined ? null : toCursor('deliveries', last.notification.id),
    });
  };
}

type WithId = RequestHandler<{ id: string }>;

export function readDeliveryRoute({ notifications }: DeliveryRoutesOptions): WithId {
  return (request, response) => {
    const found = findOwn(notifications, request.params.id, response);
    if (found === undefined) throw new ApiError(NOT_FOUND);
    // As text, since the signature is over exactly these bytes.
    response.json({ ...summary(found), body: found.notification.body.toString('utf8') });
  };
}

export function redeliverRoute({ notifications, deliverer }: DeliveryRoutesOptions): WithId {
  return (request, response) => {
    const found = findOwn(notifications, request.params.id, response);
    if (found === undefined || !deliverer.redeliver(found.notification.id)) throw new ApiError(NOT_FOUND);
    response.status(202).json(summary(found));
  };
}

/** A notification of another account counts as missing. */
function findOwn(
  notifications: Pick<NotificationStore, 'find'>,
  id: string,
  response: Response,
): NotificationRecord | undefined {
  const found = notifications.find(id);
  return found?.notification.accountId === callerOf(response).account.id ? found : undefined;
}

function summary({ notification, state, attempts }: NotificationRecord) {
  return {
    id: notification.id,
    job_id: notification.jobId,
    event: notification.kind,
    url: notification.url,
    state,
    created_at: notification.createdAt,
    attempts: attempts.map((attempt) => ({
      attempt: attempt.attempt,
      started_at: attempt.startedAt,
      duration_ms: attempt.durationMs,
      http_status: attempt.httpStatus,
      error: attempt.error,
    })),
  };
}
