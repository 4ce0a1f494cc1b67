// A list as the API has it: made from what the contract says of it, and its reader. Its operation, its page and its export are
// made from the same. How a filter becomes SQL stands with the reader, in the noun's queries.ts.

import type { Kysely } from 'kysely';
import { z } from 'zod';
import type { Database, DatabaseConnection } from '../../../ledger/index.ts';
import { LISTS as CONTRACT, type ListContract, type ListName } from '../../lists.contract.ts';
import type { Role } from '../access/roles.ts';
import { ApiError, type Caller, defineRead, type Operation, scopeOf } from '../operation/operation.ts';
import { decodeCursor, encodeCursor, type ValueType } from './cursor.ts';
import { paging } from './filters.contract.ts';
import type { List, Page, PageOptions } from './list.queries.ts';

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
export function apiList<Name extends ListName, Filters, Item extends object>(
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
export const scoped = <Asked extends { source?: string | undefined }>(
  { source, ...others }: Asked,
  caller: Caller,
) => ({ ...others, sources: scopeOf(caller, source) });

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

/** What a page has beside its items. @throws ApiError */
type Beside = (asked: { readonly source?: string }, caller: Caller) => Promise<object>;

/** The operation that shows a list at its own address. */
export function listOperation(
  list: ApiList & Pick<(typeof CONTRACT)[ListName], 'page'>,
  connection: Pick<DatabaseConnection, 'db'>,
  beside: Beside = async () => ({}),
): Operation {
  const { name, filters, tag, summary, description, role, needsAllSources, answer } = list;
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
    run: async ({ query }, { caller }) => {
      const page = await readListPage(list, query, { caller, connection });
      return { status: 200, body: { ...page, ...(await beside(query as Parameters<Beside>[0], caller)) } };
    },
  });
}
