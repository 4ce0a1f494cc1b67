// What migrations after the first release keep to, shown by one more: its index is built before its transaction, while deliveries are
// recorded; its waits for locks are short; and it states the oldest program that may run on it.

import { type Kysely, sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkSchema, migrate } from '../../../src/ledger/schema/migrate.ts';
import type { AheadMigration } from '../../../src/ledger/schema/migrations.ts';
import { makePartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { migrations, programWith } from '../../support/migrations.ts';
import { patience } from '../../support/patience.ts';
import { eventRecord } from '../../support/records.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { createRoles } from '../../support/roles.ts';
import { dumpSchema } from '../../support/schema-dump.ts';
import { completed, newJobId } from '../../support/sender.ts';
import { openTransaction } from '../../support/transaction.ts';

const OURS = Object.keys(migrations).toSorted();
const SECOND = '9990-of-these-tests';

const INDEX = sql`if not exists jobs_of_these_tests on jobs (job_id)`;

const second: Required<Pick<AheadMigration, 'ahead' | 'up'>> = {
  ahead: async (session) => {
    // What a run that was ended has left.
    const { rows } = await sql`
      select from pg_index where indexrelid = to_regclass('jobs_of_these_tests') and not indisvalid`.execute(
      session,
    );
    if (rows.length > 0) await sql`drop index concurrently jobs_of_these_tests`.execute(session);
    await sql`create index concurrently ${INDEX}`.execute(session);
  },
  up: async (db) => {
    await sql`set local lock_timeout = '3s'`.execute(db);
    await sql`create index ${INDEX}`.execute(db);
    await sql`insert into schema_requirements values (${SECOND}, ${OURS.at(-1)})`.execute(db);
  },
};

const program = (ours: Partial<AheadMigration> = {}) => programWith({ [SECOND]: { ...second, ...ours } });
const fail = () => Promise.reject(new Error('it fails'));
const migrateTo = ({ url }: Pick<TestDatabase, 'url'>, ours?: Partial<AheadMigration>) =>
  migrate(url, undefined, program(ours));

/** Each wait ends with its fact. */
const WAIT = { timeout: patience(15_000) };

/** As a write that has not ended: no index can be built until it ends. */
async function openWrite(database: TestDatabase) {
  const write = await openTransaction(database);
  await write.query('lock table jobs in row exclusive mode');
  return write;
}

const statementsOf = (database: TestDatabase, begin: string): Promise<unknown[]> =>
  database.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
     and application_name = 'tallyhook migrate' and ltrim(query, E' \\n') like $1 || '%'`,
    [begin],
  );
const isBuilding = async (database: TestDatabase) =>
  (await statementsOf(database, 'create index concurrently')).length > 0;

/** Ends the connections of migrations, as a restart of Postgres does. */
const endMigrating = (database: TestDatabase): Promise<unknown[]> =>
  database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'tallyhook migrate'`,
  );

const schemaOf = async (database: TestDatabase) => ({
  dump: await dumpSchema(database),
  invalid: await database.query('select from pg_index where not indisvalid'),
});

/** What all migrations make of an empty database, in one transaction. */
let wanted: unknown;
let ranTogether: readonly string[] = [];

beforeAll(async () => {
  await using database = await createTestDatabase({ empty: true });
  ranTogether = await migrateTo(database, { ahead: fail });
  wanted = await schemaOf(database);
});

test('deliveries are recorded while the index is being built, and the program of before may run on', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await using write = await openWrite(database);

  const migrated = migrateTo(database);
  await expect.poll(() => isBuilding(database), WAIT).toBe(true);
  for (let left = 20; left > 0; left -= 1) {
    const recorded = await recordDeliveries(connection, [eventRecord(completed(newJobId()))]);
    expect(recorded).toMatchObject([{ outcome: 'accepted' }]);
  }
  expect(await isBuilding(database)).toBe(true);
  await write.rollback();

  expect(await migrated).toEqual([SECOND]);
  expect(await schemaOf(database)).toEqual(wanted);
  expect(await checkSchema(database.url)).toEqual([SECOND]);
});

test('with an earlier one missing, too, all is one transaction: a failure leaves nothing', async () => {
  expect(ranTogether).toEqual([...OURS, SECOND]);
  await using database = await createTestDatabase({ empty: true });
  await expect(migrateTo(database, { ahead: fail, up: fail })).rejects.toMatchObject({
    code: 'migration_failed',
    message: `migration ${SECOND} failed and was undone`,
  });
  expect(await database.query(`select to_regclass('events') as events`)).toEqual([{ events: null }]);
});

test('a failure in the transaction leaves the schema of before and what was built ahead', async () => {
  await using database = await createTestDatabase();
  await expect(migrateTo(database, { up: fail })).rejects.toThrow(SECOND);
  expect(await checkSchema(database.url)).toEqual([]);
  expect(await migrateTo(database, { ahead: () => Promise.resolve() })).toEqual([SECOND]);
  expect(await schemaOf(database)).toEqual(wanted);
});

describe('a migration that ends in the middle', () => {
  test('is finished by the next one, if its connection is lost', async () => {
    await using database = await createTestDatabase();
    const write = await openWrite(database);
    const lost = migrateTo(database).catch((error: unknown) => error);
    await expect.poll(() => isBuilding(database), WAIT).toBe(true);
    await endMigrating(database);
    expect(await lost).toMatchObject({
      code: 'migration_failed',
      message: `migration ${SECOND} was not finished: run it again`,
    });
    await write.rollback();

    expect(await migrateTo(database)).toEqual([SECOND]);
    expect(await schemaOf(database)).toEqual(wanted);
  });

  test('says so, also if the next connection is lost, too', async () => {
    await using database = await createTestDatabase();
    await using reader = await openTransaction(database);
    const ahead = async (session: Kysely<unknown>) => {
      await reader.query('lock table kysely_migration in access exclusive mode');
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(session);
    };
    const lost = migrateTo(database, { ahead }).catch((error: unknown) => error);
    // It reads whether a newer program has migrated.
    await expect.poll(() => statementsOf(database, 'select name'), WAIT).toHaveLength(1);
    await endMigrating(database);
    expect(await lost).toMatchObject({ message: `migration ${SECOND} was not finished: run it again` });
  });
});

test('three replicas that migrate at once build and run it once, one after another', async () => {
  await using database = await createTestDatabase();
  let atOnce = 0;
  const ahead = async (session: Kysely<unknown>) => {
    atOnce += 1;
    expect(atOnce).toBe(1);
    await second.ahead(session);
    atOnce -= 1;
  };
  const ran = await Promise.all([1, 2, 3].map(() => migrateTo(database, { ahead })));
  expect(ran.flat()).toEqual([SECOND]);
  expect(await schemaOf(database)).toEqual(wanted);
});

test('a role that owns the tables and is no superuser migrates, and grants the running role its rights', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(migrating.url);

  expect(await migrate(running.url, migrating.url, program())).toEqual([SECOND]);
  await using connection = connectTestDatabase({ ...database, url: running.url });
  await makePartitions(connection);
  const recorded = await recordDeliveries(connection, [eventRecord(completed(newJobId()))]);
  expect(recorded).toMatchObject([{ outcome: 'accepted' }]);
});
