// Runs the migrations that the schema lacks. Kysely's Migrator runs them in one transaction, under its lock. Some have a part that must
// not be in a transaction: it comes before them, under a lock of ours.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { SchemaError } from '../errors.ts';
import { readSchemaFit } from './schema-fit.ts';

/**
 * `ahead` does what takes long, such as building indexes, while older programs write. It is not in a transaction, can be killed at
 * any point and run again, and leaves a schema on which these programs, and `up`, work.
 */
type AheadMigration = Migration & { readonly ahead?: (session: Kysely<unknown>) => Promise<void> };

/** An arbitrary constant. */
const AHEAD_LOCK = 7_461_196;
const POLL_MS = 200;

/**
 * @param migrations all that this program knows
 * @returns the names of those that ran.
 * @throws SchemaError if one failed. It was undone; with `ahead`, those before it were not.
 */
export async function runMigrations(
  db: Kysely<unknown>,
  migrations: Record<string, AheadMigration>,
): Promise<string[]> {
  const names = Object.keys(migrations).toSorted();
  const first = async () => {
    const { missing } = await readSchemaFit(db, names);
    return missing.find((name) => migrations[name]?.ahead !== undefined);
  };
  const ran: string[] = [];
  if ((await first()) !== undefined) {
    await inTurn(db, async (session) => {
      for (let name = await first(); name !== undefined; name = await first()) {
        ran.push(...(await migrate(db, migrations, names.slice(0, names.indexOf(name)))));
        await runAhead(session, name, migrations[name]);
        ran.push(...(await migrate(db, migrations, names.slice(0, names.indexOf(name) + 1))));
      }
    });
  }
  return [...ran, ...(await migrate(db, migrations, names))];
}

/**
 * One replica after another. Its connection has the lock, also while a server still works for a program that was killed. It is asked
 * for again and again, since the statement of one who waits for it would keep an index from being built: that waits
 * for all statements that have begun before.
 */
function inTurn<T>(db: Kysely<unknown>, use: (session: Kysely<unknown>) => Promise<T>): Promise<T> {
  return db.connection().execute(async (session) => {
    const lock = sql<{ isOurs: boolean }>`select pg_try_advisory_lock(${AHEAD_LOCK}) as "isOurs"`;
    while (!(await lock.execute(session)).rows[0]?.isOurs) await sleep(POLL_MS);
    try {
      return await use(session);
    } finally {
      // A lost connection has no lock any more.
      await sql`select pg_advisory_unlock(${AHEAD_LOCK})`.execute(session).catch(() => {});
    }
  });
}

async function runAhead(
  session: Kysely<unknown>,
  name: string,
  migration: AheadMigration | undefined,
): Promise<void> {
  try {
    await migration?.ahead?.(session);
  } catch (error) {
    throw new SchemaError('migration_failed', `migration ${name} was not finished: run it again`, {
      cause: error,
    });
  }
}

/** Runs those of `names` that are missing: nothing, or all in one transaction. */
async function migrate(
  db: Kysely<unknown>,
  migrations: Record<string, Migration>,
  names: readonly string[],
): Promise<string[]> {
  const wanted = Object.fromEntries(Object.entries(migrations).filter(([name]) => names.includes(name)));
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(wanted) } });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error === undefined)
    return results.filter(({ status }) => status === 'Success').map(({ migrationName }) => migrationName);
  const failed = results.find(({ status }) => status === 'Error')?.migrationName ?? 'unknown';
  throw new SchemaError('migration_failed', `migration ${failed} failed and was undone`, { cause: error });
}
