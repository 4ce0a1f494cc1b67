// `tallyhook migrate --plan`: what would run, what it locks, the oldest program that may run afterwards, and the rights that would
// change. Later programs are ours with migrations of these tests, whose effects are measured as those of ours are.

import { type Kysely, sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { EFFECTS, type Effects } from '../../../src/ledger/schema/effects.ts';
import { migrate } from '../../../src/ledger/schema/migrate.ts';
import type { AheadMigration } from '../../../src/ledger/schema/migrations.ts';
import { planMigration } from '../../../src/ledger/schema/plan.ts';
import { cliWith, runCommand } from '../../support/cli.ts';
import { planAsText } from '../../../src/cli/migration-plan.ts';
import { withoutColours } from '../../../src/terminal/io.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { measureEffects } from '../../support/migration-effects.ts';
import { migrations, programWith } from '../../support/migrations.ts';
import { createRoles } from '../../support/roles.ts';
import { dumpSchema } from '../../support/schema-dump.ts';
import { openTransaction } from '../../support/transaction.ts';

const TERMINAL = { paint: withoutColours, width: 120 };

const OURS = Object.keys(migrations).toSorted().at(-1) ?? '';

const statement = (name: string, oldest: string, ...texts: string[]): Record<string, AheadMigration> => ({
  [name]: {
    up: async (db: Kysely<unknown>) => {
      for (const text of texts) await sql.raw(text).execute(db);
      await sql`insert into schema_requirements values (${name}, ${oldest})`.execute(db);
    },
  },
});

const INDEX = sql`if not exists jobs_of_these_tests on jobs (job_id)`;

const AHEAD: Record<string, AheadMigration> = {
  '9990-ahead': {
    ahead: async (session) => void (await sql`create index concurrently ${INDEX}`.execute(session)),
    up: async (db) => {
      await sql`set local lock_timeout = '3s'`.execute(db);
      await sql`create index ${INDEX}`.execute(db);
      await sql`insert into schema_requirements values ('9990-ahead', ${OURS})`.execute(db);
    },
  },
};

const EARLIER = statement('9980-earlier', OURS, 'create table earlier ()');

const LIGHT = statement(
  '9991-light',
  OURS,
  `set local lock_timeout = '1500ms'`,
  'alter table deliveries add column more text',
  'create table notes (replay uuid, note text)',
  'select count(*) from notes', // its own
);

const HEAVY = statement(
  '9992-heavy',
  '9991-light',
  'alter table refusals alter column refused type numeric',
  'alter table events add constraint sure check (repeats >= 0)',
  'create index on publications (result)',
  'create index on notes (note)',
  `update relay_lease set holder = gen_random_uuid()`,
  'alter table notes add foreign key (replay) references replays',
  'select id from tokens',
);

const program = (...added: Record<string, AheadMigration>[]) => {
  const more: Record<string, AheadMigration> = Object.assign({}, ...added);
  return { migrations: programWith(more), effects: measured };
};
const LATER = [AHEAD, LIGHT, HEAVY];

let measured: Readonly<Record<string, Effects>> = {};

beforeAll(async () => {
  const all = programWith(Object.assign({}, EARLIER, ...LATER));
  measured = { ...EFFECTS, ...(await measureEffects(all, (name) => name > OURS)) };
});

describe('what is measured', () => {
  test('is the strongest lock on each table that was there before, and what is done under it', () => {
    expect(measured).toEqual({
      ...EFFECTS,
      '9980-earlier': { oldestProgram: OURS, lockTimeout: '0', locks: [] },
      '9990-ahead': {
        oldestProgram: OURS,
        lockTimeout: '3s',
        ahead: [{ table: 'jobs', mode: 'share update exclusive', work: 'builds an index' }],
        locks: [{ table: 'jobs', mode: 'share', work: 'short' }],
        withoutAhead: [{ table: 'jobs', mode: 'share', work: 'builds an index' }],
      },
      '9991-light': {
        oldestProgram: OURS,
        lockTimeout: '1500ms',
        locks: [{ table: 'deliveries', mode: 'access exclusive', work: 'short' }],
      },
      '9992-heavy': {
        oldestProgram: '9991-light',
        lockTimeout: '0',
        locks: [
          { table: 'events', mode: 'access exclusive', work: 'scans the table' },
          { table: 'notes', mode: 'share row exclusive', work: 'builds an index' },
          { table: 'publications', mode: 'share', work: 'builds an index' },
          { table: 'refusals', mode: 'access exclusive', work: 'rewrites the table' },
          { table: 'relay_lease', mode: 'row exclusive', work: 'scans the table' },
          { table: 'replays', mode: 'share row exclusive', work: 'short' },
        ],
      },
    });
  });

  test('is there for each migration, with the oldest program that it states', async () => {
    await using database = await createTestDatabase();
    const stated = await database.query<{ migration: string; oldest: string }>(
      'select migration, oldest_program as oldest from schema_requirements order by 1',
    );
    expect(Object.entries(EFFECTS).map(([name, { oldestProgram }]) => [name, oldestProgram])).toEqual(
      stated.map(({ migration, oldest }) => [migration, oldest]),
    );
  });
});

/** All that a migration could have changed. */
const stateOf = async (database: TestDatabase) => ({
  dump: await dumpSchema(database),
  ran: await database.query('select * from kysely_migration'),
  rights: await database.query(
    `select relname, relacl::text from pg_class where relacl is not null order by 1`,
  ),
});

describe('a plan', () => {
  test('has what would run, in order, with its locks on the tables that are there, and changes nothing', async () => {
    await using database = await createTestDatabase();
    await database.query(
      `insert into refusals select now() + make_interval(mins => n), 'x' from generate_series(1, 1000) n`,
    );
    const before = await stateOf(database);

    const plan = await planMigration(database.url, undefined, program(...LATER));

    expect(plan).toMatchObject({ newer: [], oldestProgram: '9991-light', mayReplicasStay: false });
    expect(plan.pending.map(({ name }) => name)).toEqual(['9990-ahead', '9991-light', '9992-heavy']);
    expect(
      plan.pending.flatMap(({ name, locks }) =>
        locks.map(({ table, whoWaits, when }) => [name, table, whoWaits, when].join(', ')),
      ),
    ).toEqual([
      '9990-ahead, jobs, upkeep, before the transaction',
      '9990-ahead, jobs, writes, in the transaction',
      '9991-light, deliveries, reads and writes, in the transaction',
      // Not notes, which the same transaction makes.
      '9992-heavy, events, reads and writes, in the transaction',
      '9992-heavy, publications, writes, in the transaction',
      '9992-heavy, refusals, reads and writes, in the transaction',
      '9992-heavy, relay_lease, writes of the same rows, in the transaction',
      '9992-heavy, replays, writes, in the transaction',
    ]);
    const sizes = new Map(
      plan.pending.flatMap(({ locks }) => locks.map(({ table, bytes }) => [table, bytes])),
    );
    expect(sizes.get('refusals')).toBeGreaterThan(1_000 * 24);
    expect(await stateOf(database)).toEqual(before);
    // It tells what then comes.
    expect(await migrate(database.url, undefined, program(...LATER).migrations)).toEqual(
      plan.pending.map(({ name }) => name),
    );
  });

  test('has the heavier lock of a migration whose part ahead does not run, since another one comes before it', async () => {
    await using database = await createTestDatabase();
    const { pending, mayReplicasStay } = await planMigration(
      database.url,
      undefined,
      program(EARLIER, AHEAD),
    );
    expect(mayReplicasStay).toBe(true);
    expect(pending).toMatchObject([
      { name: '9980-earlier', locks: [] },
      { name: '9990-ahead', locks: [{ table: 'jobs', mode: 'share', work: 'builds an index' }] },
    ]);
  });

  test('goes by the newest migration that the database has, and not by the first', async () => {
    await using database = await createTestDatabase();
    await migrate(database.url, undefined, programWith(LIGHT));
    const { oldestProgram, mayReplicasStay } = await planMigration(
      database.url,
      undefined,
      program(LIGHT, HEAVY),
    );
    expect({ oldestProgram, mayReplicasStay }).toEqual({
      oldestProgram: '9991-light',
      mayReplicasStay: true,
    });
  });

  test('waits for no writer, and is there on a database that is read-only', async () => {
    await using database = await createTestDatabase();
    await database.query(`alter database ${database.name} set default_transaction_read_only = on`);
    await using writer = await openTransaction(database);
    await writer.query('set transaction read write');
    await writer.query('lock table jobs, events, deliveries, kysely_migration in exclusive mode');
    expect((await planMigration(database.url, undefined, program(LIGHT))).pending).toHaveLength(1);
  });

  test('on a terminal is a table and what follows from it', async () => {
    await using database = await createTestDatabase();
    const screen = async (...added: Record<string, AheadMigration>[]) =>
      planAsText(await planMigration(database.url, undefined, program(...added)), TERMINAL)
        // As large as this version of Postgres makes them.
        .replaceAll(/ *\d+\.\d KiB/g, ' # KiB');

    expect(await screen(AHEAD)).toMatchInlineSnapshot(`
      "1 migration would run, in one transaction:
      migration   locks  mode                    who waits  how long            size  when
      9990-ahead  jobs   share update exclusive  upkeep     builds an index # KiB  before the transaction
      9990-ahead  jobs   share                   writes     short # KiB  in the transaction
      in the transaction 9990-ahead waits for each lock for at most 3s, and is undone if that is too short
      the oldest program that may run afterwards is the one that knows 0003-clusters
      replicas that run now may go on, and restart"
    `);
    expect(await screen(LIGHT, HEAVY)).toMatchInlineSnapshot(`
      "2 migrations would run, in one transaction:
      migration   locks         mode                 who waits                how long                size  when
      9991-light  deliveries    access exclusive     reads and writes         short # KiB  in the transaction
      9992-heavy  events        access exclusive     reads and writes         scans the table # KiB  in the transaction
      9992-heavy  publications  share                writes                   builds an index # KiB  in the transaction
      9992-heavy  refusals      access exclusive     reads and writes         rewrites the table # KiB  in the transaction
      9992-heavy  relay_lease   row exclusive        writes of the same rows  scans the table # KiB  in the transaction
      9992-heavy  replays       share row exclusive  writes                   short # KiB  in the transaction
      in the transaction 9991-light waits for each lock for at most 1500ms, and is undone if that is too short
      in the transaction 9992-heavy waits for each lock without limit
      the oldest program that may run afterwards is the one that knows 9991-light
      replicas that run now have to be stopped first"
    `);
    expect(await screen(EARLIER)).toMatchInlineSnapshot(`
      "1 migration would run, in one transaction:
      migration     locks
      9980-earlier  nothing that is there now
      the oldest program that may run afterwards is the one that knows 0003-clusters
      replicas that run now may go on, and restart"
    `);
    expect(await screen()).toBe('the schema is up to date');
  });
});

describe('the command', () => {
  test('says of an empty database that all would run, and leaves it empty', async () => {
    await using database = await createTestDatabase({ empty: true });
    const cli = cliWith({ DATABASE_URL: database.url });

    expect(await cli.items('migrate', '--plan')).toEqual([
      {
        pending: Object.keys(migrations)
          .toSorted()
          .map((name) => ({ migration: name, lock_timeout: EFFECTS[name]?.lockTimeout, locks: [] })),
        newer: [],
        oldest_program: EFFECTS[OURS]?.oldestProgram,
        replicas_may_stay: true,
        may_migrate: true,
        obstacle: null,
        rights: null,
      },
    ]);
    expect(await database.query(`select from pg_class where relnamespace = 'public'::regnamespace`)).toEqual(
      [],
    );

    await migrate(database.url);
    expect(await cli.items('migrate', '--plan')).toMatchObject([{ pending: [], replicas_may_stay: true }]);
    expect(await cli.onTerminal(['migrate', '--plan'])).toEqual({
      code: 0,
      screen: 'the schema is up to date\n',
    });
  });

  test('is answered to a role that may read what has run, and nothing else', async () => {
    await using roles = await createRoles();
    const { database, migrating, running } = roles;
    await migrate(migrating.url);
    const cli = cliWith({ DATABASE_URL: running.url });
    expect(await cli.run('migrate', '--plan')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('permission denied for table kysely_migration'),
    });
    await database.query(`grant select on kysely_migration, schema_requirements to ${running.name}`);

    expect(await cli.items('migrate', '--plan')).toMatchObject([{ pending: [], rights: null }]);
    expect(await planMigration(running.url, undefined, program(LIGHT))).toMatchObject({
      pending: [{ name: '9991-light', locks: [{ table: 'deliveries' }] }],
    });
  });

  test('says why a role may not migrate, where migrate is refused', async () => {
    await using roles = await createRoles();
    const { database, migrating, running } = roles;
    const alone = cliWith({ DATABASE_URL: running.url });
    const both = cliWith({ DATABASE_URL: running.url, MIGRATION_DATABASE_URL: migrating.url });
    const mayNotCreate = `"${running.name}" may not migrate: it may not create in the schema "public"`;
    expect(await alone.items('migrate', '--plan')).toMatchObject([
      { may_migrate: false, obstacle: mayNotCreate },
    ]);
    const { code, screen } = await alone.onTerminal(['migrate', '--plan']);
    expect({ code, last: screen.trimEnd().split('\n').at(-1) }).toEqual({ code: 0, last: mayNotCreate });
    expect(await alone.run('migrate')).toMatchObject({ code: 78 });
    expect(await both.items('migrate', '--plan')).toMatchObject([{ may_migrate: true, obstacle: null }]);

    await migrate(running.url, migrating.url);
    const notOwner = `"${running.name}" may not migrate: the tables belong to "${migrating.name}"`;
    expect(await alone.items('migrate', '--plan')).toMatchObject([
      { pending: [], may_migrate: false, obstacle: notOwner },
    ]);
    expect(await alone.run('migrate')).toMatchObject({ code: 78 });

    await database.query(`alter schema public owner to current_user`);
    const mayNow = async (...added: Record<string, AheadMigration>[]) =>
      (await planMigration(running.url, migrating.url, program(...added))).obstacle;
    expect(await mayNow(LIGHT)).toBe(mayNotCreate.replace(running.name, migrating.name));
    expect(await mayNow()).toBeUndefined();
    expect(await migrate(migrating.url)).toEqual([]);
  });

  test('has the rights that migrate would give and take, and no others', async () => {
    await using roles = await createRoles();
    const { database, migrating, running } = roles;
    const cli = cliWith({ DATABASE_URL: running.url, MIGRATION_DATABASE_URL: migrating.url });
    const rights = async () => (await cli.items('migrate', '--plan')).map((plan) => plan['rights']);
    const first = await rights();
    expect(first).toMatchObject([{ role: running.name, revoked: [] }]);
    expect(JSON.stringify(first)).toContain('select, insert, update (repeats) on events');

    const none = [{ role: running.name, granted: [], revoked: [] }];
    await migrate(running.url, migrating.url);
    expect(await rights()).toEqual(none);
    expect(await cli.onTerminal(['migrate', '--plan'])).toEqual({
      code: 0,
      screen: `the schema is up to date\n"${running.name}" has the rights that it needs\n`,
    });

    await database.query(`
      revoke insert on jobs from ${running.name};
      revoke update (repeats) on events from ${running.name};
      revoke usage on sequence publications_id from ${running.name};
      revoke execute on function make_partition(text, date) from ${running.name};
      grant delete on events to ${running.name};
      grant update (body) on deliveries to ${running.name}`);
    expect(await rights()).toEqual([
      {
        role: running.name,
        granted: [
          'insert on jobs',
          'update (repeats) on events',
          'usage on sequence publications_id',
          'execute on function make_partition(text, date)',
        ],
        revoked: ['update (body) on deliveries', 'delete on events'],
      },
    ]);
    await migrate(running.url, migrating.url);
    expect(await rights()).toEqual(none);
  });

  test('is refused where migrate is, and says so of a newer schema on which this program may run', async () => {
    await using roles = await createRoles();
    const { database, migrating, running } = roles;
    await migrate(running.url, migrating.url);
    const env = { DATABASE_URL: running.url, MIGRATION_DATABASE_URL: migrating.url };
    const swapped = { DATABASE_URL: migrating.url, MIGRATION_DATABASE_URL: running.url };
    expect(await runCommand(['migrate', '--plan'], { env: swapped })).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('roles_unfit'),
    });

    await database.query(`insert into kysely_migration values ('9999-of-tomorrow', now()::text)`);
    expect(await runCommand(['migrate', '--plan'], { env })).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('9999-of-tomorrow'),
    });
    await database.query(`insert into schema_requirements values ('9999-of-tomorrow', '${OURS}')`);
    const cli = cliWith(env);
    expect(await cli.items('migrate', '--plan')).toMatchObject([
      { pending: [], newer: ['9999-of-tomorrow'], oldest_program: OURS, rights: null },
    ]);
    expect(await cli.onTerminal(['migrate', '--plan'])).toEqual({
      code: 0,
      screen:
        'the schema has 9999-of-tomorrow, and this older program may run on it: nothing would be changed\n',
    });
  });
});
