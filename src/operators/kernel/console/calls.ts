// How pages call the API's operations: in this process, by `perform`, so with the checks, roles, log lines and idempotency
// keys that a caller over HTTP has. Answers have the contract's types, since they were made by its schemas.

import type { z } from 'zod';
import { parseJson } from '../../../base/json/json.ts';
import { LISTS, type ListName } from '../../lists.contract.ts';
import type { Asked } from '../operation/input.ts';
import { ApiError, type Operation } from '../operation/operation.ts';
import { type Asker, isAllowed, type Perform, type Performed } from '../operation/perform.ts';

export type PageOf<N extends ListName> = z.output<(typeof LISTS)[N]['page']>;
export type ItemOf<N extends ListName> = PageOf<N>['items'][number];

export type Query = Readonly<Record<string, string | number | undefined>>;

export type Calls = {
  /** A page of a list, with the filters and the cursor of the API. @throws ApiError */
  readonly list: <N extends ListName>(name: N, query: Query) => Promise<PageOf<N>>;
  /** @param schema the one that the operation answers with. @throws ApiError */
  readonly call: <S extends z.ZodType>(id: string, schema: S, asked?: CallInput) => Promise<z.output<S>>;
  /** Undefined where the operation answers 404. @throws ApiError */
  readonly find: <S extends z.ZodType>(
    id: string,
    schema: S,
    asked?: CallInput,
  ) => Promise<z.output<S> | undefined>;
  /** An operation that answers with bytes or a stream of text. @throws ApiError */
  readonly stream: (id: string, asked?: CallInput) => Promise<Extract<Performed, { stream: unknown }>>;
  /** Whether the caller may. What a page offers is what this allows. */
  readonly may: (id: string) => boolean;
};

export type CallInput = Omit<Asked, 'query'> & { readonly query?: Query };

/** The operations by their ids. @throws Error for an id that there is not: pages name operations that exist */
export type FindOperation = (id: string) => Operation;

export function findIn(operations: readonly Operation[]): FindOperation {
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  return (id) => {
    const found = byId.get(id);
    if (found === undefined) throw new Error(`there is no operation ${id}`);
    return found;
  };
}

export function createCalls({
  operation,
  perform,
  caller,
  signal,
}: {
  operation: FindOperation;
  perform: Perform;
  caller: Asker;
  signal: AbortSignal;
}): Calls {
  const ask = (id: string, { query = {}, ...asked }: CallInput = {}) =>
    perform(operation(id), async () => ({ ...asked, query: Object.fromEntries(givenIn(query)) }), {
      caller,
      signal,
    });

  async function call<S extends z.ZodType>(id: string, schema: S, asked?: CallInput): Promise<z.output<S>> {
    const performed = await ask(id, asked);
    if ('stream' in performed) throw new Error(`${id} answers with a stream`);
    const spec = operation(id).answers[performed.status];
    if (spec === undefined || !('schema' in spec) || spec.schema !== schema) {
      throw new Error(`${id} answers with another schema than the page reads`);
    }
    return parseJson(performed.json) as z.output<S>;
  }

  return {
    call,
    list: <N extends ListName>(name: N, query: Query) =>
      call(listId(name), LISTS[name].page as unknown as z.ZodType<PageOf<N>>, { query }),
    find: async (id, schema, asked) => {
      try {
        return await call(id, schema, asked);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }
    },
    stream: async (id, asked) => {
      const performed = await ask(id, asked);
      if (!('stream' in performed)) throw new Error(`${id} answers with JSON`);
      return performed;
    },
    may: (id) => isAllowed(operation(id), caller),
  };
}

/** As the API names the operation that shows a list. */
export function listId(name: ListName): string {
  return `list${name.replaceAll(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase())}`;
}

/** The parameters that have a value, as text. */
export function givenIn(query: Query): [name: string, value: string][] {
  return Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
}
