// The service as a role that owns nothing: what it needs it may do, and what operators did it cannot change.

import { expect, test } from 'vitest';
import { connectDatabase, type DatabaseConnection } from '../../../src/ledger/sessions/database.ts';
import { checkSchema, migrate } from '../../../src/ledger/schema/migrate.ts';
import { DAYS_AHEAD, keepPartitions, makePartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { keepUp } from '../../../src/ledger/upkeep/upkeep.ts';
import { listen, newExchange } from '../../support/bus.ts';
import type { TestDatabase } from '../../support/database.ts';
import { partitionsOf } from '../../support/ledger.ts';
import { untilNonePending } from '../../support/facts.ts';
import { operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { eventRecord } from '../../support/records.ts';
import { runCommand } from '../../support/cli.ts';
import { createRoles, type Role } from '../../support/roles.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';
import { waitFor } from '../../support/waits.ts';

function connectAs({ url }: { url: string }): DatabaseConnection & AsyncDisposable {
  const { log } = createTestLog();
  const timeouts = { statementTimeoutMs: 5_000, lockTimeoutMs: 4_000, queryTimeoutMs: 6_000 };
  const connection = connectDatabase({ url, name: 'test', connections: 2, ...timeouts, log });
  return { ...connection, [Symbol.asyncDispose]: connection.close };
}

const PARENTS = ['deliveries', 'publications', 'publication_batches'];

/** As the upkeep of that day made it. */
async function addDaysOfThePast(
  database: TestDatabase,
  owner: Role,
  from: number,
  to: number,
): Promise<void> {
  for (const parent of PARENTS) {
    await database.query(`
      do $$ declare day date; name text; begin
        for n in ${from}..${to} loop
          day := (now() at time zone 'UTC')::date - n;
          name := '${parent}' || to_char(day, '_YYYYMMDD');
          execute format('create table %I partition of ${parent} for values from (%L) to (%L)', name,
            to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00', to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
          execute format('alter table %I owner to ${owner.name}', name);
        end loop;
      end $$`);
  }
}

test("a month's upkeep needs no more than the running role", async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(running.url, migrating.url);
  await using connection = connectAs(running);
  await makePartitions(connection);
  await addDaysOfThePast(database, migrating, 31, 60);
  await database.query(`
    insert into publications (published_at, event_sequence, attempt, result, duration_ms, relay_attempt, relay_id)
    select now() - make_interval(days => n), n, 1, 'confirmed', 1, 0, gen_random_uuid() from generate_series(31, 60) n`);
  await database.query(`
    insert into publication_batches (published_at, relay_id, source, first, sequences, durations_ms)
    select now() - make_interval(days => n), gen_random_uuid(), 'default', n, array[n], '{1}' from generate_series(31, 60) n`);
  const before = await partitionsOf(database, 'deliveries');

  // Each day is one more that is too old, and one more that nobody made yet.
  for (let day = 1; day <= 30; day++) {
    for (const parent of PARENTS) {
      await database.query(`drop table ${(await partitionsOf(database, parent)).at(-1)}`);
    }
    const kept = await keepPartitions(connection, { retentionDays: 60 - day });
    expect({ day, made: kept.made.length, dropped: kept.dropped.length }).toEqual({
      day,
      made: PARENTS.length,
      dropped: PARENTS.length,
    });
    expect(await recordDeliveries(connection, [eventRecord(completed(`job-of-day-${day}`))])).toMatchObject([
      { outcome: 'accepted' },
    ]);
  }

  expect(before).toHaveLength(30 + 1 + 1 + DAYS_AHEAD);
  expect(await partitionsOf(database, 'deliveries')).toEqual(before.slice(30));
  for (const parent of ['publications', 'publication_batches']) {
    expect(await partitionsOf(database, parent)).toHaveLength(before.length - 30);
    expect(await database.query(`select from ${parent}`)).toEqual([]);
  }
  expect(await database.query('select from deliveries')).toHaveLength(30);
  const { log, lines } = createTestLog();
  expect(await keepUp(connection, { retentionDays: 30, log })).toBe(true);
  expect(lines).toEqual([]);
});

test('the running role can neither change the operator log nor drop what is kept', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(running.url, migrating.url);
  await using connection = connectAs(running);
  await makePartitions(connection);
  await recordDeliveries(connection, [eventRecord(completed('kept'))]);
  await using thief = await openSession(running);
  const attempt = (text: string) =>
    thief.query(text).then(
      () => 'done',
      (error: { code: string }) => error.code,
    );

  const [NOT_PERMITTED, INVALID] = ['42501', '22023'];
  expect(await attempt(`insert into operator_log (actor, role, action) values ('a', 'b', 'c')`)).toBe('done');
  const partition = (await partitionsOf(database, 'deliveries'))[1];
  for (const text of [
    'update operator_log set actor = $$somebody else$$',
    'delete from operator_log',
    'truncate operator_log',
    'drop trigger operator_log_is_append_only on operator_log',
    'alter table operator_log disable trigger all',
    'drop table operator_log',
    'create or replace function operator_log_is_append_only() returns trigger language plpgsql as $$ begin return old; end $$',
    `set session_replication_role = 'replica'`,
    'alter table events add column more text',
    'update events set content_hash = content_hash',
    'delete from events',
    `update deliveries set body = ''`,
    'update deliveries set discarded_at = null',
    `update deliveries set discarded_by = 'somebody else', discard_note = 'something else'`,
    'delete from deliveries',
    `drop table ${partition}`,
    `delete from ${partition}`,
    'delete from kysely_migration',
    'create table mine ()',
    `set role ${migrating.name}`,
    `select setval('events_sequence_seq', 1)`,
    'update database_identity set timeline = null',
    'delete from database_identity',
    'select present_identity()',
  ]) {
    expect({ text, code: await attempt(text) }).toEqual({ text, code: NOT_PERMITTED });
  }
  for (const call of [
    `drop_partition('operator_log', '2020-01-01')`,
    `drop_partition('deliveries', (now() at time zone 'UTC')::date)`,
    `drop_partition('deliveries', (now() at time zone 'UTC')::date - 1)`,
    `drop_partition('deliveries', null)`,
    `drop_partition(null, '2020-01-01')`,
    `drop_partition('deliveries; drop table events', '2020-01-01')`,
    `make_partition('events', (now() at time zone 'UTC')::date)`,
    `make_partition('deliveries', '2020-01-01')`,
    `make_partition('deliveries', 'infinity')`,
    `make_partition('deliveries', (now() at time zone 'UTC')::date + 32)`,
  ]) {
    expect({ call, code: await attempt(`select ${call}`) }).toEqual({ call, code: INVALID });
  }

  // What is not in quarantine cannot be discarded, and a discard cannot be given another note.
  const discardAll = (note: string) =>
    attempt(
      `select discard_quarantined(array_agg(id), array_agg(received_at), 'thief', '${note}') from deliveries`,
    );
  expect(await discardAll('first')).toBe('done');
  expect(await database.query('select discarded_by from deliveries')).toEqual([{ discarded_by: null }]);
  await database.query(`update deliveries set outcome = 'quarantined'`);
  expect([await discardAll('first'), await discardAll('second')]).toEqual(['done', 'done']);
  expect(await database.query('select discard_note from deliveries')).toEqual([{ discard_note: 'first' }]);

  // Tables of the same names in the only schema where it may make some change nothing either.
  expect(await attempt('create temp table deliveries (like public.deliveries)')).toBe('done');
  expect(await attempt(`set search_path = pg_temp, public; set datestyle = 'SQL, DMY'`)).toBe('done');
  await database.query(`drop table ${(await partitionsOf(database, 'deliveries')).at(-1)}`);
  expect(
    await attempt(`select make_partition('deliveries', (now() at time zone 'UTC')::date + ${DAYS_AHEAD})`),
  ).toBe('done');
  expect(await partitionsOf(database, 'deliveries')).toHaveLength(2 + DAYS_AHEAD);
  expect(await database.query('select actor from operator_log')).toEqual([{ actor: 'a' }]);
  expect(await database.query('select job_id from deliveries')).toEqual([{ job_id: 'kept' }]);
});

test('only the running role may call the functions with the owner’s rights', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(running.url, migrating.url);

  expect(
    await database.query(
      `select proname, prosecdef, pg_get_userbyid(proowner) as owner,
              has_function_privilege($1, oid, 'execute') as running, (
                select bool_or(grantee = 0) from aclexplode(proacl)
              ) as everybody
       from pg_proc where pronamespace = 'public'::regnamespace and prosecdef order by 1`,
      [running.name],
    ),
  ).toEqual(
    ['discard_quarantined', 'drop_partition', 'make_partition', 'verify_identity'].map((proname) => ({
      proname,
      prosecdef: true,
      owner: migrating.name,
      running: true,
      everybody: false,
    })),
  );
});

test('the whole service runs as the running role, from a delivery to a replay', async () => {
  await using roles = await createRoles();
  const { running, migrating } = roles;
  const env = { DATABASE_URL: running.url, MIGRATION_DATABASE_URL: migrating.url, ENVIRONMENT: 'test' };
  expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0 });
  const made = await runCommand(['tokens', 'create', '--name', 'first', '--role', 'admin'], {
    env: { DATABASE_URL: running.url, ENVIRONMENT: 'test' },
  });
  expect(made).toMatchObject({ code: 0, stderr: '' });
  const exchange = newExchange();
  await using bus = await listen(exchange);
  const database = { ...roles.database, url: running.url };
  await using relay = await startTestService({ database, exchange });
  const job = newJobId();

  expect(await deliver(relay.webhooks, progress(job, 10, { new_field: 1 }))).toMatchObject({ status: 202 });
  expect(await deliver(relay.webhooks, completed(job))).toMatchObject({ status: 202 });
  expect(await deliver(relay.webhooks, completed(job))).toMatchObject({ body: { outcome: 'duplicate' } });
  expect(await deliver(relay.webhooks, completed(job), { secret: 'another' })).toMatchObject({ status: 401 });
  expect(await deliver(relay.webhooks, { ...completed(job), status: 'unknown' })).toMatchObject({
    body: { outcome: 'quarantined' },
  });
  await bus.received(2);
  await untilNonePending(relay.database);

  const api = await operators(relay, { role: 'admin' });
  const { status, body } = await api.post<{ id: string }>('/replays', { filter: { job_id: job } });
  expect(status).toBe(202);
  await waitFor(
    async () => {
      const replay = await api.get<{ state: string; counts: object }>(`/replays/${body.id}`);
      expect(replay.body).toMatchObject({ state: 'finished', counts: { confirmed: 2 } });
    },
    { timeout: 15_000, interval: 50 },
  );
  await bus.received(4);
  const quarantined = await api.get<{ items: { id: string }[] }>('/deliveries?outcome=quarantined');
  const [held] = quarantined.body.items;
  await roles.database.query(
    `update deliveries set body = convert_to($1, 'UTF8'), status = 'failed' where id = $2`,
    [JSON.stringify(failed(job)), held?.id],
  );
  expect(await orderOne(api, 'quarantine/release', held?.id ?? '')).toMatchObject({ result: 'accepted' });
  await deliver(relay.webhooks, { ...completed(newJobId()), status: 'unknown' });
  expect(await api.post('/quarantine/discard', { filter: {}, note: 'a test' })).toMatchObject({
    body: { done: 1 },
  });
  const token = await api.post<{ id: string }>('/tokens', { name: 'second', role: 'viewer' });
  expect(token.status).toBe(201);
  expect((await api.post(`/tokens/${token.body.id}/revoke`)).status).toBe(200);
  for (const path of [
    '/stats',
    '/sources',
    '/replicas',
    '/outbox',
    '/events',
    '/publications',
    '/operator-log',
    `/jobs/default/${job}`,
  ]) {
    expect({ path, status: (await api.get(path)).status }).toEqual({ path, status: 200 });
  }
  await relay.service.stop(); // writes what is counted
  expect(await roles.database.query('select name from drift order by 1')).toEqual([
    { name: 'new_field' },
    { name: 'unknown' },
  ]);
  expect(JSON.stringify(relay.log)).not.toContain('permission denied');
});

test('a ledger of one role gets another to run as, and keeps working with the one', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(migrating.url);
  await checkSchema(migrating.url);
  await expect(checkSchema(running.url)).rejects.toMatchObject({ code: 'roles_unfit' });

  await migrate(running.url, migrating.url);
  await checkSchema(running.url);
  expect(await migrate(running.url, migrating.url)).toEqual([]);

  for (const { url } of [migrating, running]) {
    await using relay = await startTestService({ database: { ...database, url } });
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  }
});

test('a table that was made without the running role knowing keeps the service from starting', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(running.url, migrating.url);
  await database.query(`revoke all on drift from ${running.name}`);

  await expect(checkSchema(running.url)).rejects.toMatchObject({
    code: 'roles_unfit',
    message: expect.stringContaining('may not use drift: run "tallyhook migrate"'),
  });

  await startTestService({
    database: { ...database, url: running.url },
    env: { MIGRATE_ON_START: 'true', MIGRATION_DATABASE_URL: migrating.url },
  }).then((relay) => relay[Symbol.asyncDispose]());
  await checkSchema(running.url);
});

const refused = (databaseUrl: string, migrationUrl: string) =>
  expect(migrate(databaseUrl, migrationUrl)).rejects.toMatchObject({ code: 'roles_unfit' });

test('two roles that are not apart are refused before anything is changed', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;

  await refused(database.url, migrating.url); // may do everything
  await database.query(`grant ${migrating.name} to ${running.name}`);
  await refused(running.url, migrating.url);
  await database.query(`revoke ${migrating.name} from ${running.name}`);
  expect(await database.query(`select to_regclass('events') as events`)).toEqual([{ events: null }]);

  await migrate(migrating.url);
  await refused(migrating.url, running.url); // the wrong way round
});

test("another owner's tables and sequences in the schema are no trouble", async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await database.query(
    'create table of_others (id int generated always as identity); create sequence numbers',
  );

  await migrate(running.url, migrating.url);
  await checkSchema(running.url);

  expect(
    await database.query(
      `select relname from pg_class
       where case relkind when 'S' then has_sequence_privilege($1, oid, 'usage, select, update') end order by 1`,
      [running.name],
    ),
  ).toEqual([{ relname: 'events_sequence_seq' }, { relname: 'publications_id' }]);
});

test.each(['table drift', 'sequence publications_id', 'function make_partition(text, date)'])(
  'a %s of a third role is named as trouble of the roles, and not tried again for ever',
  async (what) => {
    await using roles = await createRoles();
    const { database, migrating, running } = roles;
    await migrate(migrating.url);
    await database.query(`alter ${what} owner to current_user`);

    await expect(
      startTestService({
        database: { ...database, url: running.url },
        env: { MIGRATE_ON_START: 'true', MIGRATION_DATABASE_URL: migrating.url },
      }),
    ).rejects.toMatchObject({
      code: 'roles_unfit',
      message: expect.stringContaining('have to belong to the migrating role'),
    });
  },
);

test('no table is left out of what the running role may use', async () => {
  await using roles = await createRoles();
  await migrate(roles.running.url, roles.migrating.url);

  expect(
    await roles.database.query(
      `select relname from pg_class
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
         and not has_table_privilege($1, oid, 'select')`,
      [roles.running.name],
    ),
  ).toEqual([{ relname: 'kysely_migration_lock' }]);
});
