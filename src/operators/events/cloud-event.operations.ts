// GET /events/{id}/cloudevent: the message that subscribers get. Its data is made from the body of the event's delivery, as a
// replay makes it, so the operator log has a line of the reading.

import { z } from 'zod';
import { CLOUD_EVENT_TYPE, parseEventId, routingKey } from '../../event/index.ts';
import { type DatabaseConnection, toCloudEvent } from '../../ledger/index.ts';
import { BODY_ROLE } from '../kernel/access/roles.ts';
import { eventIdText } from '../kernel/list/filters.contract.ts';
import {
  ApiError,
  type CallContext,
  defineRead,
  notFound,
  type Operation,
  scopeOf,
} from '../kernel/operation/operation.ts';
import { SentCloudEvent } from './cloud-event.contract.ts';
import { readContent } from './content.queries.ts';
import type { Event } from './contract.ts';
import { findEvent } from './queries.ts';

/** Where events are published. */
export type Bus = { readonly exchange: string; readonly routingPrefix: string };

type Deps = { readonly connection: Pick<DatabaseConnection, 'db'>; readonly bus: Bus };

export function createCloudEventOperations(deps: Deps): readonly Operation[] {
  return [
    defineRead({
      id: 'showCloudEvent',
      path: '/events/{id}/cloudevent',
      tag: 'Events',
      summary: 'An event as a subscriber gets it',
      description:
        'The CloudEvent, byte for byte, and the properties of its AMQP message. A replay’s copy has two headers more. The ' +
        'operator log records each read. Without the body of its delivery it is a 404 `body_not_kept`.',
      role: BODY_ROLE,
      params: z.strictObject({ id: eventIdText }),
      answers: { 200: { description: 'The message.', schema: SentCloudEvent } },
      run: async ({ params: { id } }, context) => ({
        status: 200,
        body: await readMessage(deps, id, context),
      }),
    }),
  ];
}

async function readMessage({ connection: { db }, bus }: Deps, id: string, { caller, record }: CallContext) {
  scopeOf(caller, parseEventId(id)?.source);
  const event = await findEvent(db, id);
  if (event === undefined) throw notFound('event');
  const data = await readData(db, event);
  const { source, job_id: jobId, status, progress_percentage: progress, sequence, late } = event;
  await record({
    action: 'body.read',
    source,
    subject: event.delivery_id,
    detail: { cloudevent: event.id },
  });
  const fields = { sequence, source, jobId, status, progress, late, recordedAt: new Date(event.recorded_at) };
  const { json, type, kind } = toCloudEvent({ ...fields, ...data });
  return {
    exchange: bus.exchange,
    routing_key: routingKey(bus.routingPrefix, kind, source),
    content_type: CLOUD_EVENT_TYPE,
    message_id: event.id,
    type,
    timestamp: event.recorded_at,
    body: json,
  };
}

/** @throws ApiError 404 */
async function readData(db: DatabaseConnection['db'], event: Event) {
  const { data, occurredAt, reason } = await readContent(db, event);
  if (data === null) {
    throw new ApiError(404, 'body_not_kept', `the message cannot be made again: ${reason ?? 'it is gone'}`);
  }
  return { data, occurredAt };
}
