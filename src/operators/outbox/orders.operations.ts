// The API's orders about entries of the outbox: retry, discard and park.

import type { LogEntry } from '../kernel/access/operator-log.queries.ts';
import type { Operation } from '../kernel/operation/operation.ts';
import { type Done, orderOperation } from '../kernel/order/order.operations.ts';
import type { Order } from '../kernel/order/order.ts';
import { DECISIONS, type Decision, decide, previewEntries } from './decide.queries.ts';
import { DECIDED_AT_ONCE, type EntriesFilter } from './orders.contract.ts';

export function createOutboxOrders(): readonly Operation[] {
  return [
    order(
      'retry',
      'Publish returned or parked events again',
      'With their original ids, and with all attempts anew. Each event that waited at the first call is retried once, even if it \
is returned again; one that is pending stays as it is. One that was nacked may be in some queues already: each of its up to five \
attempts can bring these another copy.',
    ),
    order(
      'discard',
      'Never publish returned or parked events',
      'They leave the outbox, and later events of their jobs go on. The ledger keeps them, and a replay can publish them.',
    ),
    order(
      'park',
      'Hold pending or returned events back, and with them the later ones of their jobs',
      'One that is being published now may still arrive. One that is parked stays as it is.',
    ),
  ];
}

const order = (decision: Decision, summary: string, description: string): Operation =>
  orderOperation<EntriesFilter>(`outbox/${decision}`, {
    summary,
    description: `${description} At most ${DECIDED_AT_ONCE} a call.`,
    types: ['bigint', 'bigint', 'bigint'],
    preview: (trx, selection) => previewEntries(trx, decision, selection),
    carryOut: async (trx, given): Promise<Done> => {
      const { decided, ...rest } = await decide(trx, decision, given);
      return { ...rest, done: decided.length, lines: linesOf(decision, given, decided) };
    },
  });

/** One for each event, so that its job shows the decision in its story; and one for the call, if it had a filter. */
function linesOf(
  decision: Decision,
  { which: { filter } }: Pick<Order<EntriesFilter>, 'which'>,
  decided: Awaited<ReturnType<typeof decide>>['decided'],
): LogEntry[] {
  const action = `outbox.${decision}` as const;
  const ofEntries = decided.map(({ id, event_id, source, state, attempts, last_error }) => ({
    action,
    source,
    subject: event_id,
    detail: { entry: id, state, attempts, last_error },
  }));
  if (filter === undefined) return ofEntries;
  const { source = null, ...others } = filter;
  return [
    { action, source, detail: { ...others, [DECISIONS[decision].past]: decided.length } },
    ...ofEntries,
  ];
}
