// What an operation of the operators' API is: its path, the role it requires, the schemas of its input and its answers, and
// the function that runs it. Routes, checks and the OpenAPI document are all made from these values.

import type { Readable } from 'node:stream';
import type { Transaction } from 'kysely';
import type { z } from 'zod';
import type { Database } from '../../../ledger/index.ts';
import type { Actor, LogEntry } from '../access/operator-log.queries.ts';
import type { Role } from '../access/roles.ts';
import type { ErrorCode, ErrorStatus, Fault } from './error.contract.ts';

/** Who calls. The token was checked, and has the role that the operation requires. */
export type Caller = Actor & {
  readonly tokenId: string;
  /** Of the console; undefined for a caller of the API. */
  readonly sessionId?: string | undefined;
  readonly role: Role;
  /** The sources that the token is limited to; null for all. */
  readonly sources: readonly string[] | null;
};

export type CallContext = {
  readonly caller: Caller;
  /** Writes to the operator log, and commits. A read awaits it before it answers. */
  readonly record: (entry: LogEntry) => Promise<void>;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
};

export type ActionContext = Omit<CallContext, 'record'> & {
  /** Writes to the operator log in the action's transaction. */
  readonly record: (...entries: readonly LogEntry[]) => Promise<void>;
  /** The action's one transaction, which also has its log entries and its idempotency key. Committed before the answer. */
  readonly trx: Transaction<Database>;
};

export type Reply =
  | { readonly status: number; readonly body: unknown }
  | {
      readonly status: 200;
      readonly contentType: string;
      readonly headers?: Readonly<Record<string, string>>;
      /** Read no faster than the caller reads; destroyed when the caller disconnects. An error closes the connection. */
      readonly stream: Readable;
    };

/** One possible answer: JSON by a schema, or another content type (or one of several). */
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
  /** Not for a token that is limited to some sources: it could see, or make, one without limit. */
  readonly needsAllSources?: true;
  /**
   * It answers while Postgres is away, also to a token that is remembered: valid within the last hour, and perhaps revoked since. So it
   * tells nothing of what senders sent. `run` then does without Postgres.
   */
  readonly worksWithoutDatabase?: true;
  /** The successful answers. document/openapi.ts adds the errors that every operation has. */
  readonly answers: Readonly<Record<number, AnswerSpec>>;
  /** Strict objects: an unknown parameter is a 400. All values of params and query arrive as text. */
  readonly params?: z.ZodObject | undefined;
  readonly query?: z.ZodObject | undefined;
  /** Its body names rows that may not exist, so it can answer 404. Operations with `params` can in any case. */
  readonly namesOthers?: true;
};

// `run` is declared as a method: TypeScript compares the parameters of methods both ways, so that operations with different
// inputs fit in one list. It is called with what the operation's own schemas returned (input.ts), so the types are right.

export type Read = Described & {
  readonly method: 'get';
  run(input: { params: unknown; query: unknown }, context: CallContext): Promise<Reply>;
};

export type Action = Described & {
  readonly method: 'post';
  readonly body?: z.ZodObject | undefined;
  /** Fields of the answer that are sent once and not stored: a repeated request gets the answer without them. */
  readonly shownOnce?: readonly string[];
  run(input: { params: unknown; body: unknown }, context: ActionContext): Promise<Reply>;
};

export type Operation = Read | Action;

type Schema = z.ZodObject | undefined;
type Output<S extends Schema> = S extends z.ZodObject ? z.output<S> : undefined;

/** Gives `run` the types of the schemas. */
export function defineRead<P extends Schema = undefined, Q extends Schema = undefined>(
  read: Omit<Read, 'method' | 'run' | 'params' | 'query'> & {
    readonly params?: P;
    readonly query?: Q;
    run(input: { params: Output<P>; query: Output<Q> }, context: CallContext): Promise<Reply>;
  },
): Read {
  return { ...read, method: 'get' };
}

/** Gives `run` the types of the schemas. Every action takes an `Idempotency-Key`. */
export function defineAction<P extends Schema = undefined, B extends Schema = undefined>(
  action: Omit<Action, 'method' | 'run' | 'params' | 'query' | 'body'> & {
    readonly params?: P;
    readonly body?: B;
    run(input: { params: Output<P>; body: Output<B> }, context: ActionContext): Promise<Reply>;
  },
): Action {
  return { ...action, method: 'post' };
}

/** An error that the caller is answered with. `sendError` of answers.ts gives it the form of service interface 7. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: ErrorStatus;
  readonly code: ErrorCode;

  constructor(...[status, code, message]: Fault) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const unavailable = () =>
  new ApiError(503, 'unavailable', 'the database cannot be reached, or has too much to do: try again');
export const notFound = (what: string) => new ApiError(404, 'not_found', `there is no such ${what}`);
export const forbidden = (because = 'insufficient permissions for this resource') =>
  new ApiError(403, 'forbidden', because);

/** The sources to read: the named one, or all that the token may see (null: all). @throws ApiError 403 */
export function scopeOf(caller: Caller, source?: string): readonly string[] | null {
  if (source === undefined) return caller.sources;
  if (caller.sources !== null && !caller.sources.includes(source)) throw forbidden();
  return [source];
}
