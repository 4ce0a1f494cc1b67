// What an operation of the operators' API is: its address, who may call it, the schemas of what goes in and comes
// out, and what it does. From these and nothing else the routes are mounted, requests and answers are checked, and
// the OpenAPI document is written.

import type { Readable } from 'node:stream';
import type { Transaction } from 'kysely';
import type { z } from 'zod';
import type { Role } from '../access/roles.ts';
import type { Database } from '../../ledger/index.ts';

/** Who asks. Its token was checked, and has the role that the operation needs. */
export type Caller = {
  readonly tokenId: string;
  readonly tokenName: string;
  readonly role: Role;
  /** The sources that the token is limited to; null for all. */
  readonly sources: readonly string[] | null;
  readonly remoteAddress: string | null;
};

/** What goes into the operator log, beside who, when and from where. `detail` is shown as it is: no secrets. */
export type LogEntry = {
  readonly action: string;
  readonly source?: string | null;
  readonly subject?: string | null;
  readonly detail?: object | null;
};

export type CallContext = {
  readonly caller: Caller;
  /** Writes to the operator log and commits, before anything is shown. */
  readonly record: (entry: LogEntry) => Promise<void>;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
};

export type ActionContext = Omit<CallContext, 'record'> & {
  /** Writes to the operator log, as a part of the transaction; several entries at once. */
  readonly record: (...entries: readonly LogEntry[]) => Promise<void>;
  /** The action's one transaction, with its operator log entries and its idempotency key. Committed before the answer. */
  readonly trx: Transaction<Database>;
};

export type Reply =
  | { readonly status: number; readonly body: unknown }
  | {
      readonly status: 200;
      readonly contentType: string;
      readonly headers?: Readonly<Record<string, string>>;
      /** Read no faster than the caller reads; destroyed when the caller goes. An error cuts the connection. */
      readonly stream: Readable;
    };

/** One possible answer. Without a schema it is no JSON: `contentType` says what, or which ones. */
export type AnswerSpec =
  | { readonly description: string; readonly schema: z.ZodType }
  | { readonly description: string; readonly contentType: string | readonly string[] };

type Described = {
  /** OpenAPI's operationId. */
  readonly id: string;
  /** In OpenAPI's form, below /api/v1: `/jobs/{source}/{job_id}`. */
  readonly path: `/${string}`;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly role: Role;
  /** Answers of success. The errors that every operation has are added by the document. */
  readonly answers: Readonly<Record<number, AnswerSpec>>;
  /** Strict objects: an unknown parameter is a 400. All values of params and query arrive as text. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Its query or body names what may not be there: a 404. What has a path's parameters may answer that anyway. */
  readonly namesOthers?: true;
};

export type Read = Described & {
  readonly method: 'get';
  readonly run: (input: { params: unknown; query: unknown }, context: CallContext) => Promise<Reply>;
};

export type Action = Described & {
  readonly method: 'post';
  readonly body?: z.ZodObject;
  /** Fields of the answer that go out once and are kept nowhere: a repeated request gets the answer without them. */
  readonly shownOnce?: readonly string[];
  readonly run: (
    input: { params: unknown; query: unknown; body: unknown },
    context: ActionContext,
  ) => Promise<Reply>;
};

export type Operation = Read | Action;

type Of<S> = S extends z.ZodType ? z.output<S> : undefined;

/** Gives `run` the types of the schemas. */
export function defineRead<
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
>(
  read: Omit<Read, 'method' | 'run' | 'params' | 'query'> & {
    readonly params?: P;
    readonly query?: Q;
    readonly run: (input: { params: Of<P>; query: Of<Q> }, context: CallContext) => Promise<Reply>;
  },
): Read {
  return { ...read, method: 'get' } as unknown as Read;
}

/** Gives `run` the types of the schemas. Every action takes an `Idempotency-Key`. */
export function defineAction<
  P extends z.ZodObject | undefined = undefined,
  B extends z.ZodObject | undefined = undefined,
>(
  action: Omit<Action, 'method' | 'run' | 'params' | 'query' | 'body'> & {
    readonly params?: P;
    readonly body?: B;
    readonly run: (input: { params: Of<P>; body: Of<B> }, context: ActionContext) => Promise<Reply>;
  },
): Action {
  return { ...action, method: 'post' } as unknown as Action;
}

/** An answer other than success, in the words that the caller reads. The gate turns it into spec 7's shape. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const notFound = (what: string) => new ApiError(404, 'not_found', `there is no such ${what}`);
export const forbidden = () => new ApiError(403, 'forbidden', 'insufficient permissions for this resource');

/** The sources to ask for: the one that was named, or all that the token may see (null: all). @throws ApiError 403 */
export function scopeOf(caller: Caller, source?: string): readonly string[] | null {
  if (source === undefined) return caller.sources;
  if (caller.sources !== null && !caller.sources.includes(source)) throw forbidden();
  return [source];
}
