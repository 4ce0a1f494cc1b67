// The operations that show one item: a delivery, its body, an event, or the story of a job.

import { Readable } from 'node:stream';
import { z } from 'zod';
import { findBody, findDelivery } from '../audit/deliveries.ts';
import { findEvent } from '../audit/events.ts';
import { publications } from '../audit/publications.ts';
import { encodeCursor } from '../audit/cursor.ts';
import { isStoryPlace, readStory, storyTypes } from '../audit/story.ts';
import { type DatabaseConnection, parseEventId } from '../../ledger/index.ts';
import { DeliveryDetail } from '../contract/deliveries.ts';
import { EventDetail, PUBLICATIONS_SHOWN_MAX } from '../contract/events.ts';
import { eventIdText } from '../contract/filters.ts';
import { Story, storyOf, storyPaging } from '../contract/story.ts';
import { invalidCursor, placeOf } from './lists.ts';
import {
  ApiError,
  type Caller,
  defineRead,
  notFound,
  type Operation,
  type Reply,
  scopeOf,
} from './operation.ts';

type Deps = { readonly connection: Pick<DatabaseConnection, 'db'> };

export function createItemOperations(deps: Deps): readonly Operation[] {
  return [showDelivery(deps), showBody(deps), showEvent(deps), showJob(deps), showStory(deps)];
}

const deliveryId = z.strictObject({ id: z.uuid('must be a UUID').transform((id) => id.toLowerCase()) });

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
      return { status: 200, body: delivery };
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
    role: 'auditor',
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

function showEvent({ connection }: Deps): Operation {
  return defineRead({
    id: 'showEvent',
    path: '/events/{id}',
    tag: 'Events',
    summary: 'One event, with its publications',
    role: 'viewer',
    params: z.strictObject({ id: eventIdText }),
    answers: { 200: { description: 'The event.', schema: EventDetail } },
    run: async ({ params: { id } }, { caller }) => {
      // Before the query, so that the answer does not tell whether an event of another source exists.
      scopeOf(caller, parseEventId(id)?.source);
      const event = await findEvent(connection.db, id);
      if (event === undefined) throw notFound('event');
      scopeOf(caller, event.source);
      const filters = { sources: null, event_id: id };
      const options = { after: null, limit: PUBLICATIONS_SHOWN_MAX };
      const { items } = await publications.read(connection.db, filters, options);
      return { status: 200, body: { ...event, publications: items } };
    },
  });
}

const storyAnswers = { 200: { description: 'A page of the story.', schema: Story } };

function showJob({ connection }: Deps): Operation {
  return defineRead({
    id: 'showJob',
    path: '/jobs/{source}/{job_id}',
    tag: 'Jobs',
    summary: 'One job’s whole story, oldest first',
    description:
      'Every delivery and its outcome, every event, every publication, every replay and what it left out, and what waits.',
    role: 'viewer',
    params: z.strictObject(storyOf),
    query: z.strictObject(storyPaging),
    answers: storyAnswers,
    run: ({ params, query }, { caller }) => answerStory(connection, caller, params, query),
  });
}

function showStory({ connection }: Deps): Operation {
  return defineRead({
    id: 'showStory',
    path: '/story',
    tag: 'Jobs',
    summary: 'One job’s whole story, by parameters',
    description:
      'The same as under `/jobs/{source}/{job_id}`, for jobs whose id is `.` or `..`: clients take these out of a path.',
    role: 'viewer',
    query: z.strictObject({ ...storyOf, ...storyPaging }),
    namesOthers: true,
    answers: storyAnswers,
    run: ({ query: { limit, cursor, ...job } }, { caller }) =>
      answerStory(connection, caller, job, { limit, cursor }),
  });
}

/** Both addresses take each other's cursors. */
async function answerStory(
  { db }: Deps['connection'],
  caller: Caller,
  job: { readonly source: string; readonly job_id: string },
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<Reply> {
  scopeOf(caller, job.source);
  const after = placeOf(cursor, { list: 'story', filters: job, types: storyTypes });
  if (after !== null && !isStoryPlace(after)) throw invalidCursor();
  const story = await readStory(db, { source: job.source, jobId: job.job_id }, { after, limit });
  if (story === undefined) throw notFound('job');
  const { next, ...shown } = story;
  const next_cursor = next === null ? null : encodeCursor(next, 'story', job);
  return { status: 200, body: { ...shown, next_cursor } };
}
