import { expect, test } from 'vitest';
import { createIdentity } from '../../../src/ledger/sessions/identity.ts';
import { migrate } from '../../../src/ledger/schema/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createRoles } from '../../support/roles.ts';
import { createTestLog } from '../../support/test-log.ts';
import { openSession } from '../../support/transaction.ts';

const PER_SECOND = 100_000;

async function lastNumber({ query }: TestDatabase): Promise<number> {
  const [row] = await query<{ last: string }>('select last_value as last from events_sequence_seq');
  return Number(row?.last);
}

const secondsOf2026 = () => (Date.now() - Date.UTC(2026, 0, 1)) / 1_000;

test.for([
  'system_identifier = 1',
  'system_identifier = null',
  `timeline = '00000002'`,
  'database = 1',
  'events = 1',
  `started_at = started_at - interval '1 second'`,
])('the numbers go on from those of the time if the database had another %s', async (was) => {
  await using database = await createTestDatabase();
  await using session = await openSession(database);
  const { log } = createTestLog();
  await createIdentity({ log }).verify(session);
  await database.query('alter sequence events_sequence_seq restart');

  await createIdentity({ log }).verify(session);
  expect(await lastNumber(database)).toBe(1); // nothing has changed

  await database.query(`update database_identity set ${was}`);
  await createIdentity({ log }).verify(session);
  const raised = await lastNumber(database);
  expect(raised).toBeGreaterThan((secondsOf2026() - 60) * PER_SECOND);
  expect(raised).toBeLessThan((secondsOf2026() + 60) * PER_SECOND);
});

test('a sequence that is higher stays as it is, and a row that is gone counts as a change', async () => {
  await using database = await createTestDatabase();
  await using session = await openSession(database);
  const higher = 2 ** 50;
  await database.query(`select setval('events_sequence_seq', ${higher})`);
  await database.query('delete from database_identity');

  await createIdentity(createTestLog()).verify(session);

  expect(await lastNumber(database)).toBe(higher);
  expect(await database.query('select from database_identity')).toHaveLength(1);
});

test('of sessions that begin at once each finds the numbers raised, and the process hears of the change once', async () => {
  await using database = await createTestDatabase();
  await using first = await openSession(database);
  await using second = await openSession(database);
  const { log, lines } = createTestLog();
  const identity = createIdentity({ log });
  let changes = 0;
  identity.onChange(() => (changes += 1));

  const numbers = await Promise.all(
    [first, second].map(async (session) => {
      await identity.verify(session);
      return (await session.query<{ n: string }>(`select nextval('events_sequence_seq') as n`)).rows[0]?.n;
    }),
  );

  expect(numbers.filter((number) => Number(number) < (secondsOf2026() - 60) * PER_SECOND)).toEqual([]);
  expect(lines).toHaveLength(1);
  expect(changes).toBe(0); // it was never another one before
});

test('a session that is read-only is not verified, and one that may write is, once that is over', async () => {
  await using database = await createTestDatabase();
  await using session = await openSession(database);
  const identity = createIdentity(createTestLog());
  await session.query('set default_transaction_read_only = on');
  expect(await identity.verify(session)).toBe(false);

  await session.query('set default_transaction_read_only = off');
  expect(await identity.verify(session)).toBe(true);
  await session.query('set default_transaction_read_only = on');
  expect(await identity.verify(session)).toBe(true); // of the same run of the server
});

test('a role that owns nothing, on a server that keeps its identifier and its timeline to itself, raises the numbers', async () => {
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await database.query('revoke execute on function pg_control_system(), pg_walfile_name(pg_lsn) from public');
  await migrate(running.url, migrating.url);
  await database.query('alter sequence events_sequence_seq restart');
  await database.query('update database_identity set database = 1');
  await using session = await openSession(running);

  await createIdentity(createTestLog()).verify(session);

  expect(await lastNumber(database)).toBeGreaterThan((secondsOf2026() - 60) * PER_SECOND);
  expect(await database.query('select system_identifier, timeline from database_identity')).toEqual([
    { system_identifier: null, timeline: null },
  ]);
});
