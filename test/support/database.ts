// A database for each test, copied from the migrated template on the server that `npm test` started.

import { randomBytes } from 'node:crypto';
import { Pool, type QueryResultRow } from 'pg';
import { tellStart } from './starts.ts';

/** With other names two runs can share one server. */
export const TEMPLATE = process.env['TEST_TEMPLATE'] ?? 'tallyhook_template';

/** Of the names of all copies; they are dropped with the template. */
const PREFIX = `${TEMPLATE}_copy_`;

export type TestDatabase = AsyncDisposable & {
  readonly url: string;
  readonly name: string;
  /** Runs one statement, on any connection. */
  readonly query: <Row extends QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;
};

type NewDatabase = {
  readonly empty?: boolean;
  readonly encoding?: 'LATIN1';
  readonly of?: Pick<TestDatabase, 'name'>;
};

/** The URL of a database on the tests' server; without a name, of the one that TEST_DATABASE_URL names. */
function databaseUrl(name?: string): string {
  const given = process.env['TEST_DATABASE_URL'];
  if (!given) throw new Error('TEST_DATABASE_URL is not set: run the tests with "npm test"');
  const url = new URL(given);
  if (name !== undefined) url.pathname = `/${name}`;
  return url.href;
}

/**
 * `empty` leaves the schema out, for tests of migrations, and so does an `encoding`; `of` copies another database, to which nobody may be connected. After its test all connections to the database are ended, but it
 * is dropped only after all tests: to create a file ext4 searches past each recently deleted one, and after hundreds of
 * deletions a copy costs 700 ms of processor time instead of 35.
 */
export async function createTestDatabase(options: NewDatabase = {}): Promise<TestDatabase> {
  tellStart('database');
  const name = `${PREFIX}${randomBytes(6).toString('hex')}`;
  await onServer(`create database ${name} ${templateOf(options)}`);
  const url = databaseUrl(name);
  const pool = openPool(url);
  return {
    url,
    name,
    query: async <Row extends QueryResultRow>(text: string, values?: unknown[]) =>
      (await pool.query<Row>(text, values)).rows,
    [Symbol.asyncDispose]: async () => {
      await onServer('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
      await pool.end();
    },
  };
}

function templateOf({ empty = false, encoding, of }: NewDatabase): string {
  if (encoding !== undefined)
    return `template template0 encoding '${encoding}' locale 'C' locale_provider libc`;
  // Copied as files: through the WAL it takes twice as long.
  return empty ? '' : `template ${of?.name ?? TEMPLATE} strategy file_copy`;
}

/** A new, empty template. What a killed run left behind is dropped. */
export async function createTemplate(): Promise<string> {
  await dropTestDatabases();
  await onServer(`create database ${TEMPLATE}`);
  return databaseUrl(TEMPLATE);
}

/** Drops the template, every copy of it, and the roles that tests made. */
export async function dropTestDatabases(): Promise<void> {
  const found = await onServer<{ name: string }>(
    'select datname as name from pg_database where datname = $1 or starts_with(datname, $2)',
    [TEMPLATE, PREFIX],
  );
  for (const { name } of found) await onServer(`drop database ${name} with (force)`);
  const roles = await onServer<{ name: string }>(
    'select rolname as name from pg_roles where starts_with(rolname, $1)',
    [PREFIX],
  );
  for (const { name } of roles) await onServer(`drop role ${name}`);
}

let server: Pool | undefined;

async function onServer<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
  server ??= openPool(databaseUrl());
  return (await server.query<Row>(text, values)).rows;
}

/** Pooled, since a connection costs 20 ms of processor time and tests poll often. Several, since one may wait for a lock. */
function openPool(url: string): Pool {
  const pool = new Pool({
    connectionString: url,
    max: 4,
    idleTimeoutMillis: 1_000, // the server has a hundred connections for all tests
    allowExitOnIdle: true,
  });
  pool.on('error', () => {}); // tests end all connections to their database
  return pool;
}
