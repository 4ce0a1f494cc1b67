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
import { Pool, type QueryResult, type QueryResultRow } from 'pg';
import type { Logger } from 'pino';
import type { PoolName } from '../../base/closed-sets.ts';
import { createClients } from './connecting.ts';
import type { Identity } from './identity.ts';
import type { SessionOptions } from './session.ts';
import { readSessionUrl } from './session-url.ts';
import { createSessions, KEEP_ALIVE_DELAY_MS, type Sessions } from './sessions.ts';
import { createSlots, type Slots } from './statements.ts';
import type { Database } from '../schema/tables.ts';

export type DatabaseConnection = {
  readonly db: Kysely<Database>;
  /** Runs one prepared statement outside a transaction. After any error its connection is not used again (statements.ts). */
  readonly execute: <Row extends QueryResultRow>(statement: Statement, values: unknown[]) => Promise<Row[]>;
  /**
   * Opens all of its connections: under load a new one takes many turns of the event loop, and statements would wait for it. Never
   * rejects: what cannot be opened is opened by a statement later.
   */
  readonly openAll: () => Promise<void>;
  /** How many connections it has opened. When Postgres crashes, all end. */
  readonly opened: () => number;
  readonly close: () => Promise<void>;
};

/** A statement with a name is prepared once on each connection. */
export type Statement = { readonly name: string; readonly text: string };

export type DatabaseOptions = Omit<SessionOptions, 'own'> & {
  readonly url: string;
  readonly connections: number;
  /** The driver's. Longer than the statement's, so that Postgres gives up first and rolls back. */
  readonly queryTimeoutMs: number;
  /** For a new connection, or until one is free. 2 s, if not given. */
  readonly connectTimeoutMs?: number;
  /** 'kept': an idle connection stays open, so that a new one means that the old one was lost. Otherwise for a minute. */
  readonly idle?: 'closed' | 'kept';
  /** For sessions that may draw numbers of events: each is verified before its first use. */
  readonly identity?: Pick<Identity, 'verify'>;
  readonly log: Logger;
} & Named;

/** Shown in pg_stat_activity. `sessions` is of all pools of a replica, which have names of a closed set; without it, a pool has its own. */
type Named =
  | { readonly name: PoolName; readonly sessions: Sessions }
  | { readonly name: string; readonly sessions?: undefined };

const NOTHING = { name: 'nothing', text: 'select', values: [] };
/** Of a server that hangs, a stop waits for some of these, one after the other. */
const CONNECT_TIMEOUT_MS = 2_000;
const IDLE_TIMEOUT_MS = 60_000;

/**
 * Does not connect yet: a query connects when there is no open connection.
 * @throws ConfigError for `options` of the URL that cannot be set by statements
 */
export function connectDatabase(options: DatabaseOptions): DatabaseConnection {
  const { log, connections, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  const { url, own } = readSessionUrl(options.url);
  const sessions = options.sessions ?? createSessions({ url: options.url, log });
  sessions.add(connections);
  const pool = new Pool({
    connectionString: url,
    application_name: `tallyhook ${options.name}`,
    max: connections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: options.idle === 'kept' ? 0 : IDLE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    Client: createClients({
      pool: options.name,
      session: { ...options, own },
      sessions,
      identity: options.identity,
      maxPauseMs: connectTimeoutMs / 2, // or who waits for the pause could not connect any more
      log,
    }),
  });
  pool.on('error', () => {}); // an idle client reports to its own listener, too
  let opened = 0;
  pool.on('connect', () => (opened += 1));
  const slots = createSlots({
    pool,
    connections,
    timeoutMs: options.queryTimeoutMs,
    silence: sessions.silence,
    onUse: sessions.servers.used,
    onError: sessions.failed,
  });
  return {
    db: new Kysely<Database>({ dialect: new PostgresDialect({ pool: forKysely(pool, slots) }) }),
    execute: (statement, values) => execute(slots, { ...statement, values }),
    openAll: async () => {
      await Promise.allSettled(Array.from({ length: connections }, () => execute(slots, NOTHING)));
    },
    opened: () => opened,
    close: slots.close,
  };
}

/**
 * With pg's callbacks and a time-out of our own. With pg's promises or its time-out, the garbage collector would keep the values
 * of every statement, and all that waits for its rows, for seconds: pg then assigns a new function to a property of the query. V8
 * takes that for a method, and puts it among old objects (docs/decisions/2026-11-23-short-lives.md).
 */
function execute<Row extends QueryResultRow>(
  slots: Slots,
  query: Statement & { values: unknown[] },
): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    slots.take((unavailable, slot) => {
      if (slot === undefined) return reject(unavailable);
      slot.ask<Row>(query, (error, result) => {
        slot.leave();
        if (error) reject(error);
        else resolve(result?.rows ?? []);
      });
    });
  });
}

/** Kysely returns a connection after any result of its queries: the slot knows what they were. */
function forKysely(pool: Pool, slots: Slots): PostgresPool {
  const connect = () =>
    new Promise<PostgresPoolClient>((resolve, reject) => {
      slots.take((unavailable, slot) => {
        if (slot === undefined) return reject(unavailable);
        const query = (text: string, values: readonly unknown[]) =>
          new Promise<QueryResult>((answered, failed) => {
            slot.ask({ text, values: [...values] }, (error, result) =>
              result === undefined ? failed(error) : answered(result),
            );
          });
        resolve({
          query: query as unknown as PostgresPoolClient['query'], // never of a cursor: Kysely has none
          release: slot.leave,
        });
      });
    });
  return { options: pool.options, connect, end: slots.close };
}

/** What several statements read is of one moment. */
export function readSnapshot<Result>(
  db: Kysely<Database>,
  read: (trx: Transaction<Database>) => Promise<Result>,
): Promise<Result> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(read);
}
