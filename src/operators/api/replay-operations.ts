// Replays over the API: what an operator asks to be published again, watches and stops. A replay is a write to the
// ledger; nothing here publishes.

import { z } from 'zod';
import { type DatabaseConnection, parseEventId } from '../../ledger/index.ts';
import {
  type Change,
  changeReplay,
  createReplay,
  MAX_OPEN_REPLAYS,
  previewReplay,
} from '../replays/replays.ts';
import { findReplay, listSkips, type Replay as FoundReplay, replays } from '../replays/read-replays.ts';
import { findEvents, type Selection } from '../replays/selection.ts';
import { SEEN_ONLY, SEEN_ONLY_FAULT } from '../../unseen.ts';
import { deliveryFilters, eventFilters, eventIdText, plain } from '../contract/filters.ts';
import { apiList, listOperation } from './lists.ts';
import {
  ApiError,
  type Caller,
  defineAction,
  defineRead,
  forbidden,
  notFound,
  type Operation,
  scopeOf,
} from './operation.ts';
import { Event, page, replayState, ReplaySkip, timestamp } from '../contract/items.ts';

const MAX_EVENT_IDS = 1_000;
const SAMPLE = 10;
const SKIPS_SHOWN = 100;
const MAX_MISSING_SHOWN = 3;
/** AMQP's limit of a routing key, which a queue's name is here. */
const QUEUE_MAX_BYTES = 255;

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

const replayList = apiList({
  name: 'replays',
  filters: { state: replayState.optional() },
  item: Replay,
  page: page(Replay).meta({ id: 'ReplayPage', description: 'A page of replays.' }),
  list: replays,
  toFilters: ({ state }, caller) => ({ state, within: caller.sources }),
  tag: 'Replays',
  summary: 'Replays, newest first',
});

const params = z.strictObject({ id: z.uuid() });

export function createReplayOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [
    listOperation(replayList, connection, { answer: 'A page of replays.' }),
    readOperation(connection),
    createOperation(),
    changeOperation('pause', 'Publish no more of it until it is resumed'),
    changeOperation('resume', 'Go on where it was paused'),
    changeOperation('cancel', 'End it; what is left of it in the outbox goes'),
  ];
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
      const replay = visible(await findReplay(db, id), caller);
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
      const wish =
        body.filter === undefined
          ? await byIds(body.event_ids ?? [], caller, (ids) => findEvents(trx, ids))
          : { selection: { filter: body.filter }, sources: scopeOf(caller, body.filter.source) };
      if (body.dry_run) {
        return { status: 200, body: await previewReplay(trx, wish, SAMPLE) };
      }
      const made = await createReplay(trx, {
        ...wish,
        queue: body.queue ?? null,
        ratePerSecond: body.rate_per_second,
        note: body.note ?? null,
        createdBy: caller.tokenName,
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

/** @throws ApiError 403 for an event of a source that the token may not touch, 404 for one that is not there */
async function byIds(
  ids: readonly string[],
  caller: Caller,
  find: (ids: readonly string[]) => ReturnType<typeof findEvents>,
): Promise<{ selection: Selection; sources: readonly string[] }> {
  for (const id of ids) scopeOf(caller, parseEventId(id)?.source);
  const found = await find(ids);
  const known = new Set(found.map(({ id }) => id));
  const missing = ids.filter((id) => !known.has(id));
  if (missing.length > 0) {
    const shown = missing.slice(0, MAX_MISSING_SHOWN).join(', ');
    const more = missing.length > MAX_MISSING_SHOWN ? ` and ${missing.length - MAX_MISSING_SHOWN} more` : '';
    throw new ApiError(404, 'not_found', `there is no event ${shown}${more}`);
  }
  return {
    selection: { event_ids: [...known], sequences: found.map(({ sequence }) => sequence) },
    sources: [...new Set(found.map(({ source }) => source))],
  };
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
      visible(await findReplay(trx, id), caller);
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

/** @throws ApiError 404, and 403 for a replay that may touch other sources than the token may */
function visible(replay: FoundReplay | undefined, caller: Caller): FoundReplay {
  if (replay === undefined) throw notFound('replay');
  const allowed = caller.sources;
  const isWithin = allowed === null || (replay.sources?.every((source) => allowed.includes(source)) ?? false);
  if (!isWithin) throw forbidden();
  return replay;
}

const onlySource = ({ sources }: FoundReplay): string | null =>
  sources?.length === 1 ? (sources[0] ?? null) : null;
