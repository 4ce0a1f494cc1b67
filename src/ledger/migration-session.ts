// The sessions in which migrations run and the schema is checked. What roles, databases and servers set for their sessions was
// chosen for other work: a migration must not end at a time limit, nor read dates as a role writes them. So each session is set by
// a statement, and read back; never by start-up parameters, which poolers refuse or drop.

import { Kysely, PostgresDialect, sql } from 'kysely';
import { DEFAULT_MIGRATION_TABLE } from 'kysely/migration';
import { type ClientBase, Pool } from 'pg';
import { SchemaError } from '../errors.ts';
import { EVERY_SESSION, type Settings } from './session.ts';
import { readSessionUrl } from './session-url.ts';

/** As `show` would write the values, so that what is read back can be compared. */
const SETTINGS: Settings = {
  ...EVERY_SESSION,
  // An index on a large table takes long. A migration that locks what others use limits its waits itself.
  statement_timeout: '0',
  lock_timeout: '0',
  transaction_timeout: '0', // since Postgres 17
  // Migrations pause for half a second at most. One that is frozen must not hold its locks for ever.
  idle_in_transaction_session_timeout: '1min',
  check_function_bodies: 'on',
};

/** Does nothing for a setting that this version of Postgres does not know. */
const SET = `
select s.name, set_config(s.name, s.value, false) as value
from unnest($1::text[], $2::text[]) as s (name, value)
where current_setting(s.name, true) is not null`;

/**
 * Our schema is the first on the path that has our migrations, or else the first: there the tables will be made. `pg_temp` last, so that no temporary
 * table takes the place of one of ours.
 */
const PIN = `
select s.name as schema, set_config('search_path', quote_ident(s.name) || ', pg_temp', false) as path
from (
  select coalesce((
    select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1)
  ), current_schema()) as name
) s`;

/** A pool of its own, of sessions that are as they must be. */
export async function withMigrationSessions<T>(
  databaseUrl: string,
  use: (db: Kysely<unknown>) => Promise<T>,
): Promise<T> {
  const { url, own } = readSessionUrl(databaseUrl);
  const pool = new Pool({
    connectionString: url,
    application_name: 'tallyhook migrate',
    max: 2,
    connectionTimeoutMillis: 5_000,
    onConnect: (client) => prepareSession(client, own), // oxlint-disable-line typescript/no-misused-promises -- it is awaited, which pg's types do not say
  });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    return await use(db);
  } finally {
    await db.destroy();
  }
}

/** @throws SchemaError naming the setting that is not as it must be, or that there is no schema. */
async function prepareSession(client: ClientBase, own: Settings): Promise<void> {
  await client.query(SET, [Object.keys(own), Object.values(own)]);
  const { rows: settings } = await client.query<{ name: string; value: string }>(SET, [
    Object.keys(SETTINGS),
    Object.values(SETTINGS),
  ]);
  const wrong = settings.find(({ name, value }) => value !== SETTINGS[name]);
  if (wrong !== undefined) {
    throw new SchemaError(
      'migration_failed',
      `${wrong.name} stayed ${wrong.value}: migrations need ${SETTINGS[wrong.name]}`,
    );
  }
  const { rows } = await client.query<{ schema: string | null }>(PIN, [DEFAULT_MIGRATION_TABLE]);
  if (typeof rows[0]?.schema === 'string') return;
  throw new SchemaError(
    'migration_failed',
    'no schema of search_path exists, or the role may not use one: create it, or set search_path of the role or the database',
  );
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
