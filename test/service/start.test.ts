// How the service meets a database as it finds it: empty, older, newer, busy, or not there yet.

import { readdir } from 'node:fs/promises';
import { NO_MIGRATIONS } from 'kysely/migration';
import { describe, expect, test } from 'vitest';
import { IS_SHORT_RUN } from '../only-in-all.ts';
import { checkSchema, migrate } from '../../src/ledger/schema/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { lockWaits } from '../support/ledger.ts';
import { migrateTo } from '../support/migrations.ts';
import { waitFor } from '../support/waits.ts';
import { patience } from '../support/patience.ts';
import { startProxy } from '../support/proxy.ts';
import { dumpSchema } from '../support/schema-dump.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { createTestLog, startTestService } from '../support/service.ts';
import { openTransaction } from '../support/transaction.ts';

const all = (await readdir(new URL('../../migrations', import.meta.url)))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length))
  .toSorted((a, b) => (a < b ? -1 : 1));

/** As a later version of the program would leave it. */
const addNewer = (database: TestDatabase) =>
  database.query(`insert into kysely_migration (name, timestamp) values ('9999_newer', now()::text)`);

describe('migrations', () => {
  test('an empty database gets them all, in order, and the second time none', async () => {
    await using database = await createTestDatabase({ empty: true });

    expect(await migrate(database.url)).toEqual(all);
    expect(await migrate(database.url)).toEqual([]);
    await checkSchema(database.url);
  });

  test.skipIf(IS_SHORT_RUN)('three replicas that migrate at once run each migration once', async () => {
    for (let round = 0; round < 3; round++) {
      await using database = await createTestDatabase({ empty: true });

      const ran = await Promise.all([1, 2, 3].map(() => migrate(database.url)));

      expect(ran.flat()).toEqual(all);
      expect(await database.query('select name from kysely_migration order by name')).toEqual(
        all.map((name) => ({ name })),
      );
    }
  });

  test('a schema that is newer than the program is refused and left as it is', async () => {
    await using database = await createTestDatabase();
    await addNewer(database);
    const before = await dumpSchema(database);

    for (const attempt of [migrate, checkSchema]) {
      await expect(attempt(database.url)).rejects.toMatchObject({
        name: 'SchemaError',
        code: 'schema_newer',
        message: 'the database has 9999_newer, which this program does not know: run a newer Tallyhook',
      });
    }
    expect(await dumpSchema(database)).toBe(before);
  });

  test('a database from before the first release is refused with what to do, and left as it is', async () => {
    await using database = await createTestDatabase({ empty: true });
    await database.query('create table kysely_migration (name text, timestamp text)');
    await database.query(`insert into kysely_migration values ('0001-ledger', ''), ('0015-unanswered', '')`);

    for (const attempt of [migrate, checkSchema]) {
      await expect(attempt(database.url)).rejects.toMatchObject({
        name: 'SchemaError',
        code: 'schema_unreleased',
        message: expect.stringMatching(/before its first release.*begin with an empty one/),
      });
    }
    expect(await database.query(`select to_regclass('events') as events`)).toEqual([{ events: null }]);
  });

  test.skipIf(IS_SHORT_RUN)('the first migration can be undone, and run again', async () => {
    await using database = await createTestDatabase({ empty: true });
    await migrate(database.url);
    const schema = await dumpSchema(database);

    await migrateTo(database, NO_MIGRATIONS);
    expect(await dumpSchema(database)).toBe('\n');
    expect(await migrate(database.url)).toEqual(all);
    expect(await dumpSchema(database)).toBe(schema);
  });

  test.skipIf(IS_SHORT_RUN)('a migration that fails is undone, and said to have failed', async () => {
    await using database = await createTestDatabase({ empty: true });
    await database.query('create table outbox_held (in_the_way int)');

    await expect(migrate(database.url)).rejects.toMatchObject({
      code: 'migration_failed',
      message: `migration ${all[0]} failed and was undone`,
    });

    expect(await database.query(`select to_regclass('events') as events`)).toEqual([{ events: null }]);
    await database.query('drop table outbox_held');
    expect(await migrate(database.url)).toEqual(all);
  });
});

describe('starting', () => {
  test.skipIf(IS_SHORT_RUN)(
    'with MIGRATE_ON_START an empty database is enough, also for three at once',
    async () => {
      await using database = await createTestDatabase({ empty: true });
      const env = { MIGRATE_ON_START: 'true' };
      await using stack = new AsyncDisposableStack();
      const replicas = await Promise.all(
        [1, 2, 3].map(async () => stack.use(await startTestService({ database, env }))),
      );

      for (const replica of replicas) {
        expect(await deliver(replica.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
      }
    },
  );

  test('without it, an older schema is refused and the message says what to do', async () => {
    await using database = await createTestDatabase({ empty: true });

    await expect(startTestService({ database })).rejects.toMatchObject({
      name: 'SchemaError',
      code: 'schema_older',
      message: expect.stringMatching(/tallyhook migrate.*MIGRATE_ON_START/),
    });
    expect(await database.query(`select to_regclass('events') as events`)).toEqual([{ events: null }]);
  });

  test.for(['true', 'false'])(
    'a newer schema is refused with MIGRATE_ON_START=%s',
    async (migrateOnStart) => {
      await using database = await createTestDatabase();
      await addNewer(database);

      await expect(
        startTestService({ database, env: { MIGRATE_ON_START: migrateOnStart } }),
      ).rejects.toMatchObject({ name: 'SchemaError', code: 'schema_newer' });
    },
  );

  test('what was started is taken down again when a later step fails', async () => {
    await using database = await createTestDatabase({ empty: true });

    await startTestService({ database }).catch(() => {});

    // A server process ends after its connection, and autovacuum has some of its own.
    await waitFor(async () =>
      expect(
        await database.query(
          `select from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
        ),
      ).toEqual([]),
    );
  });

  test('a port that is taken is an error', async () => {
    await using relay = await startTestService();

    await expect(
      startTestService({ database: relay.database, env: { PORT: String(relay.service.port) } }),
    ).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test('a Postgres that is not there yet is waited for', async () => {
    await using database = await createTestDatabase();
    await using proxy = await startProxy(database.url, { defaultPort: 5432 });
    proxy.refuse();

    const testLog = createTestLog();
    const starting = startTestService({ database, env: { DATABASE_URL: proxy.url }, testLog });
    // Other connections are tried, too: the log says when the one that waits was.
    await expect
      .poll(() => JSON.stringify(testLog.lines), { timeout: patience(15_000) })
      .toContain('Postgres is not ready, trying again');
    proxy.heal();

    await using relay = await starting;
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  });

  test.skipIf(IS_SHORT_RUN)('a Postgres that goes away in a migration is waited for, too', async () => {
    await using database = await createTestDatabase({ empty: true });
    await using other = await openTransaction(database);
    await other.query(`select pg_advisory_xact_lock(3853314791062309107)`); // Kysely's, of the migrations

    const testLog = createTestLog();
    const starting = startTestService({ database, env: { MIGRATE_ON_START: 'true' }, testLog });
    await expect
      .poll(() => lockWaits(database), { timeout: patience(15_000) })
      .toEqual([{ kind: 'advisory' }]);
    await database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'tallyhook migrate'`,
    );
    await expect
      .poll(() => testLog.lines, { timeout: patience(15_000) })
      .toContainEqual(
        expect.objectContaining({
          msg: 'Postgres is not ready, trying again',
          err: expect.objectContaining({ message: 'the migrations could not begin' }),
        }),
      );
    await other.rollback();

    await using relay = await starting;
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  });

  test.skipIf(IS_SHORT_RUN)(
    'somebody who reads old deliveries for long keeps no service from starting',
    async () => {
      await using database = await createTestDatabase();
      await database.query(
        `create table deliveries_20200101 partition of deliveries for values from ('2020-01-01 00:00:00+00') to ('2020-01-02 00:00:00+00')`,
      );
      await using reader = await openTransaction(database);
      await reader.query('select count(*) from deliveries');

      await using relay = await startTestService({ database });
      expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
      await reader.rollback();
    },
  );

  test('partitions are there when the first delivery comes, and old ones go soon after', async () => {
    await using database = await createTestDatabase();
    await database.query(
      `create table deliveries_20200101 partition of deliveries for values from ('2020-01-01 00:00:00+00') to ('2020-01-02 00:00:00+00')`,
    );
    await using relay = await startTestService({ database });

    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
    await expect
      .poll(() => database.query(`select to_regclass('deliveries_20200101') as old`))
      .toEqual([{ old: null }]);
  });
});

test('stop() is safe to call twice, answers what is under way, and takes nothing afterwards', async () => {
  await using relay = await startTestService();
  const underWay = Array.from({ length: 50 }, () => deliver(relay.webhooks, completed(newJobId())));
  await Promise.race(underWay);

  await Promise.all([relay.service.stop(), relay.service.stop()]);

  const settled = await Promise.allSettled(underWay);
  const statuses = settled.map((result) => (result.status === 'fulfilled' ? result.value.status : 0));
  const rows = await relay.database.query('select from events');
  expect(rows).toHaveLength(statuses.filter((status) => status === 202).length);
  await expect(deliver(relay.webhooks, completed(newJobId()))).rejects.toThrow('fetch failed');
});
