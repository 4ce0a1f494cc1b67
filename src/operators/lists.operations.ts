// The lists of the API by their names: what the contract says of each, and its reader. Pages and exports are made from the
// same. How a filter becomes SQL stands with the reader: operators/deliveries/queries.ts for `deliveries`, and so on.

import type { Kysely } from 'kysely';
import { z } from 'zod';
import type { Role } from './kernel/access/roles.ts';
import { deliveries, quarantine, shownTo } from './deliveries/queries.ts';
import { decodeCursor, encodeCursor, type ValueType } from './kernel/list/cursor.ts';
import { events } from './events/queries.ts';
import { jobs } from './jobs/queries.ts';
import type { List, Page, PageOptions } from './kernel/list/list.queries.ts';
import { operatorLog } from './operator-log/queries.ts';
import { outbox } from './outbox/queries.ts';
import { publications } from './publications/queries.ts';
import type { Database, DatabaseConnection } from '../ledger/index.ts';
import { paging } from './kernel/list/filters.contract.ts';
import { type ListContract, type ListName, LISTS as CONTRACT } from './lists.contract.ts';
import { replays } from './replays/queries.ts';
import {
  ApiError,
  type Caller,
  defineRead,
  forbidden,
  type Operation,
  scopeOf,
} from './kernel/operation/operation.ts';

/** A list as the API shows and exports it. */
export type ApiList = ListContract & {
  readonly name: ListName;
  readonly types: readonly ValueType[];
  /**
   * Gives a function that reads pages of what this caller may see.
   * @param asked the parameters, as the schema of `filters` has parsed them
   * @throws ApiError
   */
  readonly readerFor: (asked: object, caller: Caller) => ReadPage;
  /** Who may see it at its own address. */
  readonly role: Role;
  readonly needsAllSources?: true;
  /** What the document says of a page. */
  readonly answer: string;
};
export type ReadPage = (db: Kysely<Database>, options: PageOptions) => Promise<Page<object>>;

type AskedOf<Name extends ListName> = z.output<z.ZodObject<(typeof CONTRACT)[Name]['filters']>>;

/**
 * Checks by types that the parsed parameters fit `toFilters`, and its result the reader.
 * @param toFilters throws ApiError
 */
function apiList<Name extends ListName, Filters, Item extends object>(
  name: Name,
  list: List<Filters, Item>,
  toFilters: (asked: AskedOf<Name>, caller: Caller) => Filters,
  {
    role = 'viewer',
    answer = 'A page of the list.',
    needsAllSources,
    shown,
  }: {
    role?: Role;
    needsAllSources?: true;
    answer?: string;
    /** An item as this caller may see it. */
    shown?: (sources: Caller['sources'], item: Item) => Item;
  } = {},
) {
  return {
    ...CONTRACT[name],
    name,
    types: list.types,
    role,
    ...(needsAllSources && { needsAllSources }),
    answer,
    readerFor: (asked: object, caller: Caller): ReadPage => {
      const filters = toFilters(asked as AskedOf<Name>, caller);
      return async (db, options) => {
        const page = await list.read(db, filters, options);
        return shown ? { ...page, items: page.items.map((item) => shown(caller.sources, item)) } : page;
      };
    },
  };
}

/** Of one source, or of all that the caller may see. @throws ApiError 403 */
const scoped = <Asked extends { source?: string | undefined }>(
  { source, ...others }: Asked,
  caller: Caller,
) => ({ ...others, sources: scopeOf(caller, source) });

export const LISTS = {
  jobs: apiList('jobs', jobs, (asked, caller) => {
    if (asked.stuck_after !== undefined && asked.state !== 'stuck') {
      throw new ApiError(400, 'invalid_request', 'stuck_after: only together with state=stuck');
    }
    return scoped(asked, caller);
  }),
  deliveries: apiList('deliveries', deliveries, scoped, { shown: shownTo }),
  events: apiList('events', events, scoped),
  publications: apiList('publications', publications, scoped),
  quarantine: apiList('quarantine', quarantine, scoped),
  outbox: apiList('outbox', outbox, scoped),
  'operator-log': apiList(
    'operator-log',
    operatorLog,
    (asked, caller) => {
      if (caller.sources !== null) throw forbidden(); // for the export, which is of any list
      return asked;
    },
    { role: 'auditor', needsAllSources: true, answer: 'A page of the log.' },
  ),
  replays: apiList('replays', replays, ({ state }, caller) => ({ state, within: caller.sources }), {
    answer: 'A page of replays.',
  }),
} as const satisfies Readonly<Record<ListName, ApiList>>;

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
  list: (typeof LISTS)[ListName],
  connection: Pick<DatabaseConnection, 'db'>,
): Operation {
  const { name, filters, tag, summary, description, role, needsAllSources, answer }: ApiList = list;
  return defineRead({
    id: `list${name.replaceAll(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase())}`,
    path: `/${name}`,
    tag,
    summary,
    ...(description && { description }),
    role,
    ...(needsAllSources && { needsAllSources }),
    query: z.strictObject({ ...filters, ...paging }),
    answers: { 200: { description: answer, schema: list.page } },
    run: async ({ query }, { caller }) => ({
      status: 200,
      body: await readListPage(list, query, { caller, connection }),
    }),
  });
}
