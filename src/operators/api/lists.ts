// The lists of the API by their names: the filters and the item of each, and its reader. Pages and exports are made from the
// same. How a filter becomes SQL stands with the reader: audit/deliveries.ts for `deliveries`, and so on.

import type { Kysely } from 'kysely';
import { z } from 'zod';
import type { Role } from '../access/roles.ts';
import { deliveries, quarantine } from '../audit/deliveries.ts';
import { decodeCursor, encodeCursor, type ValueType } from '../audit/cursor.ts';
import { events } from '../audit/events.ts';
import { jobs } from '../audit/jobs.ts';
import type { List, Page, PageOptions } from '../audit/lists.ts';
import { outbox } from '../audit/outbox.ts';
import { publications } from '../audit/publications.ts';
import type { Database, DatabaseConnection } from '../../ledger/index.ts';
import {
  deliveryFilters,
  eventFilters,
  jobFilters,
  outboxFilters,
  paging,
  publicationFilters,
  quarantineFilters,
} from '../contract/filters.ts';
import { ApiError, type Caller, defineRead, type Operation, scopeOf } from './operation.ts';
import { Delivery, Entry, Event, Job, page, Publication } from '../contract/items.ts';

/** A list as the API shows and exports it. */
export type ApiList = {
  readonly name: string;
  readonly filters: z.ZodRawShape;
  readonly item: z.ZodObject;
  readonly types: readonly ValueType[];
  /**
   * Gives a function that reads pages of what this caller may see.
   * @param asked the parameters, as the schema of `filters` has parsed them
   * @throws ApiError
   */
  readonly readerFor: (asked: object, caller: Caller) => ReadPage;
};
export type ReadPage = (db: Kysely<Database>, options: PageOptions) => Promise<Page<object>>;

type Described = {
  readonly name: string;
  readonly item: z.ZodObject;
  /** Missing where a page says more than its items. */
  readonly page?: z.ZodObject;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
};

/** Checks by types that the parsed parameters fit `toFilters`, and its result the reader. */
export function apiList<Shape extends z.ZodRawShape, Filters, Shown extends Described>({
  list,
  toFilters,
  ...shown
}: Shown & {
  readonly filters: Shape;
  readonly list: List<Filters, object>;
  /** @throws ApiError */
  readonly toFilters: (asked: z.output<z.ZodObject<Shape>>, caller: Caller) => Filters;
}) {
  return {
    ...shown,
    types: list.types,
    readerFor: (asked: object, caller: Caller): ReadPage => {
      const filters = toFilters(asked as z.output<z.ZodObject<Shape>>, caller);
      return (db, options) => list.read(db, filters, options);
    },
  };
}

/** Of one source, or of all that the caller may see. @throws ApiError 403 */
const scoped = <Asked extends { source?: string | undefined }>(
  { source, ...others }: Asked,
  caller: Caller,
) => ({ ...others, sources: scopeOf(caller, source) });

export const LISTS = {
  jobs: apiList({
    name: 'jobs',
    filters: jobFilters,
    item: Job,
    page: page(Job).meta({ id: 'JobPage', description: 'A page of jobs.' }),
    list: jobs,
    toFilters: (asked, caller) => {
      if (asked.stuck_after !== undefined && asked.state !== 'stuck') {
        throw new ApiError(400, 'invalid_request', 'stuck_after: goes with state=stuck alone');
      }
      return scoped(asked, caller);
    },
    tag: 'Jobs',
    summary: 'Jobs, the newest first',
    description: '`state=stuck`: those without an end, though first seen longer ago than `stuck_after`.',
  }),
  deliveries: apiList({
    name: 'deliveries',
    filters: deliveryFilters,
    item: Delivery,
    page: page(Delivery).meta({ id: 'DeliveryPage', description: 'A page of deliveries.' }),
    list: deliveries,
    toFilters: scoped,
    tag: 'Deliveries',
    summary: 'Deliveries, the newest first',
  }),
  events: apiList({
    name: 'events',
    filters: eventFilters,
    item: Event,
    page: page(Event).meta({ id: 'EventPage', description: 'A page of events.' }),
    list: events,
    toFilters: scoped,
    tag: 'Events',
    summary: 'Events, the newest first',
  }),
  publications: apiList({
    name: 'publications',
    filters: publicationFilters,
    item: Publication,
    page: page(Publication).meta({ id: 'PublicationPage', description: 'A page of attempts to publish.' }),
    list: publications,
    toFilters: scoped,
    tag: 'Publications',
    summary: 'Attempts to publish, the newest first',
  }),
  quarantine: apiList({
    name: 'quarantine',
    filters: quarantineFilters,
    item: Delivery,
    page: page(Delivery).meta({ id: 'QuarantinePage', description: 'A page of quarantined deliveries.' }),
    list: quarantine,
    toFilters: scoped,
    tag: 'Quarantine',
    summary: 'Authentic deliveries that we could not understand, the newest first',
    description: 'Those that wait for an operator; with `released=true` those that were released.',
  }),
  outbox: apiList({
    name: 'outbox',
    filters: outboxFilters,
    item: Entry,
    list: outbox,
    toFilters: scoped,
    tag: 'Outbox',
    summary: 'What is still to be published, the oldest first',
  }),
} as const;

/** `of`: what the cursor should belong to. */
export const invalidCursor = (of = 'this list with these filters') =>
  new ApiError(400, 'invalid_cursor', `cursor: is not one of ${of}`);

/** A value for each of the types. */
type PlaceIn<Types extends readonly ValueType[]> = { readonly [K in keyof Types]: string };

/** Where a page begins; null for the first one. @throws ApiError 400 for a cursor of another list or of other filters */
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
  { name, types, readerFor }: ApiList,
  { limit, cursor, ...asked }: { readonly limit: number; readonly cursor?: string | undefined },
  { caller, connection }: { caller: Caller; connection: Pick<DatabaseConnection, 'db'> },
): Promise<{ items: readonly object[]; next_cursor: string | null }> {
  const read = readerFor(asked, caller);
  const after = placeOf(cursor, { list: name, filters: asked, types });
  const { items, next } = await read(connection.db, { after, limit });
  return { items, next_cursor: next === null ? null : encodeCursor(next, name, asked) };
}

/** The operation that shows a list at its own address. */
export function listOperation(
  list: ApiList & Described & { readonly page: z.ZodObject },
  connection: Pick<DatabaseConnection, 'db'>,
  { role = 'viewer', answer = 'A page of the list.' }: { role?: Role; answer?: string } = {},
): Operation {
  const { name, filters, tag, summary, description } = list;
  return defineRead({
    id: `list${name.replaceAll(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase())}`,
    path: `/${name}`,
    tag,
    summary,
    ...(description && { description }),
    role,
    query: z.strictObject({ ...filters, ...paging }),
    answers: { 200: { description: answer, schema: list.page } },
    run: async ({ query }, { caller }) => ({
      status: 200,
      body: await readListPage(list, query, { caller, connection }),
    }),
  });
}
