// The API's operations on replays: create, list, read, pause, resume and cancel. They write rows; the feeder and the relay
// publish.

import { z } from 'zod';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { apiList, listOperation } from '../kernel/list/list.operations.ts';
import {
  ApiError,
  defineAction,
  defineRead,
  notFound,
  type Operation,
  scopeOf,
} from '../kernel/operation/operation.ts';
import {
  type Change,
  changeReplay,
  createReplay,
  MAX_OPEN_REPLAYS,
  previewReplay,
} from './changes.queries.ts';
import {
  queueNotice,
  REPLAY_SAMPLE_MAX,
  Replay,
  ReplayDetail,
  ReplayPreview,
  SKIPS_SHOWN_MAX,
} from './contract.ts';
import { ReplayOrder } from './order.contract.ts';
import { findReplay, listSkips, replays } from './queries.ts';
import { onlySource, requireVisible, selectByIds } from './scope.operations.ts';

const params = z.strictObject({ id: z.uuid() });
const PAST = { pause: 'paused', resume: 'resumed', cancel: 'cancelled' } as const satisfies Record<
  Change,
  string
>;

export const replaysList = apiList(
  'replays',
  replays,
  ({ state }, caller) => ({ state, within: caller.sources }),
  { answer: 'A page of replays.' },
);

/** Whether the broker has this queue; undefined if it does not say soon. Never rejects. */
export type HasQueue = (queue: string) => Promise<boolean | undefined>;

export function createReplayOperations({
  connection,
  hasQueue,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
  hasQueue: HasQueue;
}): readonly Operation[] {
  return [
    listOperation(replaysList, connection),
    readOperation(connection),
    createOperation(hasQueue),
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
    summary: 'One replay: its progress, and what it left out',
    role: 'viewer',
    params,
    answers: { 200: { description: 'The replay.', schema: ReplayDetail } },
    run: async ({ params: { id } }, { caller }) => {
      const replay = requireVisible(await findReplay(db, id), caller);
      const skips = await listSkips(db, id, SKIPS_SHOWN_MAX);
      return { status: 200, body: { ...replay, skips: skips.map((skip) => ({ replay_id: id, ...skip })) } };
    },
  });
}

function createOperation(hasQueue: HasQueue): Operation {
  return defineAction({
    id: 'createReplay',
    path: '/replays',
    tag: 'Replays',
    summary: 'Publish events again',
    description:
      'Takes ids of events, or a filter: then all events that match now. A copy has the id, sequence and time of its event, and the headers `replay` and `replayed_by`. A copy never overtakes a live event of its job, and never delays one. With `dry_run` nothing is published or recorded. A queue that RabbitMQ does not have is a 409 `no_such_queue`. An `Idempotency-Key` of a dry run cannot be used for the replay itself.',
    role: 'operator',
    body: ReplayOrder,
    namesOthers: true,
    answers: {
      200: { description: 'What a dry run found.', schema: ReplayPreview },
      202: { description: 'The replay has started. Follow it by its id.', schema: Replay },
    },
    run: async ({ body }, { caller, trx, record }) => {
      const request =
        body.filter === undefined
          ? await selectByIds(trx, body.event_ids ?? [], caller)
          : { selection: { filter: body.filter }, sources: scopeOf(caller, body.filter.source) };
      const asked = stateOf(body.queue, hasQueue); // meanwhile the events are counted
      if (body.dry_run) {
        const found = await previewReplay(trx, request, REPLAY_SAMPLE_MAX);
        return { status: 200, body: { ...found, queue_state: await asked } };
      }
      requireQueue(body.queue, await asked);
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

type QueueState = z.output<typeof ReplayPreview>['queue_state'];

async function stateOf(queue: string | undefined, hasQueue: HasQueue): Promise<QueueState> {
  if (queue === undefined) return null;
  const isThere = await hasQueue(queue);
  if (isThere === undefined) return 'unknown';
  return isThere ? 'exists' : 'missing';
}

/** One that may be there is taken: without it, the replay pauses. @throws ApiError 409 */
function requireQueue(queue: string | undefined, state: QueueState): void {
  const notice = queue !== undefined && state === 'missing' && queueNotice(queue, state);
  if (notice) throw new ApiError(409, 'no_such_queue', notice);
}

function changeOperation(change: Change, summary: string): Operation {
  return defineAction({
    id: `${change}Replay`,
    path: `/replays/{id}/${change}`,
    tag: 'Replays',
    summary,
    description:
      'Changes nothing if that is its state already. Copies that are being published now may still arrive.',
    role: 'operator',
    params,
    answers: { 200: { description: 'The replay as it is now.', schema: Replay } },
    run: async ({ params: { id } }, { caller, trx, record }) => {
      requireVisible(await findReplay(trx, id), caller);
      const result = await changeReplay(trx, id, change);
      if (result === undefined) throw notFound('replay');
      if (typeof result === 'string') {
        throw new ApiError(
          409,
          'wrong_state',
          `it is ${result}: a ${result} replay cannot be ${PAST[change]}`,
        );
      }
      const { changed, replay } = result;
      if (changed) await record({ action: `replay.${change}`, subject: id, source: onlySource(replay) });
      return { status: 200, body: replay };
    },
  });
}
