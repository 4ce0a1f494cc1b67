// A rollout: a newer program has migrated, and replicas of ours, now the older one, start again. A newer program is ours with
// one or two migrations more.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { describe, expect, test } from 'vitest';
import { checkSchema, migrate } from '../../../src/ledger/schema/migrate.ts';
import { migrations, programWith } from '../../support/migrations.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { lockWaits } from '../../support/ledger.ts';
import { createRoles } from '../../support/roles.ts';
import { dumpSchema } from '../../support/schema-dump.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';

const OURS = Object.keys(migrations).toSorted().at(-1) ?? '';
const [NEXT, LATER] = ['9998-next', '9999-later'];

/** A migration on which programs from `oldest` on may run. */
const migration = (name: string, oldest: string): Record<string, Migration> => ({
  [name]: {
    up: async (db: Kysely<unknown>) => {
      await sql`create table ${sql.table(name)} ()`.execute(db);
      await sql`insert into schema_requirements values (${name}, ${oldest})`.execute(db);
    },
  },
});

const forUs = programWith(migration(NEXT, OURS));

/** What a newer program leaves behind when it has migrated. */
async function addNext(database: TestDatabase): Promise<void> {
  await database.query(`insert into kysely_migration values ('${NEXT}', now()::text)`);
  await database.query(`insert into schema_requirements values ('${NEXT}', '${OURS}')`);
}

describe('on a newer schema', () => {
  test('a program that may run there is let in, and its migrate changes nothing', async () => {
    await using database = await createTestDatabase();
    expect(await migrate(database.url, undefined, forUs)).toEqual([NEXT]);
    const before = await dumpSchema(database);

    expect(await migrate(database.url)).toEqual([]);
    expect(await checkSchema(database.url)).toEqual([NEXT]);

    expect(await checkSchema(database.url, forUs)).toEqual([]);
    expect(await dumpSchema(database)).toBe(before);
  });

  test('a program is refused by each migration that is too new for it, and by no other', async () => {
    await using database = await createTestDatabase();
    const newest = programWith({ ...migration(NEXT, OURS), ...migration(LATER, NEXT) });
    expect(await migrate(database.url, undefined, newest)).toEqual([NEXT, LATER]);
    const before = await dumpSchema(database);

    expect(await checkSchema(database.url, forUs)).toEqual([LATER]);
    for (const attempt of [migrate, checkSchema]) {
      await expect(attempt(database.url)).rejects.toMatchObject({
        code: 'schema_newer',
        message: `the database has ${LATER}, which this program does not know: run a newer Tallyhook`,
      });
    }
    expect(await dumpSchema(database)).toBe(before);
  });

  test('a program with a migration that the newer one lacks is refused', async () => {
    await using database = await createTestDatabase();
    await migrate(database.url, undefined, forUs);
    const ofAnotherBranch = programWith(migration('9997-branch', OURS));

    await expect(checkSchema(database.url, ofAnotherBranch)).rejects.toMatchObject({ code: 'schema_newer' });
    await expect(migrate(database.url, undefined, ofAnotherBranch)).rejects.toMatchObject({
      code: 'schema_newer',
    });
  });
});

describe('with a running role of its own', () => {
  test('an older replica that restarts says so in one line, works, and takes no right from the newer ones', async () => {
    await using roles = await createRoles();
    const { database, running, migrating } = roles;
    await migrate(running.url, migrating.url, forUs);
    await database.query(`grant delete on jobs to ${running.name}`); // as a newer program may need it

    for (const env of [{}, { MIGRATE_ON_START: 'true', MIGRATION_DATABASE_URL: migrating.url }]) {
      await using relay = await startTestService({ database: { ...database, url: running.url }, env });
      expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
      expect(relay.log.filter((line) => JSON.stringify(line).includes(NEXT))).toEqual([
        expect.objectContaining({
          msg: 'the schema is newer than this program, which may still run on it',
          migrations: [NEXT],
        }),
      ]);
    }
    expect(await mayDelete(database, running.name)).toBe(true);
  });

  test.for([
    { lock: 'of the migrations', key: '3853314791062309107' }, // Kysely's
    { lock: 'of the grants', key: '7461195' },
  ])(
    'a newer program that migrates while ours waits for the lock $lock keeps its rights',
    async ({ key }) => {
      await using roles = await createRoles();
      const { database, running, migrating } = roles;
      await migrate(running.url, migrating.url);
      await using newer = await openSession(database);
      await newer.query(`select pg_advisory_lock(${key})`);

      const older = migrate(running.url, migrating.url);
      await expect.poll(() => lockWaits(database)).toEqual([{ kind: 'advisory' }]);
      await addNext(database);
      await database.query(`grant delete on jobs to ${running.name}`);
      await newer.query(`select pg_advisory_unlock(${key})`);

      expect(await older).toEqual([]);
      expect(await mayDelete(database, running.name)).toBe(true);
    },
  );
});

async function mayDelete(database: TestDatabase, role: string): Promise<boolean | undefined> {
  const [row] = await database.query<{ may: boolean }>(
    `select has_table_privilege($1, 'jobs', 'delete') as may`,
    [role],
  );
  return row?.may;
}
