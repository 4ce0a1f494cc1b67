// Brings the schema up to date and checks that it fits this program. Several replicas may start at once: one migrates, the others
// wait and find it done.

import { promises as fs } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Kysely } from 'kysely';
import { FileMigrationProvider, type MigrationProvider } from 'kysely/migration';
import { SchemaError } from '../../base/errors.ts';
import { checkMayWrite, withMigrationSessions } from './migration-session.ts';
import { runMigrations } from './migrations.ts';
import { checkMigratingRole, checkRunningRole, currentRole, grantToRunningRole } from './roles.ts';
import { readSchemaFit } from './schema-fit.ts';

/** A migration's name is that of its file without its ending: the same here and in the package, where the files are JavaScript. */
export const FILES: MigrationProvider = new FileMigrationProvider({
  fs,
  path,
  migrationFolder: fileURLToPath(new URL('../../../migrations', import.meta.url)),
});

/**
 * Runs every migration that has not run yet, in order. With a `migrationUrl` it runs them as that role, which then owns the
 * tables, and grants the role of `databaseUrl` what the service needs. Idempotent. On a schema that is newer than this program,
 * and on which it may run, it changes and grants nothing: that would take rights from the newer programs.
 * @param migrations those that this program knows
 * @returns the names of those that ran.
 * @throws SchemaError if this program is too old for the schema, a migration failed (all were undone), or the two roles do not fit.
 *   Postgres's error if it is away or read-only: a later attempt may succeed.
 */
export async function migrate(
  databaseUrl: string,
  migrationUrl?: string,
  migrations: MigrationProvider = FILES,
): Promise<string[]> {
  const known = Object.keys(await migrations.getMigrations());
  const isNewer = async (db: Kysely<unknown>) => (await readSchemaFit(db, known)).newer.length > 0;
  const running = migrationUrl && (await withMigrationSessions(databaseUrl, currentRole));
  return withMigrationSessions(migrationUrl ?? databaseUrl, async (db) => {
    const other = running === (await currentRole(db)) ? undefined : running;
    if (other) await checkMigratingRole(db, other);
    const { missing, newer } = await readSchemaFit(db, known);
    if (newer.length > 0) return [];
    if (missing.length > 0) await checkMayWrite(db);
    try {
      const ran = await runMigrations(db, await migrations.getMigrations());
      if (other) await grantToRunningRole(db, other, { unless: isNewer });
      return ran;
    } catch (error) {
      // A newer program migrated while we waited for the Migrator's lock: ours then ran nothing. If the connection was lost, the
      // next one may be lost, too: the first error tells more.
      const isFailure = error instanceof SchemaError && error.code === 'migration_failed';
      if (isFailure && (await isNewer(db).catch(() => false))) return [];
      throw error;
    }
  });
}

/**
 * Checks that this program, which knows `migrations`, may run on the schema.
 * @returns the migrations of newer programs on which it may run; none if the schema is exactly its own
 * @throws SchemaError if the schema lacks a migration, this program is too old for it, or our role may not use it.
 */
export function checkSchema(
  databaseUrl: string,
  migrations: MigrationProvider = FILES,
): Promise<readonly string[]> {
  return withMigrationSessions(databaseUrl, async (db) => {
    await checkRunningRole(db);
    const { missing, newer } = await readSchemaFit(db, Object.keys(await migrations.getMigrations()));
    if (missing.length === 0) return newer;
    throw new SchemaError(
      'schema_older',
      `the database lacks ${missing.join(', ')}: run "tallyhook migrate" or set MIGRATE_ON_START=true`,
    );
  });
}
