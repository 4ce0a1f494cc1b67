// The sessions in which migrations run and the schema is checked: as all are (sessions/session.ts), but without limits of time,
// which would end the building of an index, and on a read-only database, too, where the schema can be checked.

import { Kysely, PostgresDialect, sql } from 'kysely';
import { Pool } from 'pg';
import { pino } from 'pino';
import { SchemaError, SessionError } from '../../base/errors.ts';
import { createClients } from '../sessions/connecting.ts';
import type { SessionOptions } from '../sessions/session.ts';
import { readSessionUrl } from '../sessions/session-url.ts';
import { createSessions } from '../sessions/sessions.ts';

const CONNECTIONS = 2;
const CONNECT_TIMEOUT_MS = 5_000;
/** Each use of them is short: a failure is told by its error, and whoever tries again has pauses. */
const PAUSE_MS = 100;

/** What these sessions have besides, or instead of what all have. */
export const MIGRATION_SETTINGS = {
  // Migrations pause for half a second at most. One that is frozen must not hold its locks for ever.
  idle_in_transaction_session_timeout: '1min',
  check_function_bodies: 'on',
};

/** A migration that locks what others use limits its waits itself. */
const SESSION: SessionOptions = {
  statementTimeoutMs: 0,
  lockTimeoutMs: 0,
  reading: 'as given',
  mayBeReadOnly: true, // checkMayWrite has a sentence of its own
  besides: MIGRATION_SETTINGS,
};

/**
 * A pool of its own.
 * @throws SchemaError for a server or a search path on which no migration can run, SessionError for what else its sessions are not
 */
export async function withMigrationSessions<T>(
  databaseUrl: string,
  use: (db: Kysely<unknown>) => Promise<T>,
): Promise<T> {
  const { url, own } = readSessionUrl(databaseUrl);
  const log = pino({ enabled: false }); // errors say it all
  const sessions = createSessions({ url: databaseUrl, log });
  sessions.add(CONNECTIONS);
  const pool = new Pool({
    connectionString: url,
    application_name: 'tallyhook migrate',
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    Client: createClients({
      pool: 'migrate',
      session: { ...SESSION, own },
      sessions,
      maxPauseMs: PAUSE_MS,
      log,
    }),
  });
  pool.on('error', () => {});
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    return await use(db);
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== 'session_unfit') throw error;
    throw new SchemaError('migration_failed', error.message); // oxlint-disable-line preserve-caught-error -- its words are the same
  } finally {
    await db.destroy();
  }
}

/** The schema that `withMigrationSessions` has found. */
export async function ourSchema(db: Kysely<unknown>): Promise<string> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  return rows[0]?.schema ?? 'public';
}

const READ_ONLY = '25006';

/**
 * Read-only is never changed: a standby is, and it may be somebody's fence around the database.
 * @throws Error with Postgres's own code for it: a later attempt may succeed
 */
export async function checkMayWrite(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ isStandby: boolean; isReadOnly: boolean }>`
    select pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only')::boolean as "isReadOnly"`.execute(
    db,
  );
  const { isStandby = false, isReadOnly = false } = rows[0] ?? {};
  if (!isReadOnly) return;
  const why = isStandby
    ? 'it is a standby'
    : 'default_transaction_read_only is on, for the server, the database or the role';
  throw Object.assign(new Error(`the database cannot be migrated, since it is read-only: ${why}`), {
    code: READ_ONLY,
  });
}
