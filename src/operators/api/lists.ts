// The lists of the API by their names: what may be asked of each, what it shows, and who reads it from the ledger. A
// list's page and its export are made of the same.

import { z } from 'zod';
import { deliveries, quarantine } from '../audit/deliveries.ts';
import { decodeCursor, encodeCursor, type ValueType } from '../audit/cursor.ts';
import { events } from '../audit/events.ts';
import { jobs } from '../audit/jobs.ts';
import type { List } from '../audit/lists.ts';
import { outbox } from '../audit/outbox.ts';
import { publications } from '../audit/publications.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { paging } from '../contract/filters.ts';
import { LISTS as CONTRACT } from '../contract/lists.ts';
import { ApiError, type Caller, defineRead, type Operation, scopeOf } from './operation.ts';

/** What a query says, once its schema has read it. */
export type Asked = Readonly<Record<string, unknown>> & { readonly source?: string };

export type ApiList = {
  readonly name: string;
  readonly filters: z.ZodRawShape;
  readonly item: z.ZodObject;
  readonly list: List<never, object>;
  /** What the list is asked for by this caller. @throws ApiError */
  readonly toFilters: (asked: Asked, caller: Caller) => object;
};

type Described = {
  readonly page: z.ZodObject;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
};

const scoped = ({ source, ...others }: Asked, caller: Caller) => ({
  ...others,
  sources: scopeOf(caller, source),
});

export const LISTS = {
  jobs: {
    ...CONTRACT.jobs,
    name: 'jobs',
    list: jobs,
    toFilters: (asked, caller) => {
      if (asked['stuck_after'] !== undefined && asked['state'] !== 'stuck') {
        throw new ApiError(400, 'invalid_request', 'stuck_after: goes with state=stuck alone');
      }
      return scoped(asked, caller);
    },
  },
  deliveries: { ...CONTRACT.deliveries, name: 'deliveries', list: deliveries, toFilters: scoped },
  events: { ...CONTRACT.events, name: 'events', list: events, toFilters: scoped },
  publications: { ...CONTRACT.publications, name: 'publications', list: publications, toFilters: scoped },
  quarantine: { ...CONTRACT.quarantine, name: 'quarantine', list: quarantine, toFilters: scoped },
  outbox: { ...CONTRACT.outbox, name: 'outbox', list: outbox, toFilters: scoped },
} as const satisfies Record<string, ApiList & Described>;

/** `of`: what it is no cursor of. */
export const invalidCursor = (of = 'this list with these filters') =>
  new ApiError(400, 'invalid_cursor', `cursor: is not one of ${of}`);

/** As many values as a position in the list has. */
type PlaceIn<Types extends readonly ValueType[]> = { readonly [K in keyof Types]: string };

/** Where a page begins; null at the first one. @throws ApiError 400 for what is no cursor of this list and these filters */
export function placeOf<const Types extends readonly ValueType[]>(
  cursor: string | undefined,
  binding: { list: string; filters: object; types: Types },
  of?: string,
): PlaceIn<Types> | null {
  if (cursor === undefined) return null;
  const position = decodeCursor(cursor, binding);
  if (position === undefined) throw invalidCursor(of);
  return position as PlaceIn<Types>;
}

/** A page of the list, in the API's shape. @throws ApiError */
export async function readListPage(
  { name, list, toFilters }: ApiList,
  query: object,
  { caller, connection }: { caller: Caller; connection: Pick<DatabaseConnection, 'db'> },
): Promise<{ items: readonly object[]; next_cursor: string | null }> {
  const { limit, cursor, ...asked } = query as Asked & { limit: number; cursor?: string };
  const filters = toFilters(asked, caller);
  const after = placeOf(cursor, { list: name, filters: asked, types: list.types });
  const { items, next } = await list.read(connection.db, filters as never, { after, limit });
  return { items, next_cursor: next === null ? null : encodeCursor(next, name, asked) };
}

/** The operation that shows a list at its own address. */
export function listOperation(
  list: ApiList & Described,
  connection: Pick<DatabaseConnection, 'db'>,
): Operation {
  const { name, filters, tag, summary, description } = list;
  return defineRead({
    id: `list${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    path: `/${name}`,
    tag,
    summary,
    ...(description && { description }),
    role: 'viewer',
    query: z.strictObject({ ...filters, ...paging }),
    answers: { 200: { description: 'A page of the list.', schema: list.page } },
    run: async ({ query }, { caller }) => ({
      status: 200,
      body: await readListPage(list, query, { caller, connection }),
    }),
  });
}
