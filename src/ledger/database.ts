// Connections to Postgres with every time-out set, so that nothing waits for ever and a lost connection is
// an error of one query and never of the process. Pools are small and apart: what the relay or an operator
// does cannot take the connections that answers depend on.

import { Kysely, PostgresDialect, type PostgresPool } from 'kysely';
import { Pool, type QueryResultRow } from 'pg';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import type { Database } from './tables.ts';

export type DatabaseConnection = {
  readonly db: Kysely<Database>;
  /**
   * Runs one prepared statement on a connection of its own. After any error the connection is destroyed and
   * not reused: after a driver time-out it may still be busy with the statement that "failed".
   */
  readonly execute: <Row extends QueryResultRow>(statement: Statement, values: unknown[]) => Promise<Row[]>;
  readonly close: () => Promise<void>;
};

/** `name` makes it a prepared statement: planned once a connection. */
export type Statement = { readonly name: string; readonly text: string };

export type DatabaseOptions = {
  readonly url: string;
  /** Shown in pg_stat_activity. */
  readonly name: string;
  readonly connections: number;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** The driver's own; longer than the statement's, so that Postgres gives up first and undoes its work. */
  readonly queryTimeoutMs: number;
  /** For a new connection, or until one is free. 2 s, if not given. */
  readonly connectTimeoutMs?: number;
  /** 'planned' lets Postgres choose how it reads. The default holds it to the index a statement was written for. */
  readonly reading?: 'by index' | 'planned';
  readonly log: Logger;
};

/** Longer than any of ours could be idle within a transaction: only a frozen process gets there. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 2_000;

/**
 * A 2xx means durable, whatever the server's default is. UTC, since partitions are days of UTC. No JIT: it takes
 * longer to compile our short statements (8 ms measured) than to run them (2 ms).
 *
 * Each statement is written for one index. The planner must not prefer a scan and a sort because the statistics
 * of the outbox are from when it was empty: with 12,000 entries a load took 125 ms so, and 5 ms by its index.
 */
const SESSION_OPTIONS = '-c synchronous_commit=on -c timezone=UTC -c jit=off';
const READING_OPTIONS = {
  'by index': '-c enable_seqscan=off -c enable_bitmapscan=off',
  // What an operator asks must not take more than one of the server's processors from the intake.
  // Its ledger is on a solid-state disk or in memory: at the default of 4, reading a whole table and sorting it looked
  // cheaper than 10,000 rows by the index of a list.
  planned: '-c max_parallel_workers_per_gather=0 -c random_page_cost=1.1',
} as const;

/** Opens nothing yet: the first query connects, and each later one does again if the server was away. */
export function connectDatabase(options: DatabaseOptions): DatabaseConnection {
  const { log } = options;
  const pool = new Pool({
    connectionString: withSessionOptions(options.url, options.reading ?? 'by index'),
    application_name: `tallyhook ${options.name}`,
    max: options.connections,
    connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    statement_timeout: options.statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs,
    query_timeout: options.queryTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
  });
  // Without a listener on the pool AND on each client, a server that goes away ends our process. The error
  // object holds the whole client, its secret key too, so only a description of it is logged.
  const onError = (error: Error) => {
    log.warn({ err: describeError(error), pool: options.name }, 'database connection lost');
  };
  pool.on('error', () => {}); // an idle client reports to its own listener too
  pool.on('connect', (client) => client.on('error', onError));

  return {
    db: new Kysely<Database>({ dialect: new PostgresDialect({ pool: withoutBusyClients(pool) }) }),
    execute: async (statement, values) => {
      const client = await pool.connect();
      let failure: Error | undefined;
      try {
        return (await client.query({ ...statement, values })).rows;
      } catch (error) {
        failure = error instanceof Error ? error : new Error('query failed', { cause: error });
        throw error;
      } finally {
        client.release(failure);
      }
    },
    close: async () => {
      if (!pool.ended) await pool.end();
    },
  };
}

/**
 * Kysely gives a client back whatever became of its query. One that the driver gave up on is still busy with it, and the
 * next query on it would wait, too: it is destroyed instead.
 */
function withoutBusyClients(pool: Pool): PostgresPool {
  return {
    options: pool.options,
    connect: async () => {
      const client = await pool.connect();
      const release = client.release.bind(client);
      client.release = (reason) => release(reason || isBusy(client));
      return client;
    },
    end: () => pool.end(),
  };
}

function isBusy(client: object): boolean {
  return 'readyForQuery' in client && client.readyForQuery === false;
}

/** What the URL says of itself would replace ours; behind its own, ours win and the rest of its own stays. */
function withSessionOptions(url: string, reading: keyof typeof READING_OPTIONS): string {
  const parsed = new URL(url);
  const own = parsed.searchParams.get('options');
  const ours = `${SESSION_OPTIONS} ${READING_OPTIONS[reading]}`;
  parsed.searchParams.set('options', own ? `${own} ${ours}` : ours);
  return parsed.href;
}

/** A SQLSTATE of Postgres, or the system's name of what went wrong with the connection; '' if it has none. */
export const codeOf = (error: unknown): string => {
  const value = (error as { code?: unknown } | null)?.code;
  return typeof value === 'string' ? value : '';
};

/** Deadlock or serialization failure: nothing was written, and the same statement may pass the next time. */
export function isRetryable(error: unknown): boolean {
  return codeOf(error) === '40P01' || codeOf(error) === '40001';
}

/** The server ended the statement, which took longer than statement_timeout. */
export function isTimeout(error: unknown): boolean {
  return codeOf(error) === '57014';
}

/** There is no partition for this day. It looks like a violated check, and names no constraint. */
export function isMissingPartition(error: unknown): boolean {
  return codeOf(error) === '23514' && (error as { constraint?: unknown }).constraint === undefined;
}

/** The statement itself was refused for what it carries (data, constraint, too large), not for the times. */
export function isRefusedContent(error: unknown): boolean {
  return /^(22|23|54)[0-9A-Z]{3}$/.test(codeOf(error)) && !isMissingPartition(error);
}
