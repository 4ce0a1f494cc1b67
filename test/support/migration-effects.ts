// Measures what migrations do to tables that are in use (src/ledger/schema/effects.ts): each runs on a database that has all earlier
// ones, and its locks are read in its transaction, before the commit.

import { type Kysely, sql } from 'kysely';
import { type MigrationProvider } from 'kysely/migration';
import { type Effects, type Lock, WHO_WAITS, type Work } from '../../src/ledger/schema/effects.ts';
import { withMigrationSessions } from '../../src/ledger/schema/migration-session.ts';
import type { AheadMigration } from '../../src/ledger/schema/migrations.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { openTransaction } from './transaction.ts';
import { waitFor } from './waits.ts';

type Named = { readonly name: string; readonly migration: AheadMigration };

/** `which`: those to be measured. */
export async function measureEffects(
  provider: MigrationProvider,
  which: (name: string) => boolean = () => true,
): Promise<Record<string, Effects>> {
  const all = Object.entries(await provider.getMigrations())
    .map(([name, migration]) => ({ name, migration }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const measured: Record<string, Effects> = {};
  for (const [at, one] of all.entries()) {
    if (which(one.name)) measured[one.name] = await measure(one, all.slice(0, at));
  }
  return measured;
}

async function measure(named: Named, earlier: readonly Named[]): Promise<Effects> {
  const { ahead } = named.migration;
  const run = (session: Kysely<unknown>) => inTransaction(session, named);
  const alone = await onDatabaseWith(earlier, run);
  if (ahead === undefined) return alone;
  const both = await onDatabaseWith(earlier, async (session, database) => ({
    ahead: await aheadOfTransaction(session, ahead, database),
    ...(await run(session)),
  }));
  return { ...both, withoutAhead: alone.locks };
}

/** With a day in each table that has days. */
async function onDatabaseWith<T>(
  earlier: readonly Named[],
  use: (session: Kysely<unknown>, database: TestDatabase) => Promise<T>,
): Promise<T> {
  await using database = await createTestDatabase({ empty: true });
  return await withMigrationSessions(database.url, (db) =>
    db.connection().execute(async (session) => {
      for (const { migration } of earlier) await session.transaction().execute((trx) => migration.up(trx));
      const { rows } = await sql<{ name: string }>`
        select relname as name from pg_class where relkind = 'p' and relnamespace = current_schema()::regnamespace`.execute(
        session,
      );
      for (const { name } of rows) {
        await sql`select make_partition(${name}, (now() at time zone 'UTC')::date)`.execute(session);
      }
      return use(session, database);
    }),
  );
}

async function inTransaction(session: Kysely<unknown>, { name, migration }: Named): Promise<Effects> {
  await rememberTables(session);
  return session.transaction().execute(async (trx) => {
    await migration.up(trx);
    const held = await sql<Held>`
      select relation::text as oid, mode from pg_locks where pid = pg_backend_pid() and relation is not null`.execute(
      trx,
    );
    const { rows } = await sql<{ limit: string; oldest: string | null }>`
      select current_setting('lock_timeout') as limit, (
        select oldest_program from schema_requirements where migration = ${name}
      ) as oldest`.execute(trx);
    const { limit = '', oldest = name } = rows[0] ?? {};
    return { oldestProgram: oldest ?? name, lockTimeout: limit, locks: await locksOf(trx, held.rows) };
  });
}

/**
 * A writer has written to all tables and does not end, so what waits for it can be looked at. Then another writer begins, for what
 * the part ahead does next.
 */
async function aheadOfTransaction(
  session: Kysely<unknown>,
  ahead: NonNullable<AheadMigration['ahead']>,
  database: TestDatabase,
): Promise<Lock[]> {
  const tables = await rememberTables(session);
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(session);
  const pid = rows[0]?.pid;
  const held: Held[] = [];
  const write = async () => {
    const writer = await openTransaction(database);
    await writer.query(`lock table ${tables.join(', ')} in row exclusive mode`);
    return writer;
  };
  let writer = await write();
  let isDone = false;
  const done = ahead(session).finally(() => (isDone = true));
  done.catch(() => {}); // awaited below
  while (!isDone) {
    await waitFor(async () => {
      if (!isDone && !(await isWaiting(database, pid))) throw new Error('it neither waits nor ends');
    });
    held.push(
      ...(await database.query<Held>(
        'select relation::text as oid, mode from pg_locks where pid = $1 and relation is not null',
        [pid],
      )),
    );
    await writer.rollback();
    writer = await write();
  }
  await writer.rollback();
  await done;
  await sql`select pg_stat_force_next_flush()`.execute(session);
  return locksOf(session, held);
}

const isWaiting = async (database: TestDatabase, pid: number | undefined) =>
  (await database.query(`select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`, [pid]))
    .length > 0;

const SCANS = sql`pg_stat_get_numscans(c.oid) + pg_stat_get_xact_numscans(c.oid)`;

/** What is there before the migration. @returns the names */
async function rememberTables(session: Kysely<unknown>): Promise<string[]> {
  await sql`drop table if exists pg_temp.tables_before, pg_temp.indexes_before`.execute(session);
  await sql`
    create temp table tables_before as
    select c.oid, c.relfilenode, ${SCANS} as scans, coalesce(pg_partition_root(c.oid), c.oid)::regclass::text as name
    from pg_class c where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace`.execute(
    session,
  );
  await sql`
    create temp table indexes_before as
    select c.oid, c.relfilenode from pg_class c where relkind in ('i', 'I')`.execute(session);
  const { rows } = await sql<{ name: string }>`
    select distinct name from pg_temp.tables_before where name not like 'kysely%' order by 1`.execute(
    session,
  );
  return rows.map(({ name }) => name);
}

type Held = { readonly oid: string; readonly mode: string };

/** Every migration writes its row here, and programs read it at their start alone. */
const BOOKS = 'schema_requirements';

/** The strongest of each table that was there before, with all of its days. */
async function locksOf(session: Kysely<unknown>, held: readonly Held[]): Promise<Lock[]> {
  const { rows } = await sql<{ oid: string; table: string; work: Work }>`
    select t.oid::text as oid, t.name as table, case
      when bool_or(c.relfilenode <> t.relfilenode) over same then 'rewrites the table'
      when bool_or(exists (
        select from pg_index i join pg_class n on n.oid = i.indexrelid left join pg_temp.indexes_before b on b.oid = n.oid
        where i.indrelid = t.oid and n.relfilenode is distinct from b.relfilenode
      )) over same then 'builds an index'
      when bool_or(${SCANS} > t.scans) over same then 'scans the table'
      else 'short'
    end as work
    from pg_temp.tables_before t left join pg_class c on c.oid = t.oid
    where t.name <> ${BOOKS} window same as (partition by t.name) order by t.name, t.oid`.execute(session);
  const strengths = Object.keys(WHO_WAITS);
  const found = new Map<string, Lock>();
  for (const { oid, table, work } of rows) {
    for (const one of held.filter((lock) => lock.oid === oid)) {
      const mode = nameOf(one.mode);
      const isStronger = strengths.indexOf(mode) > strengths.indexOf(found.get(table)?.mode ?? '');
      if (isStronger) found.set(table, { table, mode, work });
    }
  }
  return [...found.values()];
}

/** `AccessExclusiveLock` is `access exclusive`. */
const nameOf = (mode: string): string =>
  mode
    .replace(/Lock$/, '')
    .replaceAll(/(?<=[a-z])[A-Z]/g, ' $&')
    .toLowerCase();
