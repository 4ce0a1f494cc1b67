// All migrations, and a database brought up or down to one of them.

import { promises as fs } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Kysely, PostgresDialect } from 'kysely';
import {
  FileMigrationProvider,
  type Migration,
  type MigrationProvider,
  Migrator,
  type NoMigrations,
} from 'kysely/migration';
import { Pool } from 'pg';
import type { TestDatabase } from './database.ts';

const migrationFolder = fileURLToPath(new URL('../../migrations', import.meta.url));

export const migrations = await new FileMigrationProvider({ fs, path, migrationFolder }).getMigrations();

/** A later program, which knows more of them. */
export const programWith = (more: Record<string, Migration>): MigrationProvider => ({
  getMigrations: async () => ({ ...migrations, ...more }),
});

/** `name`: the last one that is left, or kysely's NO_MIGRATIONS. */
export async function migrateTo(database: TestDatabase, name: string | NoMigrations): Promise<void> {
  const pool = new Pool({ connectionString: database.url, max: 2 });
  pool.on('error', () => {});
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
    const { error } = await migrator.migrateTo(name);
    if (error !== undefined) throw error;
  } finally {
    await db.destroy();
  }
}
