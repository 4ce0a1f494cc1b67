// Two replicas behind PgBouncer, as deploy/pgbouncer and docs/deploy.md have it: only addresses and files are the test's own.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../../scripts/relay.ts';
import { listen, newExchange } from '../support/bus.ts';
import { selfSignedCertificate } from '../support/certificate.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { commandsUnder } from '../support/deploy-page.ts';
import { untilOutboxEmpty } from '../support/facts.ts';
import { createFolder } from '../support/folder.ts';
import { startLoad } from '../support/load.ts';
import { startPgbouncer } from '../support/pgbouncer.ts';
import { startProgram, startReplica, untilLeading } from '../support/replica.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { waitFor } from '../support/waits.ts';

const mayRun =
  Boolean(process.env['TEST_PGBOUNCER']) &&
  spawnSync('psql', ['--version'], { stdio: 'ignore' }).status === 0;

const ini = readFileSync(new URL('../../deploy/pgbouncer/pgbouncer.ini', import.meta.url), 'utf8');

/** What the recipe sets. Lines of TLS are comments in it, and begin with a semicolon. */
function settingsOf(text: string): Record<string, string> {
  const section = text.slice(text.indexOf('[pgbouncer]'));
  return Object.fromEntries(
    Array.from(section.matchAll(/^(\w+) = ?(.*)$/gm), ([, name = '', value = '']) => [name, value]),
  );
}

/** The list of users, by the page's command, which is run in a folder of its own. */
async function usersOf(database: TestDatabase): Promise<string> {
  await using folder = await createFolder();
  await symlink(join(ROOT, 'deploy'), folder.path('deploy'));
  const role = decodeURIComponent(new URL(database.url).username);
  const lines = commandsUnder("PgBouncer's list of users").join('');
  const env = { ADMIN_URL: database.url, RUNNING_ROLE: role };
  await using command = startProgram('sh', ['-ec', `cd "$0"\n${lines}`, folder.path('')], { env });
  expect({ ...(await command.exited), stderr: command.stderr() }).toEqual({
    code: 0,
    signal: null,
    stderr: '',
  });
  const users = readFileSync(folder.path('userlist.txt'), 'utf8');
  expect(users).toMatch(new RegExp(`^"${role}" "SCRAM-SHA-256\\$`));
  return users;
}

/** The recipe in front of a database. */
const startRecipe = async (
  database: TestDatabase,
  {
    text = ini,
    change = {},
    files = {},
  }: Partial<Record<'change' | 'files', Record<string, string>> & { text: string }> = {},
) =>
  startPgbouncer(
    database.url,
    { ...settingsOf(text), ...change },
    { ...files, auth_file: await usersOf(database) },
  );

const sessionsOf = async (database: TestDatabase) =>
  Number(
    (
      await database.query<{ count: string }>(
        "select count(*) from pg_stat_activity where datname = $1 and application_name like 'tallyhook%'",
        [database.name],
      )
    )[0]?.count,
  );

/** Of the pool of our role, as PgBouncer itself counts them. */
async function placesOf(url: string, { name }: TestDatabase): Promise<{ used: number; waiting: number }> {
  const console = new URL(url);
  console.pathname = '/pgbouncer';
  const client = new Client({ connectionString: console.href });
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, string>>('show pools');
    const pool = rows.find(({ database }) => database === name);
    return { used: Number(pool?.['sv_active']), waiting: Number(pool?.['cl_waiting']) };
  } finally {
    await client.end();
  }
}

/** Somebody waits for a moment while a session is opened for it; with too few places somebody always does. */
const untilNobodyWaits = (url: string, database: TestDatabase) =>
  waitFor(async () => expect(await placesOf(url, database)).toMatchObject({ waiting: 0 }));

describe.skipIf(!mayRun)('behind the recipe for PgBouncer', () => {
  test('two replicas receive, a third replaces the leader that was killed, nobody waits for a place, and every 2xx arrives', async () => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    await using bus = await listen(exchange);
    const role = decodeURIComponent(new URL(database.url).username);
    await using pooler = await startRecipe(database, { change: { admin_users: role } });
    await using leader = await startReplica({ databaseUrl: pooler.url, exchange });
    await untilLeading(leader);
    await using other = await startReplica({ databaseUrl: pooler.url, exchange });
    const running = () => [leader, other].filter((replica) => !replica.hasExited());
    await using load = startLoad(() => running().map(({ webhooks }) => webhooks), { senders: 4, pauseMs: 5 });
    await load.reached(100);
    await using next = await startReplica({ databaseUrl: pooler.url, exchange });
    await untilNobodyWaits(pooler.url, database);
    const ofThree = await sessionsOf(database);

    leader.kill('SIGKILL');
    await leader.exited;
    await load.reached(load.acknowledged().size + 100);
    await load.stop();
    await untilOutboxEmpty(database);

    await waitFor(() => expect([...load.acknowledged()].filter((id) => !bus.ids().includes(id))).toEqual([]));
    // The pooler ended the sessions of the dead one: its places are free again.
    await waitFor(async () => expect(await sessionsOf(database)).toBeLessThan(ofThree));
    await untilNobodyWaits(pooler.url, database);
    expect((await next.readiness()).status).toBe(200);
  });

  test('a replica connects to it by TLS, and checks its certificate', async () => {
    await using folder = await createFolder();
    await using database = await createTestDatabase();
    const { key, cert } = selfSignedCertificate();
    const text = ini.replaceAll(/^;(client_tls_sslmode)/gm, '$1');
    const files = { client_tls_key_file: key, client_tls_cert_file: cert };
    await using pooler = await startRecipe(database, { text, files });
    const url = new URL(pooler.url);
    url.searchParams.set('sslmode', 'verify-full');
    url.searchParams.set('sslrootcert', await folder.write('ca.crt', cert));
    await using replica = await startReplica({ databaseUrl: url.href });

    expect(await deliver(replica.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  });
});

test('the pool has room for three replicas, for the database more than that, and Postgres by default more again', () => {
  const { default_pool_size, reserve_pool_size, max_db_connections, max_client_conn } = settingsOf(ini);
  const [replicas, sessions, postgresDefault] = [3, 20, 100];
  expect(Number(default_pool_size)).toBe(replicas * sessions);
  expect(Number(reserve_pool_size)).toBe(replicas);
  expect(Number(max_db_connections)).toBeGreaterThan(replicas * (sessions + 1));
  expect(Number(max_db_connections)).toBeLessThan(postgresDefault - 3);
  expect(Number(max_client_conn)).toBeGreaterThan(Number(max_db_connections));
});
