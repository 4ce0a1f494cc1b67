// What each session with Postgres is, whatever roles, databases and servers say, and how it ends.

import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { connectDatabase } from '../../../src/ledger/sessions/database.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { readMetric } from '../../support/requests.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

function connect(
  { url }: Pick<TestDatabase, 'url'>,
  options: { query?: string; connections?: number; statementTimeoutMs?: number } = {},
) {
  const { log, lines } = createTestLog();
  const connection = connectDatabase({
    url: `${url}${options.query ?? ''}`,
    name: 'test',
    connections: options.connections ?? 1,
    statementTimeoutMs: options.statementTimeoutMs ?? 5_000,
    lockTimeoutMs: 4_000,
    queryTimeoutMs: 6_000,
    log,
  });
  return { ...connection, lines, [Symbol.asyncDispose]: connection.close };
}

test('deliveries are accepted and published although the database writes dates, intervals and bytes in other ways', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  for (const setting of [
    "datestyle = 'German'",
    "intervalstyle = 'sql_standard'",
    "bytea_output = 'escape'",
    "timezone = 'Asia/Kathmandu'",
  ])
    await database.query(`alter database ${database.name} set ${setting}`);
  await using bus = await listen(exchange);
  await using relay = await startTestService({ database, exchange });
  const job = newJobId();

  expect(await deliver(relay.webhooks, completed(job))).toMatchObject({ status: 202 });
  await bus.received(1);
  expect(bus.ids()).toEqual([`default:${job}:completed`]);

  await using connection = connect(database);
  const { rows } = await sql<{ at: Date; bytes: Buffer; took: string }>`
    select timestamptz '2026-11-25 10:11:12Z' as at, '\\x00ff'::bytea as bytes, (interval '90 s')::text as took`.execute(
    connection.db,
  );
  expect(rows).toEqual([
    { at: new Date('2026-11-25T10:11:12Z'), bytes: Buffer.from([0, 255]), took: '00:01:30' },
  ]);
});

test('a time limit may have a fraction of a millisecond', async () => {
  await using database = await createTestDatabase();
  for (const [statementTimeoutMs, used] of [
    [521.47, '521ms'],
    [0.2, '1ms'],
    [60_000.4, '1min'],
  ] as const) {
    await using connection = connect(database, { statementTimeoutMs });
    const show = { name: 'show', text: "select current_setting('statement_timeout') as used" };
    // A slow machine may not answer within a millisecond.
    await waitFor(async () => expect(await connection.execute(show, [])).toEqual([{ used }]));
  }
});

test.for([
  ['off', 'on'],
  ['local', 'on'],
  ['remote_write', 'on'],
  ['remote_apply', 'remote_apply'],
] as const)('guarantee 2: a commit waits at least for the disk: %s becomes %s', async ([given, used]) => {
  await using database = await createTestDatabase();
  await database.query(`alter database ${database.name} set synchronous_commit = ${given}`);
  await using connection = connect(database);

  const show = { name: 'show', text: "select current_setting('synchronous_commit') as used" };
  expect(await connection.execute(show, [])).toEqual([{ used }]);
});

test('options of the connection string are set by statements, and ours win', async () => {
  await using database = await createTestDatabase();
  const query =
    '?options=-c%20work_mem%3D7MB%20--lock-timeout%3D1s%20-c%20search_path%3Dpublic&statement_timeout=1';
  await using connection = connect(database, { query });

  const show = {
    name: 'show',
    text: `select current_setting('work_mem') as memory, current_setting('lock_timeout') as lock,
      current_setting('statement_timeout') as statement, current_setting('search_path') as path`,
  };
  expect(await connection.execute(show, [])).toEqual([
    { memory: '7MB', lock: '4s', statement: '5s', path: 'public, pg_temp' },
  ]);
  expect(() => connect(database, { query: '?options=-d%205' })).toThrow('-c name=value');
});

test('a read-only database is never set writable: its sessions are closed, by the name of the setting and its source', async () => {
  await using database = await createTestDatabase();
  await database.query(`alter database ${database.name} set default_transaction_read_only = on`);
  await using connection = connect(database);
  const ask = { name: 'one', text: 'select 1 as one' };

  const why = 'default_transaction_read_only is on (it comes from: database) and must be off';
  await expect(connection.execute(ask, [])).rejects.toThrow(why);
  expect(connection.lines.map(({ msg }) => msg)).toEqual([`a session with Postgres cannot be used: ${why}`]);

  // Our own session may be a new one, which is read-only, too.
  await database.query(
    `begin read write; alter database ${database.name} reset default_transaction_read_only; commit`,
  );
  expect(await connection.execute(ask, [])).toEqual([{ one: 1 }]);
});

test.for(['execute', 'Kysely'] as const)(
  'a session that turned read-only is not used again after an error: by %s',
  async (way) => {
    await using database = await createTestDatabase();
    await using connection = connect(database);
    const run = (text: string): Promise<unknown> =>
      way === 'execute' ? connection.execute({ name: '', text }, []) : sql.raw(text).execute(connection.db);
    await run('set default_transaction_read_only = on');
    const write = "insert into relay_lease values ('a', gen_random_uuid(), 1, now())";

    await expect(run(write)).rejects.toMatchObject({ code: '25006' });
    await run(write);
  },
);

test('idle connections are probed after three seconds, from both ends', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  const [row] = await connection.execute<{ port: number; idle: string; user: string }>(
    {
      name: 'port',
      text: `select inet_client_port() as port, current_setting('tcp_keepalives_idle') as idle,
        current_setting('tcp_user_timeout') as user`,
    },
    [],
  );

  expect(row).toMatchObject({ idle: '3', user: '9000' });
  // The kernel's own table. Local port, then the timer: 02 is the keep-alive's, its time in hundredths of a second.
  const hex = (row?.port ?? 0).toString(16).toUpperCase().padStart(4, '0');
  await waitFor(() => {
    const line = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .find((each) => each.includes(`:${hex} `) && each.indexOf(`:${hex} `) < 20);
    const [, timer = '', when = ''] = / (\d\d):([0-9A-F]{8}) /.exec(line ?? '') ?? [];
    expect(timer).toBe('02');
    expect(Number.parseInt(when, 16)).toBeLessThanOrEqual(300);
  });
});

test('while a connection waits for an overdue answer, its place is kept and others fail at once', async () => {
  await using database = await createTestDatabase();
  const { log } = createTestLog();
  const connection = connectDatabase({
    url: database.url,
    name: 'overdue',
    connections: 1,
    statementTimeoutMs: 60_000,
    lockTimeoutMs: 60_000,
    queryTimeoutMs: 100,
    log,
  });
  const ask = { name: 'one', text: 'select 1 as one' };
  const count = `select count(*)::int as count from pg_stat_activity where datname = current_database() and application_name = 'tallyhook overdue'`;

  await expect(sql`select pg_sleep(1)`.execute(connection.db)).rejects.toThrow('Query read timeout');
  for (let tries = 0; tries < 5; tries++)
    await expect(connection.execute(ask, [])).rejects.toMatchObject({ code: 'unanswered' });
  expect(await database.query(count)).toEqual([{ count: 1 }]);

  await waitFor(async () => expect(await connection.execute(ask, [])).toEqual([{ one: 1 }]), {
    timeout: 10_000,
    interval: 50,
  });
  await connection.close();
});

test('a replica opens no more sessions than docs/servers.md says', async () => {
  const documented = /at most \*\*(\d+) sessions\*\*/.exec(readFileSync('docs/servers.md', 'utf8'))?.[1];
  await using relay = await startTestService();
  expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });

  expect(await readMetric(relay.operators, 'tallyhook_database_sessions_max')).toBe(Number(documented));
});
