// Brings the schema up to date and checks that it fits this program. Kysely's Migrator works under a lock, so several
// replicas may start at once: one migrates, the others wait and find it done.

import { promises as fs } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { DEFAULT_MIGRATION_TABLE, FileMigrationProvider, Migrator } from 'kysely/migration';
import { Pool } from 'pg';
import { SchemaError } from '../errors.ts';
import { checkMigratingRole, checkRunningRole, currentRole, grantToRunningRole } from './roles.ts';

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));

/**
 * Runs every migration that has not run yet, in order. With a `migrationUrl` it runs them as that role, which then owns the
 * tables, and grants the role of `databaseUrl` what the service needs. Idempotent.
 * @returns the names of those that ran.
 * @throws SchemaError if the schema is newer than this program, a migration failed (and was rolled back), or the two roles do
 *   not fit.
 */
export async function migrate(databaseUrl: string, migrationUrl?: string): Promise<string[]> {
  const running = migrationUrl && (await withMigrator(databaseUrl, (_migrator, db) => currentRole(db)));
  return withMigrator(migrationUrl ?? databaseUrl, async (migrator, db) => {
    const other = running === (await currentRole(db)) ? undefined : running;
    if (other) await checkMigratingRole(db, other);
    refuseNewer(await difference(db));
    const { error, results = [] } = await migrator.migrateToLatest();
    if (error !== undefined) {
      const failed = results.find((result) => result.status === 'Error')?.migrationName ?? 'unknown';
      throw new SchemaError('migration_failed', `migration ${failed} failed and was undone`, {
        cause: error,
      });
    }
    if (other) await grantToRunningRole(db, other);
    return results.filter((result) => result.status === 'Success').map((result) => result.migrationName);
  });
}

/** @throws SchemaError unless the schema is exactly the one of this program, and our role may use it. */
export function checkSchema(databaseUrl: string): Promise<void> {
  return withMigrator(databaseUrl, async (_migrator, db) => {
    await checkRunningRole(db);
    const { missing } = refuseNewer(await difference(db));
    if (missing.length === 0) return;
    throw new SchemaError(
      'schema_older',
      `the database lacks ${missing.join(', ')}: run "tallyhook migrate" or set MIGRATE_ON_START=true`,
    );
  });
}

/** A migration's name is that of its file without its ending: the same here and in the package, where the files are JavaScript. */
const files = () => new FileMigrationProvider({ fs, path, migrationFolder: MIGRATIONS });

type Difference = { missing: string[]; unknown: string[] };

async function difference(db: Kysely<unknown>): Promise<Difference> {
  const known = Object.keys(await files().getMigrations());
  const executed = await executedMigrations(db);
  return {
    missing: known.filter((name) => !executed.includes(name)).toSorted(),
    unknown: executed.filter((name) => !known.includes(name)).toSorted(),
  };
}

/** Read from its table, since the Migrator reports only migrations whose file it has. */
async function executedMigrations(db: Kysely<unknown>): Promise<string[]> {
  const { rows: tables } = await sql<{ exists: boolean }>`
    select to_regclass(${DEFAULT_MIGRATION_TABLE}) is not null as exists`.execute(db);
  if (!tables[0]?.exists) return [];
  const { rows } = await sql<{
    name: string;
  }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`.execute(db);
  return rows.map((row) => row.name);
}

function refuseNewer(found: Difference): Difference {
  if (found.unknown.length === 0) return found;
  throw new SchemaError(
    'schema_newer',
    `the database has ${found.unknown.join(', ')}, which this program does not know: run a newer Tallyhook`,
  );
}

async function withMigrator<T>(
  databaseUrl: string,
  use: (migrator: Migrator, db: Kysely<unknown>) => Promise<T>,
): Promise<T> {
  // A pool of its own, without the service's statement time-out: an index on a large table takes long.
  const pool = new Pool({
    connectionString: databaseUrl,
    application_name: 'tallyhook migrate',
    max: 2,
    connectionTimeoutMillis: 5_000,
  });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    return await use(new Migrator({ db, provider: files() }), db);
  } finally {
    await db.destroy();
  }
}
