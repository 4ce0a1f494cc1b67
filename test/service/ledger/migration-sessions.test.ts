// Migrations run with settings of their own, whatever the role, the database and the search path give to other sessions.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type { MigrationProvider } from 'kysely/migration';
import { expect, test } from 'vitest';
import { checkSchema, migrate } from '../../../src/ledger/schema/migrate.ts';
import { amqpUrl } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { migrations } from '../../support/migrations.ts';
import { runCommand } from '../../support/cli.ts';
import { startPgbouncer } from '../../support/pgbouncer.ts';
import { startProcess } from '../../support/replica.ts';
import { createRoles } from '../../support/roles.ts';
import { SECRET } from '../../support/sender.ts';

const all = Object.keys(migrations).toSorted();

const MORE = '9998-more';

const withMore = (up: (db: Kysely<unknown>) => Promise<void>): MigrationProvider => ({
  getMigrations: async () => ({ ...migrations, [MORE]: { up } }),
});

async function set({ name, query }: TestDatabase, settings: Record<string, string>): Promise<void> {
  for (const [setting, value] of Object.entries(settings)) {
    await query(`begin read write; alter database ${name} set ${setting} = ${value}; commit`);
  }
}

test('time limits, date styles and isolation of the database and the role do not reach a migration', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await set(database, {
    statement_timeout: '200',
    idle_in_transaction_session_timeout: '200',
    datestyle: 'German',
    standard_conforming_strings: 'off',
    default_transaction_isolation: 'serializable',
    check_function_bodies: 'off',
  });
  for (const { name } of [migrating, running]) {
    for (const limit of ['lock_timeout', 'transaction_timeout', 'idle_session_timeout']) {
      await database.query(`alter role ${name} set ${limit} = 200`);
    }
  }

  const slow = withMore(async (db) => {
    await sql`select pg_sleep(0.3)`.execute(db);
    await sleep(300);
  });

  expect(await migrate(running.url, migrating.url, slow)).toEqual([...all, MORE]);
  expect(await checkSchema(running.url, slow)).toEqual([]);
});

test('a table of another program with the name of ours is not taken for ours', async () => {
  await using database = await createTestDatabase({ empty: true });
  await database.query('create schema other');
  await database.query('create table other.kysely_migration (name text, timestamp text)');
  await database.query(`insert into other.kysely_migration values ('theirs', '')`);

  expect(await migrate(database.url)).toEqual(all);

  expect(await database.query('select name from other.kysely_migration')).toEqual([{ name: 'theirs' }]);
  expect(await database.query('select from public.kysely_migration')).toHaveLength(all.length);
});

test('a schema that comes to stand before ours on the search path changes nothing', async () => {
  await using database = await createTestDatabase({ empty: true });
  await migrate(database.url);
  await database.query('create schema earlier');
  await set(database, { search_path: 'earlier, public' });
  const more = {
    '9998-more': { up: async (db: never) => void (await sql`create table more ()`.execute(db)) },
  };

  expect(
    await migrate(database.url, undefined, { getMigrations: async () => ({ ...migrations, ...more }) }),
  ).toEqual(Object.keys(more));

  expect(await database.query(`select schemaname from pg_tables where tablename = 'more'`)).toEqual([
    { schemaname: 'public' },
  ]);
});

test('without a schema on the search path it is said, and nothing is made', async () => {
  await using database = await createTestDatabase({ empty: true });
  await set(database, { search_path: 'nowhere' });

  await expect(migrate(database.url)).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringContaining('no schema of search_path exists'),
  });
});

test('a database of another encoding ends migrate and serve with 78 and a sentence, and is not migrated', async () => {
  await using database = await createTestDatabase({ encoding: 'LATIN1' });
  const why = 'server_unfit: server_encoding is LATIN1 (it comes from: default) and must be UTF8\n';

  expect(await runCommand(['migrate'], { env: { DATABASE_URL: database.url } })).toMatchObject({
    code: 78,
    stderr: why,
  });
  await using serve = startProcess(['serve'], {
    env: {
      DATABASE_URL: database.url,
      AMQP_URL: amqpUrl(),
      SIGNING_SECRETS: SECRET,
      PORT: '0',
      OPERATOR_PORT: '0',
      MIGRATE_ON_START: 'true',
    },
  });
  expect(await serve.exited).toMatchObject({ code: 78 });
  expect(serve.stderr()).toBe(why);
  expect(await database.query(`select from pg_tables where schemaname = 'public'`)).toEqual([]);
});

test.skipIf(!process.env['TEST_PGBOUNCER'])(
  'a migration does not run in sessions that a pooler hands around',
  async () => {
    await using database = await createTestDatabase({ empty: true });
    await using pooler = await startPgbouncer(database.url, { pool_mode: 'transaction' });

    await expect(migrate(pooler.url)).rejects.toMatchObject({ code: 'pooler_unfit' });
    expect(await database.query(`select from pg_tables where schemaname = 'public'`)).toEqual([]);
  },
);

test('the cause of a failure is shown', async () => {
  await using database = await createTestDatabase({ empty: true });
  await database.query('create table outbox_batches (in_the_way int)');

  const { code, stderr } = await runCommand(['migrate'], { env: { DATABASE_URL: database.url } });

  expect(code).toBe(78);
  expect(stderr).toBe(
    `migration_failed: migration ${all[0]} failed and was undone\n  42P07: relation "outbox_batches" already exists\n`,
  );
});

test('a database that is read-only is not migrated, and stays read-only', async () => {
  await using database = await createTestDatabase({ empty: true });
  await set(database, { default_transaction_read_only: 'on' });
  const env = { DATABASE_URL: database.url };

  expect(await runCommand(['migrate'], { env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('25006: the database cannot be migrated, since it is read-only'),
  });

  await set(database, { default_transaction_read_only: 'off' });
  expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0 });
});
