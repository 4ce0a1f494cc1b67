// The API's actions on many entries of the outbox: retry and discard, by ids or by a filter, with a dry run.

import type { LogEntry } from '../access/operator-log.ts';
import { encodeCursor } from '../audit/cursor.ts';
import {
  DECIDED_AT_ONCE,
  DiscardEntriesAnswer,
  DiscardEntriesOrder,
  type EntriesFilter,
  type EntryItem,
  type OutboxPreview,
  RetryAnswer,
  RetryOrder,
} from '../contract/outbox-orders.ts';
import type { OutboxState } from '../../ledger/index.ts';
import { type EntryPlace, previewEntries, wholeOutbox } from '../decisions/entries.ts';
import { decideNamed, previewNamed } from '../decisions/named-entries.ts';
import { type DecidedEntry, decideEntries, type ManyDecision } from '../decisions/retry.ts';
import { placeOf } from './lists.ts';
import { type ActionContext, defineAction, type Operation, scopeOf } from './operation.ts';

/** What a retry may cost others. */
export const COPIES =
  'One that was nacked may be in some queues already: each of its up to five attempts can bring these another copy.';

const HOW =
  `By \`ids\`, or by a \`filter\` the oldest first; at most \`limit\`, ${DECIDED_AT_ONCE} a call. Continue with \`next_cursor\` until ` +
  'it is null. With `dry_run` nothing is changed, and nothing recorded; the order that follows needs another `Idempotency-Key`.';

export function createOutboxOrders(): readonly Operation[] {
  return [retryOperation(), discardOperation()];
}

function retryOperation(): Operation {
  return defineAction({
    id: 'retryEntries',
    path: '/outbox/retry',
    tag: 'Outbox',
    summary: 'Publish many returned or parked events again',
    description: `${HOW} Each event that waited at the first call is retried once, even if it is returned again. ${COPIES}`,
    role: 'operator',
    body: RetryOrder,
    answers: {
      200: { description: 'How many are pending again; or what a dry run found.', schema: RetryAnswer },
    },
    run: async ({ body: { state, source, ...order } }, context) => {
      const filter = state === undefined ? order.filter : { state, source };
      const done = await carryOut('retry', { ...order, filter }, context);
      if ('matched' in done) return { status: 200, body: done };
      const { count, ...page } = done;
      return { status: 200, body: { retried: count, remaining: page.next_cursor !== null, ...page } };
    },
  });
}

function discardOperation(): Operation {
  return defineAction({
    id: 'discardEntries',
    path: '/outbox/discard',
    tag: 'Outbox',
    summary: 'Never publish many returned or parked events',
    description: `${HOW} They leave the outbox, and later events of their jobs go on. The ledger keeps them.`,
    role: 'operator',
    body: DiscardEntriesOrder,
    answers: {
      200: { description: 'How many have gone; or what a dry run found.', schema: DiscardEntriesAnswer },
    },
    run: async ({ body }, context) => {
      const done = await carryOut('discard', body, context);
      if ('matched' in done) return { status: 200, body: done };
      const { count: discarded, ...page } = done;
      return { status: 200, body: { discarded, ...page } };
    },
  });
}

type Order = {
  readonly ids?: readonly string[] | undefined;
  readonly filter?: EntriesFilter | undefined;
  readonly dry_run: boolean;
  readonly limit: number;
  readonly cursor?: string | undefined;
};
type Page = { count: number; items?: EntryItem[]; next_cursor: string | null };

function carryOut(
  decision: ManyDecision,
  { ids, filter, ...order }: Order,
  context: ActionContext,
): Promise<Page | OutboxPreview> {
  if (filter !== undefined) return decideMatching(decision, { ...order, filter }, context);
  return decideOnIds(decision, { ...order, ids: ids ?? [] }, context);
}

async function decideOnIds(
  decision: ManyDecision,
  { ids, dry_run: isDry, limit, cursor }: Order & { ids: readonly string[] },
  { caller: { sources }, trx, record }: ActionContext,
): Promise<Page | OutboxPreview> {
  const pages = pagesOf(decision, { ids });
  const place = pages.placeOf(cursor);
  if (isDry) return previewNamed(trx, decision, { ids, sources });
  const request = { ids, sources, after: place?.after, limit };
  const { decided, items, next } = await decideNamed(trx, decision, request);
  await record(...decided.map((entry) => entryLine(decision, entry, entry.state)));
  return {
    count: decided.length,
    items,
    next_cursor: pages.cursorOf(next === undefined ? undefined : { after: next, upTo: next }),
  };
}

async function decideMatching(
  decision: ManyDecision,
  { filter, dry_run: isDry, limit, cursor }: Order & { filter: EntriesFilter },
  { caller, trx, record }: ActionContext,
): Promise<Page | OutboxPreview> {
  const { source, up_to: upTo, ...others } = filter;
  const wanted = { ...others, sources: scopeOf(caller, source) };
  const pages = pagesOf(decision, filter);
  const place = pages.placeOf(cursor);
  if (isDry) return previewEntries(trx, wanted, upTo);
  const from = place ?? (await wholeOutbox(trx, upTo));
  const { decided, next } = await decideEntries(trx, decision, { ...wanted, place: from, limit });
  // A line for the call and one for each event, so that the events' jobs show the decision in their stories.
  await record(
    {
      action: `outbox.${decision}`,
      source: source ?? null,
      detail: { ...others, up_to: upTo, [PAST[decision]]: decided.length },
    },
    ...decided.map((entry) => entryLine(decision, entry, filter.state)),
  );
  return { count: decided.length, next_cursor: pages.cursorOf(next) };
}

const PAST = { retry: 'retried', discard: 'discarded' } as const satisfies Record<ManyDecision, string>;

const entryLine = (
  decision: ManyDecision,
  { id, event_id, source, last_error }: DecidedEntry,
  state: OutboxState,
): LogEntry => ({
  action: `outbox.${decision}`,
  source,
  subject: event_id,
  detail: { entry: id, state, last_error },
});

/** The cursors of an order. */
function pagesOf(decision: ManyDecision, filters: object) {
  const list = `outbox ${decision}`;
  const binding = { list, filters, types: ['bigint', 'bigint'] } as const;
  return {
    placeOf: (cursor: string | undefined): EntryPlace | undefined => {
      const place = placeOf(cursor, binding, 'this action with this order');
      return place === null ? undefined : { after: place[0], upTo: place[1] };
    },
    cursorOf: (next: EntryPlace | undefined): string | null =>
      next === undefined ? null : encodeCursor([next.after, next.upTo], list, filters),
  };
}
