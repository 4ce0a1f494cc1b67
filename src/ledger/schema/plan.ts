// What `migrate` would do to this database. It reads in a read-only transaction, and takes no lock for which anybody waits. So it
// may be asked at any time, also of a standby, and by a role that may only read.

import { type Kysely, sql } from 'kysely';
import type { MigrationProvider } from 'kysely/migration';
import { EFFECTS, type Effects, type Lock, WHO_WAITS } from './effects.ts';
import { FILES } from './migrate.ts';
import { withMigrationSessions } from './migration-session.ts';
import { planRights, type PlannedRights } from './planned-rights.ts';
import { checkMigratingRole, currentRole, readMigrationObstacle } from './roles.ts';
import { readRequirements, readSchemaFit } from './schema-fit.ts';

export type PlannedLock = Lock & {
  readonly when: 'before the transaction' | 'in the transaction';
  readonly whoWaits: string;
  /** The present size of the table, with its partitions and without its indexes. */
  readonly bytes: number;
};

export type PlannedMigration = {
  readonly name: string;
  readonly lockTimeout: string;
  /** On tables that are there now: nobody waits for one that the same transaction makes. */
  readonly locks: readonly PlannedLock[];
};

export type Plan = {
  /** What would run, in order. */
  readonly pending: readonly PlannedMigration[];
  /** Of newer programs. If there are any, nothing would be changed. */
  readonly newer: readonly string[];
  /** That may run afterwards: named by the newest migration that it knows. */
  readonly oldestProgram: string;
  /** Whether replicas of the program that migrated last may go on afterwards, and restart. */
  readonly mayReplicasStay: boolean;
  /** Why the role that asks cannot migrate. Undefined if it can, or if nothing would be changed since the schema is newer. */
  readonly obstacle: string | undefined;
  /** Undefined if the role that runs is the one that migrates, or nothing is granted. */
  readonly rights: PlannedRights | undefined;
};

/** `effects` has all `migrations`. */
type Program = {
  readonly migrations: MigrationProvider;
  readonly effects: Readonly<Record<string, Effects>>;
};

/** While somebody migrates, a table may be locked. */
const LOCK_TIMEOUT = sql`set local lock_timeout = '5s'`;

/**
 * Takes what `migrate` takes, and changes nothing.
 * @throws as `migrate`: SchemaError if this program is too old for the schema, or the two roles do not fit
 */
export async function planMigration(
  databaseUrl: string,
  migrationUrl?: string,
  { migrations, effects }: Program = { migrations: FILES, effects: EFFECTS },
): Promise<Plan> {
  const known = Object.keys(await migrations.getMigrations());
  const running = migrationUrl && (await withMigrationSessions(databaseUrl, currentRole));
  return withMigrationSessions(migrationUrl ?? databaseUrl, (db) => {
    const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
    return reading.execute(async (trx) => {
      await LOCK_TIMEOUT.execute(trx);
      const other = running === (await currentRole(trx)) ? undefined : running;
      if (other) await checkMigratingRole(trx, other);
      const { executed, missing, newer } = await readSchemaFit(trx, known);
      const requirements = new Map(await readRequirements(trx));
      for (const name of missing) requirements.set(name, effectsOf(effects, name).oldestProgram);
      const oldestProgram = oldestOf([...executed, ...missing], requirements);
      return {
        pending: await withTables(trx, planned(missing, effects)),
        newer,
        oldestProgram,
        mayReplicasStay: executed.length === 0 || executed.some((name) => name >= oldestProgram),
        obstacle:
          newer.length === 0
            ? await readMigrationObstacle(trx, { isPending: missing.length > 0 })
            : undefined,
        rights: other && newer.length === 0 ? await planRights(trx, other) : undefined,
      };
    });
  });
}

function effectsOf(effects: Program['effects'], name: string): Effects {
  const found = effects[name];
  if (found === undefined) throw new Error(`it was not measured what ${name} locks`);
  return found;
}

/** A program knows all migrations up to one; each later one has to allow it. */
function oldestOf(names: readonly string[], requirements: ReadonlyMap<string, string>): string {
  const sorted = names.toSorted();
  return (
    sorted.find((program) =>
      sorted.every((name) => name <= program || (requirements.get(name) ?? name) <= program),
    ) ?? ''
  );
}

type Unsized = Omit<PlannedLock, 'bytes'>;

/** Only the first missing migration has its part ahead (migrations.ts). */
function planned(
  missing: readonly string[],
  effects: Program['effects'],
): { name: string; lockTimeout: string; locks: Unsized[] }[] {
  return missing.map((name, at) => {
    const { lockTimeout, locks, ahead = [], withoutAhead = locks } = effectsOf(effects, name);
    const inTransaction = taken(at === 0 ? locks : withoutAhead, 'in the transaction');
    return {
      name,
      lockTimeout,
      locks: at === 0 ? [...taken(ahead, 'before the transaction'), ...inTransaction] : inTransaction,
    };
  });
}

const taken = (locks: readonly Lock[], when: PlannedLock['when']): Unsized[] =>
  locks.map((lock) => ({ ...lock, when, whoWaits: WHO_WAITS[lock.mode] ?? 'nobody' }));

/** Without the locks on tables that are not there yet. */
async function withTables(
  db: Kysely<unknown>,
  migrations: readonly { name: string; lockTimeout: string; locks: readonly Unsized[] }[],
): Promise<PlannedMigration[]> {
  const tables = migrations.flatMap(({ locks }) => locks.map(({ table }) => table));
  const { rows } = await sql<{ name: string; bytes: number }>`
    select name, coalesce(
      (select sum(pg_table_size(relid)) from pg_partition_tree(to_regclass(name))), pg_table_size(to_regclass(name))
    )::float8 as bytes
    from unnest(${tables}::text[]) name where to_regclass(name) is not null`.execute(db);
  const sizes = new Map(rows.map(({ name, bytes }) => [name, bytes]));
  return migrations.map((migration) => ({
    ...migration,
    locks: migration.locks.flatMap((lock) => {
      const bytes = sizes.get(lock.table);
      return bytes === undefined ? [] : [{ ...lock, bytes }];
    }),
  }));
}
