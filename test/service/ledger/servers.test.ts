// Several servers of Postgres in the URL: the one that takes writes is found, and another one that is promoted.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeThrowAwayFolder } from '../../../scripts/services/folders.ts';
import { createGuard } from '../../../scripts/services/guard.ts';
import { findFreePort } from '../../../scripts/services/ports.ts';
import { type PostgresServer, startPostgres } from '../../../scripts/services/postgres.ts';
import type { PoolName } from '../../../src/base/closed-sets.ts';
import { connectDatabase } from '../../../src/ledger/sessions/database.ts';
import { createSessions } from '../../../src/ledger/sessions/sessions.ts';
import { startProxy } from '../../support/proxy.ts';
import { IS_SHORT_RUN } from '../../only-in-all.ts';
import { createTestDatabase } from '../../support/database.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { queryOnce } from '../../support/transaction.ts';
import { waitFor } from '../../support/waits.ts';

const PORT = { name: 'port', text: 'select inet_server_port() as port' };
const FOUND = 'this server of Postgres takes writes';
const WRITE = { name: 'write', text: 'insert into written default values' };

function urlOf(ports: readonly number[], { url }: Pick<PostgresServer, 'url'>) {
  const { username, password, pathname } = new URL(url);
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join();
  return { url: `postgres://${username}:${password}@${hosts}${pathname}?target_session_attrs=read-write` };
}

function connect(ports: readonly number[], server: Pick<PostgresServer, 'url'>) {
  const { log, lines } = createTestLog();
  const connection = connectDatabase({
    ...urlOf(ports, server),
    name: 'test',
    connections: 2,
    statementTimeoutMs: 20_000,
    lockTimeoutMs: 20_000,
    queryTimeoutMs: 1_500,
    log,
  });
  return {
    ...connection,
    lines,
    /** Of the server that answers. */
    port: async () => (await connection.execute<{ port: number }>(PORT, []))[0]?.port,
    [Symbol.asyncDispose]: connection.close,
  };
}

const query = ({ url }: Pick<PostgresServer, 'url'>, text: string) =>
  queryOnce<Record<string, unknown>>(url, text);

const setReadOnly = async (server: PostgresServer, value: 'on' | 'off') => {
  await query(server, `alter system set default_transaction_read_only = ${value}`);
  await query(server, 'select pg_reload_conf()');
  await waitFor(async () => {
    expect(await query(server, 'show default_transaction_read_only')).toEqual([
      { default_transaction_read_only: value },
    ]);
  });
};

/**
 * Two servers of one cluster, of which the second one was a standby and was promoted, or can be by `promote`. Until then it only reads.
 */
async function startBoth() {
  const stack = new AsyncDisposableStack();
  try {
    const guard = createGuard();
    stack.defer(guard.close);
    const former = stack.use(await startPostgres({ guard, dir: makeThrowAwayFolder(guard) }));
    await query(former, 'create table written (at timestamptz default now())');
    await former.stop();
    const dir = makeThrowAwayFolder(guard);
    execFileSync('cp', ['-a', `${former.dir}/.`, dir]); // with the account that owns it
    execFileSync('cp', ['-p', join(dir, 'data/PG_VERSION'), join(dir, 'data/standby.signal')]);
    const [later] = await Promise.all([startPostgres({ guard, dir }), former.start()]);
    stack.use(later);
    return {
      former,
      later,
      ports: [former.port, later.port],
      promote: () => query(later, 'select pg_promote()'),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

test('the server that takes writes is found, whatever its place', async () => {
  await using server = await startPostgres();
  const [nobody, other] = [await findFreePort(), await findFreePort()];
  for (const ports of [
    [nobody, server.port],
    [server.port, nobody],
    [nobody, other, server.port],
  ]) {
    await using connection = connect(ports, server);
    expect(await connection.port()).toBe(server.port);
  }
});

test('where none takes writes, the log tells of each server why, and the error is that of one that says why', async () => {
  await using server = await startPostgres();
  await setReadOnly(server, 'on');
  const nobody = await findFreePort();
  await using reading = connect([nobody, server.port], server);
  await expect(reading.execute(WRITE, [])).rejects.toMatchObject({ code: 'read_only' });
  expect(reading.lines).toContainEqual(
    expect.objectContaining({
      msg: 'no server of Postgres takes writes',
      servers: [
        { host: '127.0.0.1', port: nobody, err: expect.objectContaining({ code: 'ECONNREFUSED' }) },
        { host: '127.0.0.1', port: server.port, because: 'it only reads' },
      ],
    }),
  );

  const url = Object.assign(new URL(server.url), { password: 'planted' });
  await using refused = connect([nobody, server.port], { url: url.href });
  await expect(refused.execute(WRITE, [])).rejects.toMatchObject({ code: '28P01' });
  expect(JSON.stringify(refused.lines)).not.toContain('planted');
});

test('a primary that is slow to take new connections keeps those that it has', async () => {
  await using server = await startPostgres();
  await using first = await startProxy(server.url, { defaultPort: 5432, counts: 'bytes' });
  await using second = await startProxy(server.url, { defaultPort: 5432, counts: 'bytes' });
  await using connection = connect([first.port, second.port], server);
  await connection.port();

  first.failAfterBytes(0, 'stall');
  const looked = second.accepted();
  await waitFor(async () => {
    await connection.port();
    expect(second.accepted()).toBeGreaterThan(looked);
  });
  first.failAfterBytes(0, 'cut'); // the look that hangs ends
  await connection.port();
  expect(connection.opened()).toBe(1);
  expect(connection.lines.filter(({ msg }) => msg === FOUND)).toHaveLength(1);
});

test('a connection that is being made when another server is found to be the primary ends', async () => {
  await using server = await startPostgres();
  await using first = await startProxy(server.url, { defaultPort: 5432, counts: 'bytes' });
  await using second = await startProxy(server.url, { defaultPort: 5432, counts: 'bytes' });
  const { log } = createTestLog();
  const { url } = urlOf([first.port, second.port], server);
  const sessions = createSessions({ url, log });
  const limits = { statementTimeoutMs: 20_000, lockTimeoutMs: 20_000, queryTimeoutMs: 20_000 };
  const pool = (name: PoolName, connectTimeoutMs: number) => {
    const made = connectDatabase({ ...limits, url, name, connections: 1, connectTimeoutMs, sessions, log });
    return { ...made, [Symbol.asyncDispose]: made.close };
  };
  await using patient = pool('intake', 60_000);
  await using hasty = pool('lease', 300);
  await hasty.execute(PORT, []);

  first.failAfterBytes(0, 'stall');
  first.cut();
  const waiting = patient.execute(PORT, []).then(
    () => 'answered',
    () => 'ended',
  );
  await waitFor(() => hasty.execute(PORT, [])); // by the other way
  expect(await waiting).toBe('ended');
  await patient.execute(PORT, []);
});

test('a role that may not see the timelines finds the server that takes writes', async () => {
  await using server = await startPostgres();
  await query(server, `create role plain login password 'plain'`);
  await query(server, 'revoke execute on function pg_control_system(), pg_walfile_name(pg_lsn) from public');
  const url = new URL(server.url);
  Object.assign(url, { username: 'plain', password: 'plain' });
  await using connection = connect([await findFreePort(), server.port], { url: url.href });
  expect(await connection.port()).toBe(server.port);
  expect(connection.lines).toContainEqual(expect.objectContaining({ port: server.port, timeline: null }));
});

test('a replica migrates, is ready and takes deliveries with a server in its URL that is away', async () => {
  await using database = await createTestDatabase({ empty: true });
  const { host } = new URL(database.url);
  const several = database.url.replace(host, `127.0.0.1:${await findFreePort()},${host}`);
  await using relay = await startTestService({
    database,
    env: { DATABASE_URL: several, MIGRATION_DATABASE_URL: several, MIGRATE_ON_START: 'true' },
  });
  expect((await deliver(relay.webhooks, completed(newJobId()))).status).toBe(202);
  expect((await fetch(`${relay.operators}/readyz`)).status).toBe(200);
  expect(relay.log.filter(({ msg }) => msg === FOUND)).toMatchObject([
    { port: Number(new URL(database.url).port), timeline: 1 },
  ]);
});

test.skipIf(IS_SHORT_RUN)('of two that take writes, the one whose timeline is later is taken', async () => {
  await using both = await startBoth();
  await both.promote();
  for (const ports of [both.ports, both.ports.toReversed()]) {
    await using connection = connect(ports, both.former);
    expect(await connection.port()).toBe(both.later.port);
  }
});

test.skipIf(IS_SHORT_RUN)(
  'a server that was promoted is found although the former one still takes writes',
  async () => {
    await using both = await startBoth();
    await using connection = connect(both.ports, both.former);
    await connection.execute(WRITE, []);
    await both.promote();
    await waitFor(async () => expect(await connection.port()).toBe(both.later.port));
  },
);

test.skipIf(IS_SHORT_RUN)(
  'a server that becomes read-only is left for the one that was promoted, and not taken again when it writes in its former timeline',
  async () => {
    await using both = await startBoth();
    await using connection = connect(both.ports, both.former);
    await connection.execute(WRITE, []);
    expect(await connection.port()).toBe(both.former.port);

    await setReadOnly(both.former, 'on');
    await expect(connection.execute(WRITE, [])).rejects.toMatchObject({ code: '25006' });
    await expect(connection.execute(WRITE, [])).rejects.toThrow('read_only'); // neither takes writes
    await both.promote();
    await waitFor(async () => expect(await connection.port()).toBe(both.later.port));

    await setReadOnly(both.former, 'off');
    await both.later.kill('SIGKILL');
    // The first ones end with their connections. The others look for a primary, each after a pause.
    for (let nth = 0; nth < 6; nth++) await expect(connection.execute(WRITE, [])).rejects.toThrow(/./);
    expect(await query(both.former, 'select count(*)::int as count from written')).toEqual([{ count: 1 }]);
    await both.later.start();
    await waitFor(async () => expect(await connection.port()).toBe(both.later.port));
  },
);

test.skipIf(IS_SHORT_RUN)(
  'while commits hang, a server that was promoted meanwhile is found, and they end without an answer',
  async () => {
    await using both = await startBoth();
    await using connection = connect(both.ports, both.former);
    await connection.execute(WRITE, []);
    await query(both.former, `alter system set synchronous_standby_names = 'nobody'`);
    await query(both.former, 'select pg_reload_conf()');
    await waitFor(async () => {
      const [row] = await query(both.former, 'show synchronous_standby_names');
      expect(row).toEqual({ synchronous_standby_names: 'nobody' });
    });

    // On both connections.
    const writes = await Promise.allSettled([connection.execute(WRITE, []), connection.execute(WRITE, [])]);
    expect(writes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(connection.execute(WRITE, [])).rejects.toMatchObject({ code: 'unanswered' });
    await both.promote();
    await waitFor(async () => expect(await connection.port()).toBe(both.later.port));
    await connection.execute(WRITE, []);
    expect(await query(both.later, 'select count(*)::int as count from written')).toEqual([{ count: 1 }]);
  },
);
