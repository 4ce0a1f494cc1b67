// The roles of deploy/rights/postgres.sql, made by the commands of docs/deploy.md on a server of its own: each does its work, and
// what stops when one right after the other is taken away. What the running role cannot do is in test/service/ledger/roles.test.ts.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { listen, newExchange } from '../support/bus.ts';
import { runCommand } from '../support/cli.ts';
import { checkSchema } from '../../src/ledger/schema/migrate.ts';
import type { TestDatabase } from '../support/database.ts';
import { runCommandsUnder } from '../support/deploy-commands.ts';
import { operators } from '../support/operators.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/own-servers.ts';
import { patience } from '../support/patience.ts';
import { QUICK } from '../support/quick-watch.ts';
import { openRaw, rawPost } from '../support/raw-http.ts';
import { completed, deliver, failed, newJobId, progress, sign } from '../support/sender.ts';
import { readMetric } from '../support/requests.ts';
import { createTestLog, startTestService, type TestService } from '../support/service.ts';
import { openSession, openTransaction, queryOnce } from '../support/transaction.ts';
import { waitFor } from '../support/waits.ts';

const PSQL = process.env['TEST_PSQL'] ?? '';
const RIGHTS = fileURLToPath(new URL('../../deploy/rights/postgres.sql', import.meta.url));
const DATABASE = 'tallyhook';
const [MIGRATE, RUN, MONITOR] = ['tallyhook_migrate', 'tallyhook_run', 'tallyhook_monitor'];
const PASSWORDS = { [MIGRATE]: 'secret-of-migrate', [RUN]: 'secret-of-run', [MONITOR]: 'secret-of-monitor' };

const fresh = (url: string) => `${url}?options=-c%20search_path%3Dfresh`;

/** In the lines of the log from then on. */
const untilSaid = (log: readonly object[], sentence: string, from = 0) =>
  waitFor(() => expect(JSON.stringify(log.slice(from)).replaceAll('\\', '')).toContain(sentence), {
    timeout: 20_000,
    interval: 50,
  });

describe.skipIf(PSQL === '')('the roles of deploy/rights/postgres.sql', () => {
  let own: OwnPostgres;

  const urlOf = (role: string | undefined, database = DATABASE) => {
    const url = new URL(own.server.url);
    if (role !== undefined) [url.username, url.password] = [role, PASSWORDS[role] ?? 'none'];
    url.pathname = `/${database}`;
    return url.href;
  };
  const [asMigrating, asRunning] = [() => urlOf(MIGRATE), () => urlOf(RUN)];

  /** What `tallyhook migrate` says with the two roles of the schema `fresh`. */
  async function migrating() {
    const { code, stderr } = await runCommand(['migrate'], {
      env: { DATABASE_URL: fresh(asRunning()), MIGRATION_DATABASE_URL: fresh(asMigrating()) },
    });
    return { code, stderr };
  }

  /** As the superuser, in Tallyhook's database. */
  const query = <Row extends Record<string, unknown>>(text: string, values: unknown[] = []) =>
    queryOnce<Row>(urlOf(undefined), text, values);

  /** The code of the error, or 'done'. */
  async function attempt(role: string, text: string, database = DATABASE): Promise<string> {
    try {
      await using session = await openSession({ url: urlOf(role, database) });
      await session.query(text);
      return 'done';
    } catch (error) {
      return String((error as { code?: unknown }).code);
    }
  }

  /** As the running role, but for queries. */
  const asDatabase = (): TestDatabase => ({
    url: asRunning(),
    name: DATABASE,
    query,
    [Symbol.asyncDispose]: async () => {},
  });

  /** Of psql, as the superuser. */
  function connection() {
    const { hostname, port, username, password } = new URL(own.server.url);
    return {
      PATH: `${join(PSQL, '..')}:${process.env['PATH'] ?? ''}`,
      PGHOST: hostname,
      PGPORT: port,
      PGUSER: username,
      PGPASSWORD: password,
    };
  }

  async function makeRoles(): Promise<void> {
    await runCommandsUnder('Accounts at Postgres', {
      ...connection(),
      MIGRATE_PASSWORD: PASSWORDS[MIGRATE] ?? '',
      RUN_PASSWORD: PASSWORDS[RUN] ?? '',
      MONITOR_PASSWORD: PASSWORDS[MONITOR] ?? '',
      MIGRATION_DATABASE_URL: asMigrating(),
      DATABASE_URL: asRunning(),
    });
  }

  beforeAll(async () => {
    own = await startOwnPostgres({ log_statement: 'all' });
    await using session = await openSession({ url: urlOf(undefined, 'postgres') });
    await session.query(`drop database ${DATABASE}`); // the file makes it
    await makeRoles();
  }, patience(60_000));
  afterAll(() => own[Symbol.asyncDispose]());

  test('may connect to Tallyhook’s database, and nobody else may', async () => {
    await query(`create role stranger login password 'none'`);
    for (const role of [MIGRATE, RUN, MONITOR]) expect(await attempt(role, 'select')).toBe('done');
    expect(await attempt('stranger', 'select')).toBe('42501');
    for (const role of [MIGRATE, RUN, MONITOR]) {
      expect(await attempt(role, 'create temp table mine ()')).toBe('42501');
      expect(await attempt(role, `drop database ${DATABASE}`, 'postgres')).toBe('42501');
      expect(await attempt(role, 'create role another')).toBe('42501');
    }
  });

  test('are not made by a file that lacks a password: it names the variable, and makes nothing', async () => {
    const named = { ...connection(), MIGRATE_PASSWORD: 'given', RUN_PASSWORD: 'given' };
    const names = ['database', 'migrate', 'run', 'monitor'].flatMap((name) => [
      '-v',
      `${name}=unmade_${name}`,
    ]);
    const args = ['-d', 'postgres', '-f', RIGHTS, ...names];
    const { code, stderr } = await promisify(execFile)(PSQL, args, { env: named }).then(
      (ended) => ({ code: 0, ...ended }),
      (error: unknown) => error as { code: number; stderr: string },
    );
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringContaining('ERROR:  MONITOR_PASSWORD must be set\n'),
    });
    const made = `select rolname from pg_roles where rolname like 'unmade%' union select datname from pg_database where datname like 'unmade%'`;
    expect(await query(made)).toEqual([]);
  });

  test('get other passwords when the file is run again, and the server’s log has none', async () => {
    const before = { ...PASSWORDS };
    PASSWORDS[RUN] = "new-secret's \\ end";
    expect(await attempt(RUN, 'select')).toBe('28P01');
    await makeRoles();
    expect(await attempt(RUN, 'select')).toBe('done');
    const log = readFileSync(join(own.server.dir, 'postgres.log'), 'utf8');
    expect(log).toContain('revoke all on schema public');
    for (const secret of [...Object.values(before), 'new-secret']) expect(log).not.toContain(secret);
  });

  test('that watches sees the sessions and waits of all, and reads no table of Tallyhook', async () => {
    await using other = await openSession({ url: asRunning() });
    await other.query('select');
    await using session = await openSession({ url: urlOf(MONITOR) });
    const seen = async () =>
      (
        await session.query<{ query: string; state: string | null }>(
          'select query, state from pg_stat_activity where usename = $1',
          [RUN],
        )
      ).rows;
    expect(await seen()).toEqual([{ query: 'select', state: 'idle' }]);
    await session
      .query(`select pg_database_size('${DATABASE}'), pg_total_relation_size('events'::regclass)`)
      .catch(() => {});
    for (const table of ['deliveries', 'events', 'operator_log', 'tokens'])
      expect(await attempt(MONITOR, `select from public.${table}`)).toBe('42501');
    await query(`revoke pg_read_all_stats from ${MONITOR}`);
    expect(await seen()).toEqual([{ query: '<insufficient privilege>', state: null }]);
    await query(`grant pg_read_all_stats to ${MONITOR}`);
  });

  test('that migrates needs each right that it has, and says what it lacks', async () => {
    await using admin = await openSession({ url: urlOf(undefined) });
    await admin.query(
      `create schema fresh; grant usage, create on schema fresh to ${MIGRATE}; grant usage on schema fresh to ${RUN}`,
    );
    for (const [right, said] of [
      [
        `connect on database ${DATABASE}`,
        { code: 1, stderr: `42501: permission denied for database "${DATABASE}"\n` },
      ],
      [
        'usage on schema fresh',
        {
          code: 78,
          stderr: expect.stringContaining('no schema of search_path exists, or the role may not use one'),
        },
      ],
      [
        'create on schema fresh',
        { code: 78, stderr: expect.stringContaining('permission denied for schema fresh') },
      ],
    ] as const) {
      await admin.query(`revoke ${right} from ${MIGRATE}`);
      expect({ right, ...(await migrating()) }).toEqual({ right, ...said });
      await admin.query(`grant ${right} to ${MIGRATE}`);
    }
    expect(await migrating()).toEqual({ code: 0, stderr: '' });
    await admin.query('drop schema fresh cascade');
  });

  test('that runs the service says which right it lacks, where operators look', async () => {
    await using admin = await openSession({ url: urlOf(undefined) });
    const without = async (right: string, act: () => Promise<void>) => {
      await admin.query(`revoke ${right} from ${RUN}`);
      try {
        await act();
      } finally {
        await admin.query(`grant ${right} to ${RUN}`);
      }
    };
    for (const [right, sentence] of [
      [`connect on database ${DATABASE}`, `permission denied for database "${DATABASE}"`],
      ['usage on schema public', 'no schema of search_path exists, or the role may not use one'],
    ] as const) {
      const testLog = createTestLog();
      let starting: Promise<TestService> | undefined;
      await without(right, async () => {
        starting = startTestService({ database: asDatabase(), testLog });
        await untilSaid(testLog.lines, sentence);
      });
      await (await starting)?.[Symbol.asyncDispose](); // it goes on by itself once it has the right
    }

    await using relay = await startTestService({ database: asDatabase(), exchange: newExchange() });
    const api = await operators(relay, { role: 'admin' });
    const send = async (status: number) =>
      expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status });
    for (const [right, act, sentence] of [
      [
        'insert on table deliveries',
        () => send(503),
        'a write failed: the role of DATABASE_URL may not do this: run "tallyhook migrate" with MIGRATION_DATABASE_URL',
      ],
      ['insert on table publications', () => send(202), 'permission denied for table publications'],
      [
        'usage on sequence publications_id',
        () => send(202),
        'permission denied for sequence publications_id',
      ],
      [
        'insert on table operator_log',
        async () =>
          expect(await api.post('/tokens', { name: 'another', role: 'viewer' })).toMatchObject({
            status: 500,
          }),
        'permission denied for table operator_log',
      ],
    ] as const) {
      const from = relay.log.length;
      await without(right, async () => {
        await act();
        await untilSaid(relay.log, sentence, from);
      });
    }
  });

  test('that runs the service may not start without reading each table', async () => {
    await using admin = await openSession({ url: urlOf(undefined) });
    const tables = await query<{ name: string }>(
      `select relname as name from pg_class, aclexplode(relacl)
       where grantee = $1::regrole and relkind in ('r', 'p') and privilege_type = 'SELECT'`,
      [RUN],
    );
    expect(tables.length).toBeGreaterThan(20);
    for (const { name } of tables) {
      await admin.query(`revoke select on ${name} from ${RUN}`);
      await expect(checkSchema(asRunning())).rejects.toMatchObject({
        code: 'roles_unfit',
        message: expect.stringContaining(`may not use ${name}: run "tallyhook migrate"`) as string,
      });
      await admin.query(`grant select on ${name} to ${RUN}`);
    }
  });

  type Right = { readonly on: string; readonly name: string; readonly right: string };

  const rightsOfRunning = () =>
    query<Right>(
      `select 'table' as on, relname::text as name, lower(privilege_type) as right
         from pg_class, aclexplode(relacl)
         where grantee = $1::regrole and relkind in ('r', 'p') and privilege_type <> 'SELECT'
       union all select 'table', relname, lower(privilege_type) || ' (' || attname || ')'
         from pg_attribute join pg_class c on c.oid = attrelid, aclexplode(attacl) where grantee = $1::regrole
       union all select 'function', p.oid::regprocedure::text, lower(privilege_type)
         from pg_proc p, aclexplode(proacl) where grantee = $1::regrole
       order by 1, 2, 3`,
      [RUN],
    );

  /** Every statement that a service sends to Postgres while it does everything that it can do. */
  async function statementsOfService(): Promise<ReadonlySet<string>> {
    const sent = new Set<string>();
    const spy = vi.spyOn(Client.prototype, 'query');
    try {
      await liveThroughEverything();
      for (const [first] of spy.mock.calls as unknown as [string | { text?: string }][]) {
        const text = typeof first === 'string' ? first : first?.text;
        if (text !== undefined) sent.add(text);
      }
    } finally {
      spy.mockRestore();
    }
    return sent;
  }

  async function liveThroughEverything(): Promise<void> {
    const exchange = newExchange();
    await using bus = await listen(exchange, { bindings: ['job.completed.#'] });
    await query(
      `create table deliveries_20260101 partition of deliveries for values from ('2026-01-01 00:00:00+00') to ('2026-01-02 00:00:00+00')`,
    );
    await query(`alter table deliveries_20260101 owner to ${MIGRATE}`);
    await using relay = await startTestService({
      database: asDatabase(),
      exchange,
      env: { RELAY_POLL_MS: '50', REFUSED_ROWS_PER_MINUTE: '1', ANSWER_DEADLINE_MS: '9500' },
      watchTiming: QUICK,
    });
    await expect.poll(() => query('select from replicas')).not.toEqual([]);
    // Incidents and messages are written in one statement with what the watch remembers.
    await expect
      .poll(() => query(`select from relay_lease where name = 'watch' and memory is not null`), {
        timeout: 20_000,
      })
      .not.toEqual([]);
    await receiveEverything(relay);
    await bus.received(2);
    await operateEverything(relay, bus.queue);
  }

  async function receiveEverything(relay: TestService): Promise<void> {
    for (const body of [
      progress('job_1', 10, { new_field: 1 }),
      completed('job_1'),
      completed('job_1'),
      completed('job_2'),
      failed('job_3'),
      failed('job_4'),
      { ...completed('job_5'), status: 'exploded' },
      { ...completed('job_6'), status: 'exploded' },
    ])
      expect((await deliver(relay.webhooks, body)).status).toBeLessThan(300);
    for (let count = 0; count < 3; count++)
      expect(await deliver(relay.webhooks, '{}', { secret: 'another secret of enough bytes' })).toMatchObject(
        { status: 401 },
      );

    // A sender that leaves before its answer.
    const metric = (name: string) => readMetric(relay.operators, name);
    await using lock = await openTransaction({ url: urlOf(undefined) });
    await lock.query('lock table jobs in share mode');
    using sender = await openRaw(relay.service.port);
    const body = JSON.stringify(completed('job_7'));
    sender.write(rawPost(body, { 'X-Service-Signature': sign(body) }));
    await expect.poll(() => metric('tallyhook_write_queue_deliveries')).toBe(1);
    const open = await metric('tallyhook_connections');
    sender.reset();
    await expect.poll(() => metric('tallyhook_connections')).toBeLessThan(open);
  }

  async function operateEverything(relay: TestService, queue: string): Promise<void> {
    const api = await operators(relay, { role: 'admin' });
    const done = async (path: string, order?: object) => {
      const { status, body } = await api.post<{ id: string; code: string }>(path, order);
      expect({ path, status, ok: status < 300 }).toEqual({ path, status, ok: true });
      return body;
    };
    const ids = async (path: string) =>
      (await api.get<{ items: { id: string }[] }>(path)).body.items.map(({ id }) => id);

    const unheard = ['default:job_1:processing:10', 'default:job_3:failed', 'default:job_4:failed'];
    await expect
      .poll(() =>
        query(`select from outbox_held where state = 'returned' and job_id = any ('{job_1,job_3,job_4}')`),
      )
      .toHaveLength(unheard.length);
    await done('/outbox/discard', { ids: [unheard[0]] });
    await done('/outbox/retry', { ids: [unheard[1]] });
    await done('/outbox/park', { ids: [unheard[2]] });

    const [held] = await ids('/quarantine');
    await query(`update deliveries set body = convert_to($1, 'UTF8'), status = 'failed' where id = $2`, [
      JSON.stringify(failed('job_5')),
      held,
    ]);
    await done('/quarantine/release', { ids: [held] });
    await done('/quarantine/discard', { filter: {}, note: 'a test' });

    await query(`update deliveries set body = null where job_id = 'job_2'`);
    for (const order of [
      { filter: { job_id: 'job_1' } },
      { filter: { job_id: 'job_1' }, queue },
      { filter: { job_id: 'job_2' } },
    ]) {
      const { id } = await done('/replays', order);
      await waitFor(
        async () => expect((await api.get(`/replays/${id}`)).body).toMatchObject({ state: 'finished' }),
        {
          timeout: 20_000,
          interval: 50,
        },
      );
    }
    const { id: replay } = await done('/replays', { filter: { source: 'default' }, rate_per_second: 1 });
    for (const verb of ['pause', 'resume', 'cancel']) await done(`/replays/${replay}/${verb}`);

    expect(await api.post('/tokens', { name: 'first', role: 'viewer' }, { key: 'k' })).toMatchObject({
      status: 201,
    });
    const { id: token } = await done('/tokens', { name: 'second', role: 'viewer' });
    await done(`/tokens/${token}/revoke`);
    const { code } = await done('/sign-in-codes');
    await fetch(`${relay.operators}/console/sign-in?code=${code}`, { redirect: 'manual' });
    await fetch(`${relay.operators}/console/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'Sec-Fetch-Site': 'same-origin' },
      body: new URLSearchParams({ code }),
    });
    const [session] = await ids('/sessions');
    await done(`/sessions/${session ?? ''}/end`);
  }

  /** Postgres checks the rights of a statement when it explains it, too. */
  test('that runs the service needs each right to write that it has', async () => {
    const statements = [...(await statementsOfService())];
    const rights = await rightsOfRunning();
    await using admin = await openSession({ url: urlOf(undefined) });
    await using session = await openSession({ url: asRunning() });
    const isRefused = async (text: string) =>
      session.query(`explain (generic_plan) ${text}`).then(
        () => false,
        ({ code }: { code?: string }) => code === '42501',
      );
    const unneeded: string[] = [];
    for (const { on, name, right } of rights) {
      const what = `${right} on ${on} ${name}`;
      const word = name.split('(')[0] ?? name;
      await admin.query(`revoke ${what} from ${RUN}`);
      let isNeeded = false;
      for (const text of statements.filter((statement) => statement.includes(word)))
        isNeeded ||= await isRefused(text);
      if (!isNeeded) unneeded.push(what);
      await admin.query(`grant ${what} to ${RUN}`);
    }
    expect(unneeded).toEqual([]);
  });
});
