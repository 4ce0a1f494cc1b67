// Whether this program may run on the schema that it finds. In a rollout a newer program changes the schema while older ones
// still run and restart, so each migration states the oldest program that may run on it, in `schema_requirements`.

import { type Kysely, sql } from 'kysely';
import { DEFAULT_MIGRATION_TABLE } from 'kysely/migration';
import { SchemaError } from '../../base/errors.ts';

const REQUIREMENTS_TABLE = 'schema_requirements';

/** The first migration of programs from before the first release. */
const UNRELEASED = '0001-ledger';

export type SchemaFit = {
  /** What has changed the schema up to now. */
  readonly executed: readonly string[];
  /** What this program knows and the schema lacks. */
  readonly missing: readonly string[];
  /** What newer programs have changed. This program may run all the same. */
  readonly newer: readonly string[];
};

/**
 * Compares the schema with the migrations that this program knows.
 * @throws SchemaError if newer programs have changed the schema and this program is too old for it, or if it was never released.
 */
export async function readSchemaFit(db: Kysely<unknown>, known: readonly string[]): Promise<SchemaFit> {
  const executed = await executedMigrations(db);
  if (executed.includes(UNRELEASED)) {
    throw new SchemaError(
      'schema_unreleased',
      'the database was made by a Tallyhook from before its first release, and no release reads it: ' +
        'drop it, or its schema, and begin with an empty one',
    );
  }
  const missing = known.filter((name) => !executed.includes(name)).toSorted();
  const newer = executed.filter((name) => !known.includes(name)).toSorted();
  const oldestPrograms = newer.length > 0 ? await readRequirements(db) : new Map<string, string>();
  const refusing = newer.filter((name) => {
    // With a migration missing, this program comes from another line of versions than the schema.
    return missing.length > 0 || !known.includes(oldestPrograms.get(name) ?? name);
  });
  if (refusing.length === 0) return { executed, missing, newer };
  throw new SchemaError(
    'schema_newer',
    `the database has ${refusing.join(', ')}, which this program does not know: run a newer Tallyhook`,
  );
}

/** Read from its table, since the Migrator reports only migrations whose file it has. */
async function executedMigrations(db: Kysely<unknown>): Promise<string[]> {
  if (!(await exists(db, DEFAULT_MIGRATION_TABLE))) return [];
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`.execute(db);
  return rows.map(({ name }) => name);
}

/** The oldest program for each migration: a program is named by the newest migration that it knows. */
export async function readRequirements(db: Kysely<unknown>): Promise<ReadonlyMap<string, string>> {
  if (!(await exists(db, REQUIREMENTS_TABLE))) return new Map();
  const { rows } = await sql<{ migration: string; oldest: string }>`
    select migration, oldest_program as oldest from ${sql.table(REQUIREMENTS_TABLE)}`.execute(db);
  return new Map(rows.map(({ migration, oldest }) => [migration, oldest]));
}

async function exists(db: Kysely<unknown>, table: string): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`
    select to_regclass(${table}) is not null as exists`.execute(db);
  return rows[0]?.exists ?? false;
}
