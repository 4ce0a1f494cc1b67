// The operations that tell the story of a job, by its path or by parameters.

import { z } from 'zod';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { BODY_ROLE, mayAct } from '../kernel/access/roles.ts';
import { encodeCursor } from '../kernel/list/cursor.ts';
import { invalidCursor, placeOf } from '../kernel/list/list.operations.ts';
import {
  type CallContext,
  defineRead,
  notFound,
  type Operation,
  type Reply,
  scopeOf,
} from '../kernel/operation/operation.ts';
import { type StoryItem, Story as StoryPage, storyOf, storyPaging } from './contract.ts';
import { readErrorMessage } from './error-message.queries.ts';
import { isStoryPlace, readStory, type Story, storyTypes } from './queries.ts';

type Deps = { readonly connection: Pick<DatabaseConnection, 'db'> };

export function createStoryOperations(deps: Deps): readonly Operation[] {
  return [showJob(deps), showStory(deps)];
}

type StoryQuery = {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly error_message?: boolean | undefined;
};

const storyAnswers = { 200: { description: 'A page of the story.', schema: StoryPage } };

function showJob({ connection }: Deps): Operation {
  return defineRead({
    id: 'showJob',
    path: '/jobs/{source}/{job_id}',
    tag: 'Jobs',
    summary: 'One job’s whole story, oldest first',
    description:
      'Every delivery and its outcome, every event, every publication, every replay and what it left out, and what waits. ' +
      'For the role `auditor` and above, a failed event has its `error_message`, as long as the body is kept. The operator ' +
      'log has a line of that, as of any body that is read.',
    role: 'viewer',
    params: z.strictObject(storyOf),
    query: z.strictObject(storyPaging),
    answers: storyAnswers,
    run: ({ params, query }, context) => answerStory(connection, context, params, query),
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
    run: ({ query: { source, job_id, ...asked } }, context) =>
      answerStory(connection, context, { source, job_id }, asked),
  });
}

/** Both addresses take each other's cursors. */
async function answerStory(
  { db }: Deps['connection'],
  { caller, record }: CallContext,
  job: { readonly source: string; readonly job_id: string },
  { limit, cursor, error_message: isMessageWanted = true }: StoryQuery,
): Promise<Reply> {
  scopeOf(caller, job.source);
  const after = placeOf(cursor, { list: 'story', filters: job, types: storyTypes });
  if (after !== null && !isStoryPlace(after)) throw invalidCursor();
  const story = await readStory(db, { source: job.source, jobId: job.job_id }, { after, limit });
  if (story === undefined) throw notFound('job');
  const isMessageShown = isMessageWanted && mayAct(caller.role, BODY_ROLE);
  const items = isMessageShown ? await withErrorMessage(db, record, story) : story.items;
  const next_cursor = story.next === null ? null : encodeCursor(story.next, 'story', job);
  return { status: 200, body: { job: story.job, held_back: story.heldBack, items, next_cursor } };
}

/** A job fails once, so at most one body is read. The operator log has a line of it, as of any body that is read. */
async function withErrorMessage(
  db: Deps['connection']['db'],
  record: CallContext['record'],
  { items }: Story,
): Promise<readonly StoryItem[]> {
  const failure = items.find((item) => item.what === 'event' && item.event.kind === 'failed');
  if (failure?.what !== 'event') return items;
  const { delivery_id: id, source } = failure.event;
  const error_message = await readErrorMessage(db, id);
  if (error_message === null) return items;
  await record({ action: 'body.read', source, subject: id, detail: { field: 'error_message' } });
  const told = { ...failure, event: { ...failure.event, error_message } };
  return items.map((item) => (item === failure ? told : item));
}
