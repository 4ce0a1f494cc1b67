// The API's operations on replays: create, list, read, pause, resume and cancel. They write rows; the feeder and the relay
// publish.

import { z } from 'zod';
import { encodeCursor } from '../audit/cursor.ts';
import { type DatabaseConnection, parseEventId } from '../../ledger/index.ts';
import {
  type Change,
  changeReplay,
  createReplay,
  MAX_OPEN_REPLAYS,
  previewReplay,
} from '../replays/replays.ts';
import { findReplay, listReplays, listSkips } from '../replays/read-replays.ts';
import { SEEN_ONLY, SEEN_ONLY_FAULT } from '../../unseen.ts';
import { deliveryFilters, eventFilters, eventIdText, paging, plain } from '../contract/filters.ts';
import { placeOf } from './lists.ts';
import { ApiError, defineAction, defineRead, notFound, type Operation, scopeOf } from './operation.ts';
import { onlySource, requireVisible, selectByIds } from './replay-scope.ts';
import { Event, page, replayState, ReplaySkip, timestamp } from '../contract/items.ts';

const MAX_EVENT_IDS = 1_000;
const SAMPLE = 10;
const SKIPS_SHOWN = 100;
/** AMQP's limit of a routing key, which a queue's name is here. */
const QUEUE_MAX_BYTES = 255;
const LIST = 'replays';

const replayFilter = z
  .strictObject({
    ...eventFilters,
    late: z.boolean().optional(),
    secret_fingerprint: deliveryFilters.secret_fingerprint.describe('Of the delivery that told the event.'),
    remote_address: deliveryFilters.remote_address.describe('Of the delivery that told the event.'),
  })
  .refine(
    (filter) => Object.values(filter).some((value) => value !== undefined),
    'must name something: without a filter it would be every event there is',
  )
  .meta({ id: 'ReplayFilter', description: 'As in the list of events. At least one of them.' });

/** What the filter looks like where it is shown again. */
const shownFilter = z.object(replayFilter.shape).partial();

const eventIdParam = eventIdText.refine(
  (id) => parseEventId(id) !== undefined,
  'must be the id of an event, as default:job_7f3a:completed',
);

const queueName = plain(QUEUE_MAX_BYTES)
  .refine((name) => Buffer.byteLength(name) <= QUEUE_MAX_BYTES, `must be at most ${QUEUE_MAX_BYTES} bytes`)
  .refine((name) => SEEN_ONLY.test(name), SEEN_ONLY_FAULT)
  .refine((name) => !name.startsWith('amq.rabbitmq.'), 'is one of the broker’s own')
  .describe('Only to this queue, and not to the exchange. It has to exist.');

const rate = z.int().min(1).max(1_000);

export const replayOrder = z
  .strictObject({
    event_ids: z.array(eventIdParam).min(1).max(MAX_EVENT_IDS).optional(),
    filter: replayFilter.optional(),
    queue: queueName.optional(),
    rate_per_second: rate.default(100).describe('Copies a second at most, spread out.'),
    note: plain(500).optional().describe('Why, for those who look at it later.'),
    dry_run: z.boolean().default(false).describe('Only says what it would begin with.'),
  })
  .refine(
    ({ event_ids: ids, filter }) => (ids === undefined) !== (filter === undefined),
    'exactly one of event_ids and filter must be given',
  )
  .meta({ id: 'ReplayOrder', description: 'What to publish again, and how.' });

const count = z.int().min(0);
const matchedExactly = z
  .boolean()
  .describe(
    'False if so many events would have had to be looked at that there may be more. True in the end.',
  );

export const Replay = z
  .object({
    id: z.uuid(),
    state: replayState,
    paused_because: z.string().nullable(),
    created_at: timestamp,
    created_by: z.string().describe('The name of the token.'),
    note: z.string().nullable(),
    event_ids: z.array(z.string()).nullable(),
    filter: shownFilter.nullable(),
    queue: z.string().nullable().describe('Null: to the exchange.'),
    rate_per_second: rate,
    counts: z.object({
      matched: count.describe('Events that matched when it was made; see `matched_exactly`.'),
      queued: count.describe('Copies put into the outbox.'),
      confirmed: count.describe('Copies that the broker has.'),
      returned: count.describe('Copies for the exchange that no queue was bound for.'),
      failed: count.describe('Copies given up on after all attempts.'),
      skipped: count.describe('Events left out; see `skips`.'),
    }),
    matched_exactly: matchedExactly,
    updated_at: timestamp,
    finished_at: timestamp.nullable(),
  })
  .meta({ id: 'Replay', description: 'Events published again, under the ids that they always had.' });

export const ReplayDetail = Replay.extend({
  skips: z.array(ReplaySkip).max(SKIPS_SHOWN).describe('The first ones.'),
}).meta({ id: 'ReplayDetail', description: 'A replay, with what it left out.' });

export const ReplayPreview = z
  .object({
    matched: count,
    matched_exactly: matchedExactly,
    sample: z
      .array(Event)
      .max(SAMPLE)
      .describe('The first ones, in the order of their acceptance; of those that were counted.'),
  })
  .meta({ id: 'ReplayPreview', description: 'What a replay would begin with.' });

const ReplayPage = page(Replay).meta({ id: 'ReplayPage', description: 'A page of replays.' });

const params = z.strictObject({ id: z.uuid() });

export function createReplayOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [
    listOperation(connection),
    readOperation(connection),
    createOperation(),
    changeOperation('pause', 'Publish no more of it until it is resumed'),
    changeOperation('resume', 'Go on where it was paused'),
    changeOperation('cancel', 'End it; what is left of it in the outbox goes'),
  ];
}

function listOperation({ db }: Pick<DatabaseConnection, 'db'>): Operation {
  return defineRead({
    id: 'listReplays',
    path: '/replays',
    tag: 'Replays',
    summary: 'Replays, newest first',
    role: 'viewer',
    query: z.strictObject({ state: replayState.optional(), ...paging }),
    answers: { 200: { description: 'A page of replays.', schema: ReplayPage } },
    run: async ({ query: { limit, cursor, state } }, { caller }) => {
      const filters = { state };
      const place = placeOf(cursor, { list: LIST, filters, types: ['time', 'uuid'] });
      const after = place === null ? undefined : { at: place[0], id: place[1] };
      const found = await listReplays(db, { state, within: caller.sources, after, limit: limit + 1 });
      const items = found.slice(0, limit);
      const last = found.length > limit ? items.at(-1) : undefined;
      const next = last === undefined ? null : encodeCursor([last.created_at, last.id], LIST, filters);
      return { status: 200, body: { items, next_cursor: next } };
    },
  });
}

function readOperation({ db }: Pick<DatabaseConnection, 'db'>): Operation {
  return defineRead({
    id: 'getReplay',
    path: '/replays/{id}',
    tag: 'Replays',
    summary: 'One replay: how far it is, and what it left out',
    role: 'viewer',
    params,
    answers: { 200: { description: 'The replay.', schema: ReplayDetail } },
    run: async ({ params: { id } }, { caller }) => {
      const replay = requireVisible(await findReplay(db, id), caller);
      const skips = await listSkips(db, id, SKIPS_SHOWN);
      return { status: 200, body: { ...replay, skips: skips.map((skip) => ({ replay_id: id, ...skip })) } };
    },
  });
}

function createOperation(): Operation {
  return defineAction({
    id: 'createReplay',
    path: '/replays',
    tag: 'Replays',
    summary: 'Publish events again',
    description:
      'Names events by id, or all that a filter finds now. Copies have the ids, sequences and times of the first ones and the headers `replay` and `replayed_by`. A copy never passes a live event of its job and holds none back. With `dry_run` nothing is begun, and nothing recorded; an `Idempotency-Key` that it is given belongs to it, and not to the order.',
    role: 'operator',
    body: replayOrder,
    namesOthers: true,
    answers: {
      200: { description: 'What a dry run found.', schema: ReplayPreview },
      202: { description: 'It has begun: watch it under its id.', schema: Replay },
    },
    run: async ({ body }, { caller, trx, record }) => {
      const request =
        body.filter === undefined
          ? await selectByIds(trx, body.event_ids ?? [], caller)
          : { selection: { filter: body.filter }, sources: scopeOf(caller, body.filter.source) };
      if (body.dry_run) return { status: 200, body: await previewReplay(trx, request, SAMPLE) };
      const made = await createReplay(trx, {
        ...request,
        queue: body.queue ?? null,
        ratePerSecond: body.rate_per_second,
        note: body.note ?? null,
        createdBy: caller.name,
      });
      if (made === 'too many') {
        throw new ApiError(
          409,
          'too_many_replays',
          `${MAX_OPEN_REPLAYS} replays run or are paused: wait for one, or cancel one`,
        );
      }
      const { id, filter, queue, rate_per_second, counts, note } = made;
      await record({
        action: 'replay.create',
        subject: id,
        source: onlySource(made),
        detail: {
          ...(filter === null ? { event_ids: body.event_ids?.length } : { filter }),
          matched: counts.matched,
          matched_exactly: made.matched_exactly,
          queue,
          rate_per_second,
          note,
        },
      });
      return { status: 202, body: made };
    },
  });
}

function changeOperation(change: Change, summary: string): Operation {
  return defineAction({
    id: `${change}Replay`,
    path: `/replays/{id}/${change}`,
    tag: 'Replays',
    summary,
    description: 'Changes nothing where that is so already. Copies that are on their way may still arrive.',
    role: 'operator',
    params,
    answers: { 200: { description: 'The replay as it is now.', schema: Replay } },
    run: async ({ params: { id } }, { caller, trx, record }) => {
      requireVisible(await findReplay(trx, id), caller);
      const result = await changeReplay(trx, id, change);
      if (result === undefined) throw notFound('replay');
      if (result === 'wrong state') {
        throw new ApiError(409, 'wrong_state', `its state does not allow to ${change} it`);
      }
      const { changed, replay } = result;
      if (changed) await record({ action: `replay.${change}`, subject: id, source: onlySource(replay) });
      return { status: 200, body: replay };
    },
  });
}
