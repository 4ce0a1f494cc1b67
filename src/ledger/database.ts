// Connections to Postgres with every time-out set: nothing waits without a limit, and a lost connection fails one query, never
// the process. Each part of the service has a small pool of its own, so that neither the relay nor an operator can take the
// connections that the answers to deliveries depend on.

import {
  Kysely,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type Transaction,
} from 'kysely';
import { type ClientBase, Pool, type QueryResultRow } from 'pg';
import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import type { Identity } from './identity.ts';
import type { Database } from './tables.ts';

export type DatabaseConnection = {
  readonly db: Kysely<Database>;
  /**
   * Runs one prepared statement outside a transaction. After any error its connection is destroyed: after a time-out of the
   * driver it may still be busy with the statement that "failed".
   */
  readonly execute: <Row extends QueryResultRow>(statement: Statement, values: unknown[]) => Promise<Row[]>;
  /** How many connections it has opened. When Postgres crashes, all end. */
  readonly opened: () => number;
  readonly close: () => Promise<void>;
};

/** Sessions that are not kept after their first use (identity.ts). */
type Unverified = WeakSet<object>;

/** A statement with a name is prepared once on each connection. */
export type Statement = { readonly name: string; readonly text: string };

export type DatabaseOptions = {
  readonly url: string;
  /** Shown in pg_stat_activity. */
  readonly name: string;
  readonly connections: number;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** The driver's. Longer than the statement's, so that Postgres gives up first and rolls back. */
  readonly queryTimeoutMs: number;
  /** For a new connection, or until one is free. 2 s, if not given. */
  readonly connectTimeoutMs?: number;
  /** 'planned' lets Postgres choose how it reads. The default makes it use the index that a statement was written for. */
  readonly reading?: 'by index' | 'planned';
  /** See WRITING_OPTIONS. */
  readonly writing?: keyof typeof WRITING_OPTIONS;
  /** 'kept': an idle connection stays open, so that a new one means that the old one was lost. Otherwise for a minute. */
  readonly idle?: 'closed' | 'kept';
  /** For sessions that may draw numbers of events: each is verified before its first use. */
  readonly identity?: Pick<Identity, 'verify'>;
  readonly log: Logger;
};

/** None of our transactions is idle for this long unless its process is frozen. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 2_000;
const IDLE_TIMEOUT_MS = 60_000;

/**
 * UTC, since partitions are days of UTC. No JIT: compiling our short statements takes longer (8 ms measured) than running them
 * (2 ms).
 */
const SESSION_OPTIONS = '-c timezone=UTC -c jit=off';
const WRITING_OPTIONS = {
  // Since a 2xx means durable, whatever the server's default is.
  durable: '-c synchronous_commit=on',
  // For what is done again if it is not there: a commit does not wait for the disk, nor delay the next one there. A crash of
  // Postgres undoes the last moments (three times wal_writer_delay: 0.6 s), unless a durable commit came after them.
  // One plan for all values: Postgres would plan anew for each length of the lists, which takes longer than to run the statement.
  repeatable: '-c synchronous_commit=off -c plan_cache_mode=force_generic_plan',
} as const;
/**
 * Each statement is written for one index. With statistics from a time when the outbox was empty, the planner would prefer a
 * scan and a sort: with 12,000 entries a load took 125 ms that way, and 5 ms by its index.
 */
const READING_OPTIONS = {
  'by index': '-c enable_seqscan=off -c enable_bitmapscan=off',
  // No parallel workers: an operator's query must not take more than one of the server's processors from the intake.
  // The ledger is on a solid-state disk or in memory. With the default random_page_cost of 4, the planner preferred a scan and
  // a sort of a whole table to 10,000 rows by a list's index.
  // No enable_... here: since Postgres 18 a plan without what is disabled wins whatever it costs. A look-up of a few rows that are
  // then sorted would read a whole table in the order of some index instead.
  planned: '-c max_parallel_workers_per_gather=0 -c random_page_cost=1.1',
} as const;

/** Does not connect yet: a query connects when there is no open connection. */
export function connectDatabase(options: DatabaseOptions): DatabaseConnection {
  const { log } = options;
  const unverified: Unverified = new WeakSet();
  const pool = new Pool({
    connectionString: withSessionOptions(options),
    application_name: `tallyhook ${options.name}`,
    max: options.connections,
    connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: options.idle === 'kept' ? 0 : IDLE_TIMEOUT_MS,
    keepAlive: true,
    statement_timeout: options.statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    ...(options.identity && { onConnect: verifying(options.identity, unverified) }),
  });
  // Without a listener on the pool AND on each client, a server that goes away ends our process. The error object refers to
  // the whole client with its secret key, so only a description of it is logged.
  const onError = (error: Error) => {
    log.warn({ err: describeError(error), pool: options.name }, 'database connection lost');
  };
  pool.on('error', () => {}); // an idle client reports to its own listener too
  let opened = 0;
  pool.on('connect', (client) => {
    opened += 1;
    client.on('error', onError);
  });

  return {
    db: new Kysely<Database>({
      dialect: new PostgresDialect({ pool: limited(pool, unverified, options.queryTimeoutMs) }),
    }),
    execute: (statement, values) =>
      execute(pool, unverified, { ...statement, values }, options.queryTimeoutMs),
    opened: () => opened,
    close: async () => {
      if (!pool.ended) await pool.end();
    },
  };
}

/**
 * With pg's callbacks and a time-out of our own. With pg's promises or its time-out, the garbage collector would keep the values of
 * every statement, and all that waits for its rows, for seconds: pg then assigns a new function to a property of the query. V8 takes that for a
 * method, and puts it among old objects (docs/decisions/2026-11-23-short-lives.md).
 */
function execute<Row extends QueryResultRow>(
  pool: Pool,
  unverified: Unverified,
  query: Statement & { values: unknown[] },
  timeoutMs: number,
): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    pool.connect((unavailable, client, release) => {
      if (client === undefined) return reject(unavailable);
      let isOver = false;
      const end = (failure: Error | undefined, rows: Row[] = []) => {
        if (isOver) return; // the driver's time was over before
        isOver = true;
        clearTimeout(timer);
        release(failure ?? unverified.has(client));
        if (failure) reject(failure);
        else resolve(rows);
      };
      const timer = setTimeout(() => end(new Error('Query read timeout')), timeoutMs);
      client.query<Row>(query, (error: Error | null | undefined, result) =>
        error ? end(error) : end(undefined, result.rows),
      );
    });
  });
}

/** Awaited by the pool, before the session's first use. */
const verifying =
  (identity: Pick<Identity, 'verify'>, unverified: Unverified) => async (client: ClientBase) => {
    if (!(await identity.verify(client))) unverified.add(client);
  };

/** What several statements read is of one moment. */
export function readSnapshot<Result>(
  db: Kysely<Database>,
  read: (trx: Transaction<Database>) => Promise<Result>,
): Promise<Result> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(read);
}

/**
 * For Kysely, which returns a client to the pool after any result of its query. After a time-out of the driver the client is still
 * busy, and the next query on it would wait: so it is destroyed instead.
 */
function limited(pool: Pool, unverified: Unverified, timeoutMs: number): PostgresPool {
  return {
    options: pool.options,
    connect: async () => {
      const client = await pool.connect();
      const query = (text: string, values: readonly unknown[]) => {
        const timed = { text, values: [...values], query_timeout: timeoutMs };
        return client.query(timed);
      };
      return {
        query: query as unknown as PostgresPoolClient['query'], // never of a cursor: Kysely has none
        release: (isDiscarded) => client.release(isDiscarded || isBusy(client) || unverified.has(client)),
      };
    },
    end: () => pool.end(),
  };
}

function isBusy(client: object): boolean {
  return 'readyForQuery' in client && client.readyForQuery === false;
}

/** Appends our options to those of the URL: later ones win, and the URL's others stay in force. */
function withSessionOptions({ url, reading = 'by index', writing = 'durable' }: DatabaseOptions): string {
  const parsed = new URL(url);
  const own = parsed.searchParams.get('options');
  const ours = `${SESSION_OPTIONS} ${WRITING_OPTIONS[writing]} ${READING_OPTIONS[reading]}`;
  parsed.searchParams.set('options', own ? `${own} ${ours}` : ours);
  return parsed.href;
}

/** A SQLSTATE of Postgres, or the system's error code of a failed connection (`ECONNREFUSED`); '' if there is none. */
export const codeOf = (error: unknown): string => {
  const value = (error as { code?: unknown } | null)?.code;
  return typeof value === 'string' ? value : '';
};

/** A deadlock or a serialization failure: nothing was written, and the same statement may succeed the next time. */
export function isRetryable(error: unknown): boolean {
  return codeOf(error) === '40P01' || codeOf(error) === '40001';
}

/** The server cancelled the statement at its statement_timeout. */
export function isTimeout(error: unknown): boolean {
  return codeOf(error) === '57014';
}

/** The server gave the statement up at its lock_timeout. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03';
}

/** There is no partition for this day: reported as a check violation that names no constraint. */
export function isMissingPartition(error: unknown): boolean {
  return codeOf(error) === '23514' && (error as { constraint?: unknown }).constraint === undefined;
}

/** The database refused the statement for its values (data, constraint, too large): it would refuse a repeat, too. */
export function isRefusedContent(error: unknown): boolean {
  return /^(22|23|54)[0-9A-Z]{3}$/.test(codeOf(error)) && !isMissingPartition(error);
}
