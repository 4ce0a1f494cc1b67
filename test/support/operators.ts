// Calls the operators' API as an operator does: with a token, which is made in the test's database.

import { randomUUID } from 'node:crypto';
import { Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import type { TokenRole } from '../../src/operators/kernel/access/roles.ts';
import { makeToken, type Token } from '../../src/operators/kernel/access/tokens.queries.ts';
import type { Database } from '../../src/ledger/schema/tables.ts';
import type { TestDatabase } from './database.ts';

export type Answer<T = Record<string, unknown>> = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
  /** The raw body, for what is not JSON. */
  readonly text: string;
};

export type Operators = {
  readonly token: Token;
  /** The token's value, for a test that sends its own `Authorization` header. */
  readonly value: string;
  /** `path` is relative to /api/v1 and may have a query: `/deliveries?limit=1`. */
  readonly get: <T = Record<string, unknown>>(path: string, init?: RequestInit) => Promise<Answer<T>>;
  /** `key` is the Idempotency-Key. */
  readonly post: <T = Record<string, unknown>>(
    path: string,
    body?: object,
    options?: { key?: string },
  ) => Promise<Answer<T>>;
  /** For streams: the response of `fetch`. */
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>;
};

/** A running service: a TestService, or a Replica with its database. */
type Running = { readonly operators: string; readonly database: Pick<TestDatabase, 'url'> };

export type TokenOptions = {
  readonly role?: TokenRole;
  readonly sources?: readonly string[] | null;
  readonly name?: string;
  readonly environment?: 'live' | 'test';
  readonly expiresAt?: Date | null;
};

/** An outbox entry as the API answers it. */
export const ENTRY = {
  id: '7',
  event_id: 'default:job_1:failed',
  source: 'default',
  job_id: 'job_1',
  state: 'pending',
  attempts: 0,
  due_at: '2026-01-15T10:30:00Z',
  recorded_at: '2026-01-15T10:30:00Z',
  last_error: null,
  replay_id: null,
  queue: null,
};

/** How the API answers an order about one entry of the outbox. */
export const DECIDED = {
  done: 1,
  items: [{ id: '7', event_id: 'default:job_1:failed', result: 'parked', state: 'pending', reason: null }],
  next_cursor: null,
};

/** `await operators(relay, { role: 'viewer' })`; by default an admin. */
export async function operators(relay: Running, options: TokenOptions = {}): Promise<Operators> {
  const { token, value } = await newToken(relay.database, options);
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${relay.operators}/api/v1${path}`, {
      ...init,
      headers: { Authorization: `Bearer ${value}`, ...(init.headers as Record<string, string>) },
    });
  return {
    token,
    value,
    fetch: call,
    get: async <T>(path: string, init?: RequestInit) => read<T>(await call(path, init)),
    post: async <T>(path: string, body?: object, { key }: { key?: string } = {}) =>
      read<T>(
        await call(path, {
          method: 'POST',
          headers: {
            ...(body && { 'Content-Type': 'application/json' }),
            ...(key !== undefined && { 'Idempotency-Key': key }),
          },
          ...(body && { body: JSON.stringify(body) }),
        }),
      ),
  };
}

/** Makes a token in the database, as `tallyhook tokens create` does. */
export async function newToken(
  database: Pick<TestDatabase, 'url'>,
  options: TokenOptions = {},
): Promise<{ token: Token; value: string }> {
  const made = await kyselyOf(database.url)
    .transaction()
    .execute((trx) =>
      makeToken(trx, {
        name: options.name ?? `test ${randomUUID()}`,
        role: options.role ?? 'admin',
        environment: options.environment ?? 'test',
        sources: options.sources ?? null,
        expiresAt: options.expiresAt ?? null,
        createdBy: 'a test',
      }),
    );
  if (made === 'full') throw new Error('there are too many tokens');
  return made;
}

const databases = new Map<string, Kysely<Database>>();

/** Tests of a file make many tokens, and a connection costs 20 ms of processor time. An idle one is closed soon. */
function kyselyOf(url: string): Kysely<Database> {
  const known = databases.get(url);
  if (known !== undefined) return known;
  const pool = new Pool({ connectionString: url, max: 1, idleTimeoutMillis: 1_000, allowExitOnIdle: true });
  pool.on('error', () => {}); // a test may end, and its database, before its connection is closed
  pool.on('connect', (client) => client.on('error', () => {}));
  const made = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  databases.set(url, made);
  return made;
}

export async function read<T>(response: Response): Promise<Answer<T>> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isJson ? JSON.parse(text) : undefined) as T,
  };
}
