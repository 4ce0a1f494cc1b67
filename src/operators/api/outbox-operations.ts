// The API's actions on the outbox: retry (send a returned or parked event again), discard, and park. What they change is in
// decisions/.

import { z } from 'zod';
import { encodeCursor } from '../audit/cursor.ts';
import { parseEventId } from '../../ledger/index.ts';
import { decide, type Decision, lockEntry } from '../decisions/decide.ts';
import { RETRIED_AT_ONCE, retryEntries } from '../decisions/retry.ts';
import { eventIdText } from '../contract/filters.ts';
import { placeOf } from './lists.ts';
import { ApiError, defineAction, notFound, type Operation, scopeOf } from './operation.ts';
import { Entry, Retried, RetryOrder } from '../contract/outbox.ts';

const LIST = 'outbox retry';
const PAST = { retry: 'retried', discard: 'discarded', park: 'parked' } as const satisfies Record<
  Decision,
  string
>;

export function createOutboxOperations(): readonly Operation[] {
  return [
    retryManyOperation(),
    decideOperation('retry', {
      summary: 'Publish a returned or parked event again',
      description:
        'With its original id, and with all attempts anew. An event that is pending stays as it is.',
      answer: 'The entry, pending again.',
    }),
    decideOperation('discard', {
      summary: 'Never publish a returned or parked event',
      description:
        'It leaves the outbox, and later events of its job go on. The ledger keeps it, and a replay can publish it.',
      answer: 'The entry as it was.',
    }),
    decideOperation('park', {
      summary: 'Hold an event back, and with it the later ones of its job',
      description:
        'If it is being published now, it may still arrive. An event that is parked stays as it is.',
      answer: 'The entry, parked.',
    }),
  ];
}

function decideOperation(
  decision: Decision,
  { summary, description, answer }: { summary: string; description: string; answer: string },
): Operation {
  return defineAction({
    id: `${decision}Entry`,
    path: `/outbox/{id}/${decision}`,
    tag: 'Outbox',
    summary,
    description,
    role: 'operator',
    params: z.strictObject({ id: eventIdText.describe('The entry’s number, or the event’s id.') }),
    answers: { 200: { description: answer, schema: Entry } },
    run: async ({ params: { id } }, { caller, trx, record }) => {
      // An event's id names its source: outside the token's scope it is a 403 before any look-up. An entry's number can be
      // guessed, so an entry outside the scope gets the same 404 as one that does not exist.
      scopeOf(caller, parseEventId(id)?.source);
      const entry = await lockEntry(trx, id);
      if (entry === undefined || caller.sources?.includes(entry.source) === false) {
        throw notFound('entry in the outbox');
      }
      const decided = await decide(trx, { entry, decision, by: caller.name });
      if (decided === undefined) {
        throw new ApiError(
          409,
          'wrong_state',
          entry.replay_id === null
            ? `it is ${entry.state}: a ${entry.state} event cannot be ${PAST[decision]}`
            : 'it is a replay’s copy: pause, resume or cancel the replay',
        );
      }
      // Somebody decided the same before, and the log has a line about it already.
      if (!decided.isChanged) return { status: 200, body: decided.entry };
      await record({
        action: `outbox.${decision}`,
        source: entry.source,
        subject: entry.event_id,
        detail: {
          entry: entry.id,
          state: entry.state,
          attempts: entry.attempts,
          last_error: entry.last_error,
        },
      });
      return { status: 200, body: decided.entry };
    },
  });
}

function retryManyOperation(): Operation {
  return defineAction({
    id: 'retryEntries',
    path: '/outbox/retry',
    tag: 'Outbox',
    summary: 'Publish all returned or all parked events again',
    description: `The oldest ${RETRIED_AT_ONCE} of them. Continue with \`next_cursor\` until it is null. Each event that waited at the first call is retried once, even if it is returned again.`,
    role: 'operator',
    body: RetryOrder,
    answers: { 200: { description: 'How many are pending again.', schema: Retried } },
    run: async ({ body: { state, source: wanted, cursor } }, { caller, trx, record }) => {
      const filter = { state, source: wanted };
      const sources = scopeOf(caller, wanted);
      const binding = { list: LIST, filters: filter, types: ['bigint', 'bigint'] } as const;
      const place = placeOf(cursor, binding, 'this action with this order');
      const { retried, next } = await retryEntries(trx, {
        state,
        sources,
        place: place === null ? undefined : { after: place[0], upTo: place[1] },
      });
      // A line for the call and one for each event, so that the events' jobs show the retry in their stories.
      await record(
        {
          action: 'outbox.retry',
          source: wanted ?? null,
          detail: { state, retried: retried.length },
        },
        ...retried.map(({ id, event_id, source: of, last_error }) => ({
          action: 'outbox.retry',
          source: of,
          subject: event_id,
          detail: { entry: id, state, last_error },
        })),
      );
      const nextCursor = next === undefined ? null : encodeCursor([next.after, next.upTo], LIST, filter);
      return {
        status: 200,
        body: { retried: retried.length, remaining: next !== undefined, next_cursor: nextCursor },
      };
    },
  });
}
