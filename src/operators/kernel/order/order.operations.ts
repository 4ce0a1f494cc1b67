// How the API takes an order about one or many things: by ids or by a filter, with a dry run, page by page. What the orders of
// a noun find and do is in its own orders.operations.ts or operations.ts.

import type { Transaction } from 'kysely';
import type { Database } from '../../../ledger/index.ts';
import { ORDERS, type OrderName } from '../../orders.contract.ts';
import type { LogEntry } from '../access/operator-log.queries.ts';
import { encodeCursor, type Position, type ValueType } from '../list/cursor.ts';
import { placeOf } from '../list/list.operations.ts';
import { type Action, defineAction, scopeOf } from '../operation/operation.ts';
import type { Order, Selection } from './order.ts';

/** What an order's schema has made of a request. */
type Given<Filter> = {
  readonly ids?: readonly string[] | undefined;
  readonly filter?: Filter | undefined;
  readonly dry_run: boolean;
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly note?: string | undefined;
};

export type Done = {
  readonly done: number;
  readonly items: readonly object[] | undefined;
  /** In one statement, since jobs are locked by then. */
  readonly lines: readonly LogEntry[];
  readonly next: Position | undefined;
};

export type OrderSpec<Filter> = Pick<Action, 'summary' | 'description'> & {
  /** What a place is made of. */
  readonly types: readonly ValueType[];
  /** Changes nothing, and locks nothing. */
  readonly preview: (trx: Transaction<Database>, selection: Selection<Filter>) => Promise<object>;
  readonly carryOut: (
    trx: Transaction<Database>,
    order: Order<Filter> & { readonly note: string },
  ) => Promise<Done>;
};

export function orderOperation<Filter extends { readonly source?: string | undefined }>(
  name: OrderName,
  { types, preview, carryOut, summary, description = '' }: OrderSpec<Filter>,
): Action {
  const { id, order: body, answer } = ORDERS[name];
  const [noun = '', decision] = name.split('/');
  const list = `${noun} ${decision}`;
  return defineAction({
    id,
    path: `/${name}`,
    tag: noun === 'outbox' ? 'Outbox' : 'Quarantine',
    summary,
    description: `${description} By \`ids\`, each of which is answered, or by a \`filter\`, the oldest first; at most \`limit\` a call. \
Continue with \`next_cursor\` until it is null. With \`dry_run\` nothing is changed, and nothing recorded; the order that follows \
needs another \`Idempotency-Key\`.`,
    role: 'operator',
    body,
    answers: { 200: { description: 'What was done; or what a dry run found.', schema: answer } },
    run: async ({ body: given }, { caller, trx, record }) => {
      const {
        ids = [],
        filter,
        limit,
        cursor,
        note = '',
        dry_run: isDry,
      } = given as unknown as Given<Filter>;
      const selection = {
        which: filter === undefined ? { ids } : { filter },
        sources: scopeOf(caller, filter?.source),
      };
      const filters = filter ?? { ids };
      const after = placeOf(cursor, { list, filters, types }, 'this action with this order') ?? undefined;
      if (isDry) return { status: 200, body: await preview(trx, selection) };
      const order = { ...selection, after, limit, by: caller.name, note };
      const { done, items, lines, next } = await carryOut(trx, order);
      await record(...lines);
      const nextCursor = next === undefined ? null : encodeCursor(next, list, filters);
      return { status: 200, body: { done, ...(items && { items }), next_cursor: nextCursor } };
    },
  });
}
