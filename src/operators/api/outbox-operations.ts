// The API's actions on one entry of the outbox: retry (send a returned or parked event again), discard, and park. What they
// change is in decisions/. Actions on many: outbox-orders.ts.

import { z } from 'zod';
import { parseEventId } from '../../event/index.ts';
import { decide, type Decision, judge, lockEntry } from '../decisions/decide.ts';
import { eventIdText } from '../contract/filters.ts';
import { ApiError, defineAction, notFound, type Operation, scopeOf } from './operation.ts';
import { COPIES, createOutboxOrders } from './outbox-orders.ts';
import { Entry } from '../contract/outbox.ts';

export function createOutboxOperations(): readonly Operation[] {
  return [
    ...createOutboxOrders(),
    decideOperation('retry', {
      summary: 'Publish a returned or parked event again',
      description: `With its original id, and with all attempts anew. An event that is pending stays as it is. ${COPIES}`,
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
      const verdict = judge(entry, decision);
      if (verdict.is === 'refused') throw new ApiError(409, 'wrong_state', verdict.reason);
      // Somebody decided the same before, and the log has a line about it already.
      if (verdict.is === 'unchanged') return { status: 200, body: entry };
      const decided = await decide(trx, { entry, decision, by: caller.name });
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
      return { status: 200, body: decided };
    },
  });
}
