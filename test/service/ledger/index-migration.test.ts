// The migration that exchanges most indexes (0013), on a ledger that is in use: its indexes are built before its transaction, while
// deliveries are recorded.

import { readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { describe, expect, test } from 'vitest';
import { migrate } from '../../../src/ledger/migrate.ts';
import { makePartitions } from '../../../src/ledger/partitions.ts';
import { recordDeliveries } from '../../../src/ledger/record.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { partitionsOf } from '../../support/ledger.ts';
import { migrateTo, migrations } from '../../support/migrations.ts';
import { patience } from '../../support/patience.ts';
import { eventRecord } from '../../support/records.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { startProcess } from '../../support/replica.ts';
import { createRoles } from '../../support/roles.ts';
import { dumpSchema } from '../../support/schema-dump.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { openTransaction } from '../../support/transaction.ts';

const [BEFORE, OURS] = ['0012-fewer-index-entries', '0013-smaller-indexes'];
const upTo = (last: string) => ({
  getMigrations: async () => Object.fromEntries(Object.entries(migrations).filter(([name]) => name <= last)),
});
/** The migrations that this file is about. Later ones have tests of their own. */
const toOurs = (database: Pick<TestDatabase, 'url'>) => migrate(database.url, undefined, upTo(OURS));

const DELIVERIES = 200;
/** On a busy machine. Each wait ends with its fact. */
const WAIT = { timeout: patience(15_000) };

/** As the program before left it, with some deliveries. */
async function createOldDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ empty: true });
  await migrate(database.url, undefined, upTo(BEFORE));
  await using connection = connectTestDatabase(database);
  await makePartitions(connection);
  for (let left = DELIVERIES; left > 0; left -= 1) {
    await recordDeliveries(connection, [eventRecord(completed(newJobId()))]);
  }
  return database;
}

/** Locks the present day as a write does that has not ended: an index of that day cannot be built until it ends. */
async function openWrite(database: TestDatabase) {
  const write = await openTransaction(database);
  await write.query(`lock table ${await presentDay(database)} in row exclusive mode`);
  return write;
}

async function presentDay(database: TestDatabase): Promise<string> {
  const [day] = await database.query<{ name: string }>(
    'select tableoid::regclass::text as name from deliveries limit 1',
  );
  return day?.name ?? '';
}

/** The statements of migrations that wait for others, and how each begins. */
const waitsOf = (database: TestDatabase, begin: string): Promise<{ query: string }[]> =>
  database.query(
    `select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
     and application_name = 'tallyhook migrate' and ltrim(query, E' \\n') like $1 || '%'`,
    [begin],
  );
/** A build also waits for statements that have just begun, on any table, but these end. */
async function isBuilding(database: TestDatabase, day?: string): Promise<boolean> {
  const name = day ?? (await presentDay(database));
  const waits = await waitsOf(database, 'create index concurrently');
  return waits.some(({ query }) => query.includes(`"${name}"`));
}

/** Ends the connections of migrations, as a restart of Postgres does. */
const endMigrating = (database: TestDatabase): Promise<unknown[]> =>
  database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'tallyhook migrate'`,
  );

/** Each index on each partition has its parent, and is valid. */
const unfinished = (database: TestDatabase): Promise<unknown[]> =>
  database.query(
    `select x.indexrelid::regclass::text as index from pg_index x join pg_class c on c.oid = x.indrelid
     where c.relnamespace = 'public'::regnamespace and (not x.indisvalid or c.relispartition and not exists (
       select from pg_inherits i where i.inhrelid = x.indexrelid))`,
  );

/** What the migrations make of an empty database. */
async function schemaOf(last: string): Promise<string> {
  await using database = await createTestDatabase({ empty: true });
  await migrate(database.url, undefined, upTo(last));
  return await dumpSchema(database);
}

test('deliveries are acknowledged while an index is being built, and days come and go', async () => {
  await using database = await createTestDatabase();
  await using service = await startTestService({ database });
  const send = async () => expect((await deliver(service.webhooks, completed(newJobId()))).status).toBe(202);
  await send();
  await migrateTo(database, BEFORE); // its statements are those of the program before
  await using write = await openWrite(database);

  const migrated = toOurs(database);
  await expect.poll(() => isBuilding(database), WAIT).toBe(true);
  for (let left = DELIVERIES; left > 0; left -= 1) await send();
  await database.query(`select make_partition('deliveries', (now() at time zone 'UTC')::date + 20)`);
  const days = await partitionsOf(database, 'deliveries');
  await database.query(`drop table ${days.at(-2)}`);
  expect(await isBuilding(database)).toBe(true);
  await write.rollback();

  expect(await migrated).toEqual([OURS]);
  await send();
  expect(await unfinished(database)).toEqual([]);
  expect(await dumpSchema(database)).toBe(await schemaOf(OURS));
  const [row] = await database.query<{ count: number }>('select count(*)::int as count from deliveries');
  expect(row?.count).toBe(DELIVERIES + 2);
});

test('a day that is dropped before its index can be built is left out', async () => {
  await using database = await createOldDatabase();
  const [oldest = ''] = await partitionsOf(database, 'deliveries');
  await using drop = await openTransaction(database);
  await drop.query(`lock table ${oldest} in access exclusive mode`);

  const migrated = toOurs(database);
  await expect.poll(() => isBuilding(database, oldest), WAIT).toBe(true);
  await drop.query(`drop table ${oldest}`);
  await drop.query('commit');

  expect(await migrated).toEqual([OURS]);
  expect(await partitionsOf(database, 'deliveries')).not.toContain(oldest);
  expect(await unfinished(database)).toEqual([]);
});

test('while a long read keeps the indexes from being exchanged, deliveries are recorded', async () => {
  await using database = await createOldDatabase();
  await using connection = connectTestDatabase(database);
  await using read = await openTransaction(database);
  await read.query('select from deliveries limit 1');

  const migrated = toOurs(database);
  await expect.poll(() => waitsOf(database, 'lock table'), { ...WAIT, interval: 10 }).toHaveLength(1);
  // Each of them would be given up if it had to wait for the read.
  for (let left = DELIVERIES; left > 0; left -= 1) {
    const recorded = await recordDeliveries(connection, [eventRecord(completed(newJobId()))]);
    expect(recorded).toMatchObject([{ outcome: 'accepted' }]);
  }
  await read.rollback();

  expect(await migrated).toEqual([OURS]);
  expect(await unfinished(database)).toEqual([]);
});

const fail = () => Promise.reject(new Error('it fails'));

/** What ours does ahead of its transaction is this instead. */
const withAhead = (ahead: (session: Kysely<unknown>) => Promise<void>) => ({
  getMigrations: async () => ({
    ...(await upTo(OURS).getMigrations()),
    [OURS]: { ...migrations[OURS], ahead } as Migration,
  }),
});

/** Ours fails in its transaction. What it does ahead of that is done. */
const failing = {
  getMigrations: async () => ({
    ...(await upTo(BEFORE).getMigrations()),
    [OURS]: { ...migrations[OURS], up: fail },
  }),
};

describe('with earlier migrations missing, too, all is one transaction', () => {
  const EARLIER = '0009-oldest-program';

  test('in which the indexes are built', async () => {
    await using database = await createTestDatabase({ empty: true });
    await migrate(database.url, undefined, upTo(EARLIER));
    const ran = await migrate(database.url, undefined, withAhead(fail));
    expect(ran).toContain(BEFORE);
    expect(ran.at(-1)).toBe(OURS);
    expect(await dumpSchema(database)).toBe(await schemaOf(OURS));
  });

  test('so that a failure leaves the schema that old replicas run on', async () => {
    await using database = await createTestDatabase({ empty: true });
    await migrate(database.url, undefined, upTo(EARLIER));
    const message = `migration ${OURS} failed and was undone`;
    await expect(migrate(database.url, undefined, failing)).rejects.toMatchObject({ message });
    expect(await dumpSchema(database)).toBe(await schemaOf(EARLIER));
  });
});

test('who decides against it gets rid of the new indexes as the document says', async () => {
  await using database = await createOldDatabase();
  await expect(migrate(database.url, undefined, failing)).rejects.toThrow(OURS);
  // One that was built, and not attached yet.
  const [oldest] = await partitionsOf(database, 'deliveries');
  await database.query(`create index on ${oldest} (source, received_at)`);
  expect(await dumpSchema(database)).not.toBe(await schemaOf(BEFORE));

  const page = await readFile(new URL('../../../docs/operators.md', import.meta.url), 'utf8');
  const listed = /^(select format\('drop index[^`]+)\\gexec$/m.exec(page)?.[1] ?? '';
  const drops = await database.query<{ statement: string }>(listed);
  expect(drops).toHaveLength(12 + 1);
  for (const { statement } of drops) await database.query(statement);
  expect(await dumpSchema(database)).toBe(await schemaOf(BEFORE));
  expect(await unfinished(database)).toEqual([]);
});

describe('a migration that ends in the middle is finished by the next one', () => {
  test('if its connection is lost', async () => {
    await using database = await createOldDatabase();
    const write = await openWrite(database);
    const lost = toOurs(database).catch((error: unknown) => error);
    await expect.poll(() => isBuilding(database), WAIT).toBe(true);
    await endMigrating(database);
    expect(await lost).toMatchObject({
      code: 'migration_failed',
      message: `migration ${OURS} was not finished: run it again`,
    });
    await write.rollback();
    expect(await unfinished(database)).not.toEqual([]);

    expect(await toOurs(database)).toEqual([OURS]);
    expect(await unfinished(database)).toEqual([]);
    expect(await dumpSchema(database)).toBe(await schemaOf(OURS));
  });

  test('and says so, also if the next connection is lost, too', async () => {
    await using database = await createOldDatabase();
    await using reader = await openTransaction(database);
    const losing = async (session: Kysely<unknown>) => {
      await reader.query('lock table kysely_migration in access exclusive mode');
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(session);
    };
    const lost = migrate(database.url, undefined, withAhead(losing)).catch((error: unknown) => error);
    // It reads whether a newer program has migrated.
    await expect.poll(() => waitsOf(database, 'select name'), WAIT).toHaveLength(1);
    await endMigrating(database);
    expect(await lost).toMatchObject({ message: `migration ${OURS} was not finished: run it again` });
  });

  test('if its process is killed, also while Postgres still builds for it', async () => {
    await using database = await createOldDatabase();
    const write = await openWrite(database);
    await using command = startProcess(['migrate'], { env: { DATABASE_URL: database.url } });
    await expect.poll(() => isBuilding(database), WAIT).toBe(true);
    command.child.kill('SIGKILL');
    await command.exited;

    const migrated = toOurs(database);
    await expect.poll(() => connectionsOf(database), WAIT).toBeGreaterThan(1);
    await expect.poll(() => isBuilding(database), WAIT).toBe(true);
    await write.rollback();

    expect(await migrated).toEqual([OURS]);
    expect(await unfinished(database)).toEqual([]);
    expect(await dumpSchema(database)).toBe(await schemaOf(OURS));
  });
});

async function connectionsOf(database: TestDatabase): Promise<number> {
  const rows = await database.query(
    `select from pg_stat_activity where datname = current_database() and application_name = 'tallyhook migrate'`,
  );
  return rows.length;
}

test('three replicas that migrate a ledger at once run it once', async () => {
  await using database = await createOldDatabase();
  const ran = await Promise.all([1, 2, 3].map(() => toOurs(database)));
  expect(ran.flat()).toEqual([OURS]);
  expect(await unfinished(database)).toEqual([]);
});

test('a role that owns the tables and is no superuser migrates', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(migrating.url, undefined, upTo(BEFORE));

  // With all later ones: the rights that are granted then are those of the newest schema.
  const missing = Object.keys(migrations).filter((name) => name > BEFORE);
  expect(missing).toContain(OURS);
  expect(await migrate(running.url, migrating.url)).toEqual(missing);
  await using connection = connectTestDatabase({ ...database, url: running.url });
  await makePartitions(connection);
  expect(await unfinished(database)).toEqual([]);
  const recorded = await recordDeliveries(connection, [eventRecord(completed(newJobId()))]);
  expect(recorded).toMatchObject([{ outcome: 'accepted' }]);
});

test('it can be undone, and run again in one transaction', async () => {
  await using database = await createOldDatabase();
  await toOurs(database);
  await migrateTo(database, BEFORE);
  expect(await dumpSchema(database)).toBe(await schemaOf(BEFORE));
  expect(await unfinished(database)).toEqual([]);

  await migrateTo(database, OURS);
  expect(await dumpSchema(database)).toBe(await schemaOf(OURS));
  expect(await unfinished(database)).toEqual([]);
});
