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
import { Delivery, deliveryFilters } from '../contract/deliveries.ts';
import { Event, eventFilters } from '../contract/events.ts';
import { page } from '../contract/fields.ts';
import { paging } from '../contract/filters.ts';
import { Job, jobFilters } from '../contract/jobs.ts';
import { Entry, outboxFilters } from '../contract/outbox.ts';
import { Publication, publicationFilters } from '../contract/publications.ts';
import { quarantineFilters } from '../contract/quarantine.ts';
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
  /** Missing where a page says more than its items. */
  readonly page?: z.ZodObject;
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
    name: 'jobs',
    filters: jobFilters,
    item: Job,
    page: page(Job).meta({ id: 'JobPage', description: 'A page of jobs.' }),
    list: jobs,
    toFilters: (asked, caller) => {
      if (asked['stuck_after'] !== undefined && asked['state'] !== 'stuck') {
        throw new ApiError(400, 'invalid_request', 'stuck_after: goes with state=stuck alone');
      }
      return scoped(asked, caller);
    },
    tag: 'Jobs',
    summary: 'Jobs, the newest first',
    description: '`state=stuck`: those without an end, though first seen longer ago than `stuck_after`.',
  },
  deliveries: {
    name: 'deliveries',
    filters: deliveryFilters,
    item: Delivery,
    page: page(Delivery).meta({ id: 'DeliveryPage', description: 'A page of deliveries.' }),
    list: deliveries,
    toFilters: scoped,
    tag: 'Deliveries',
    summary: 'Deliveries, the newest first',
  },
  events: {
    name: 'events',
    filters: eventFilters,
    item: Event,
    page: page(Event).meta({ id: 'EventPage', description: 'A page of events.' }),
    list: events,
    toFilters: scoped,
    tag: 'Events',
    summary: 'Events, the newest first',
  },
  publications: {
    name: 'publications',
    filters: publicationFilters,
    item: Publication,
    page: page(Publication).meta({ id: 'PublicationPage', description: 'A page of attempts to publish.' }),
    list: publications,
    toFilters: scoped,
    tag: 'Publications',
    summary: 'Attempts to publish, the newest first',
  },
  quarantine: {
    name: 'quarantine',
    filters: quarantineFilters,
    item: Delivery,
    page: page(Delivery).meta({ id: 'QuarantinePage', description: 'A page of quarantined deliveries.' }),
    list: quarantine,
    toFilters: scoped,
    tag: 'Quarantine',
    summary: 'Authentic deliveries that we could not understand, the newest first',
    description: 'Those that wait for an operator; with `released=true` those that were released.',
  },
  outbox: {
    name: 'outbox',
    filters: outboxFilters,
    item: Entry,
    list: outbox,
    toFilters: scoped,
    tag: 'Outbox',
    summary: 'What is still to be published, the oldest first',
  },
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
  list: ApiList & Described & { readonly page: z.ZodObject },
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
