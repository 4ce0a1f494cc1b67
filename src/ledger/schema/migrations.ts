// Runs the migrations that the schema lacks, in one transaction, under the lock of Kysely's Migrator. Some have a part that must
// not be in a transaction: it comes before them, under a lock of ours.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { SchemaError } from '../../base/errors.ts';
import { ourSchema } from './migration-session.ts';
import { readSchemaFit } from './schema-fit.ts';

/**
 * `ahead` does what takes long, such as building indexes, while older programs write. It is not in a transaction, can be killed at
 * any point and run again, and leaves a schema on which these programs, and `up`, work.
 */
export type AheadMigration = Migration & { readonly ahead?: (session: Kysely<unknown>) => Promise<void> };

/** An arbitrary constant. */
const AHEAD_LOCK = 7_461_196;
const POLL_MS = 200;

/**
 * Only the first missing migration has its part `ahead`, which needs the schema of the one before. For a later one `up` does all the work:
 * to commit those before it would end older programs for as long as `ahead` takes. So a failure leaves nothing but what `ahead` did.
 *
 * @param migrations all that this program knows
 * @returns the names of those that ran.
 * @throws SchemaError if one failed.
 */
export async function runMigrations(
  db: Kysely<unknown>,
  migrations: Record<string, AheadMigration>,
): Promise<string[]> {
  const first = async () => {
    const { missing } = await readSchemaFit(db, Object.keys(migrations));
    const [name = ''] = missing;
    const ahead = migrations[name]?.ahead;
    return ahead && { name, ahead };
  };
  if ((await first()) === undefined) return migrate(db, migrations);
  return inTurn(db, async (session) => {
    const found = await first();
    if (found !== undefined) await runAhead(session, found);
    return migrate(db, migrations);
  });
}

/**
 * One replica after another. Its connection has the lock, also while a server still works for a program that was killed. It is
 * asked for again and again, since the statement of one who waits for it would keep an index from being built: that waits for all
 * statements that have begun before.
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
  { name, ahead }: { name: string; ahead: NonNullable<AheadMigration['ahead']> },
): Promise<void> {
  try {
    await ahead(session);
  } catch (error) {
    throw new SchemaError('migration_failed', `migration ${name} was not finished: run it again`, {
      cause: error,
    });
  }
}

/** Runs those that are missing: nothing, or all in one transaction. */
async function migrate(db: Kysely<unknown>, migrations: Record<string, Migration>): Promise<string[]> {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve(migrations) },
    // Without it, the table of another program in another schema would be taken for ours.
    migrationTableSchema: await ourSchema(db),
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error === undefined)
    return results.filter(({ status }) => status === 'Success').map(({ migrationName }) => migrationName);
  const failed = results.find(({ status }) => status === 'Error')?.migrationName;
  const message = failed ? `migration ${failed} failed and was undone` : 'the migrations could not begin';
  throw new SchemaError('migration_failed', message, { cause: error });
}
