// Readiness is asked where deliveries are recorded: whatever keeps these out, and nothing else, makes the service unready, and it gets ready again
// without one.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestDatabase } from '../support/database.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/own-servers.ts';
import { operators } from '../support/operators.ts';
import { patience } from '../support/patience.ts';
import { fetchAfresh, readMetric } from '../support/requests.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';

let postgres: OwnPostgres;
let database: TestDatabase;
let service: TestService;

beforeAll(async () => {
  postgres = await startOwnPostgres({ fsync: 'off' });
  database = await postgres.createDatabase();
  // Limits of connections do not hold for a superuser.
  await database.query(`create role tallyhook_owner login password 'a-password-of-a-test'`);
  await database.query(`alter database ${database.name} owner to tallyhook_owner`);
  const url = new URL(database.url);
  url.username = 'tallyhook_owner';
  url.password = 'a-password-of-a-test';
  service = await startTestService({
    database: { ...database, url: url.href },
    env: { MIGRATE_ON_START: 'true' },
  });
});

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await postgres?.[Symbol.asyncDispose]();
});

const readiness = async () => {
  const response = await fetchAfresh(`${service.operators}/readyz`);
  const { postgres: state } = (await response.json()) as { postgres: string };
  return {
    status: response.status,
    postgres: state,
    metric: await readMetric(service.operators, 'tallyhook_database_connected'),
  };
};
const answer = () => deliver(service.webhooks, completed(newJobId())).then(({ status }) => status);

test('a server that does not wait for its disk is warned of, once', () => {
  expect(service.log.filter(({ msg }) => String(msg).startsWith('fsync is off'))).toMatchObject([
    { level: 40 },
  ]);
});

const UP = { status: 200, postgres: 'up', metric: 1 };
const DOWN = { status: 503, postgres: 'down', metric: 0 };

const onServer = async (...statements: string[]) => {
  for (const statement of statements) await database.query(statement);
};
const endSessions = (named: string) =>
  `select pg_terminate_backend(pid) from pg_stat_activity where application_name like '${named}'`;
/** For all sessions there are, at their next transaction. */
const onAllSessions = (setting: string) => onServer(`alter system ${setting}`, 'select pg_reload_conf()');
const inDatabase = (setting: string) =>
  `begin read write; alter database ${database.name} ${setting}; commit`;

test.for<[string, () => Promise<void>, () => Promise<void>]>([
  [
    'read-only',
    () => onServer(inDatabase('set default_transaction_read_only = on'), endSessions('tallyhook %')),
    () => onServer(inDatabase('reset default_transaction_read_only')),
  ],
  [
    'without a connection for the intake alone',
    () => onServer('alter role tallyhook_owner connection limit 1', endSessions('tallyhook intake')),
    () => onServer('alter role tallyhook_owner connection limit -1'),
  ],
  [
    'without a right on one table',
    () => onServer('alter table jobs owner to tallyhook'),
    () => onServer('alter table jobs owner to tallyhook_owner'),
  ],
  [
    'waiting for a standby that is gone',
    () => onServer(`alter system set synchronous_standby_names = 'nobody'`, 'select pg_reload_conf()'),
    () => onServer('alter system reset synchronous_standby_names', 'select pg_reload_conf()'),
  ],
])('a database that is %s makes the service unready, until that is over', async ([, spoil, mend]) => {
  await expect.poll(readiness, { timeout: patience(20_000) }).toEqual(UP);
  expect(await answer()).toBe(202);

  await spoil();
  await expect.poll(readiness, { timeout: patience(20_000) }).toEqual(DOWN);
  expect(await answer()).toBe(503);

  await mend();
  await expect.poll(readiness, { timeout: patience(20_000) }).toEqual(UP);
  expect(await answer()).toBe(202);
});

test('on a server that turns read-only under living sessions operators get 503 for their writes, and no session is left of it', async () => {
  await expect.poll(readiness, { timeout: patience(20_000) }).toEqual(UP);
  const admin = await operators({ operators: service.operators, database });
  const write = async () => {
    const { status, headers, body } = await admin.post('/tokens', { name: newJobId(), role: 'viewer' });
    return { status, error: body['error'], waitS: Number(headers.get('Retry-After')) };
  };
  const all = async () => Promise.all(Array.from({ length: 6 }, write));
  const REFUSED = { status: 503, error: 'unavailable', waitS: 2 };
  expect(new Set((await all()).map(({ status }) => status))).toEqual(new Set([201]));

  await onAllSessions('set default_transaction_read_only = on');
  await expect.poll(write).toEqual(REFUSED);
  for (const refused of await all()) expect(refused).toEqual(REFUSED);
  expect((await admin.get('/tokens')).status).toBe(200);

  await onAllSessions('reset default_transaction_read_only');
  await expect.poll(async () => (await write()).status).toBe(201); // the server has read it
  expect(new Set((await all()).map(({ status }) => status))).toEqual(new Set([201]));
});
