import { expect, test } from 'vitest';
import { appendAllToLog } from '../../../src/operators/kernel/access/operator-log.queries.ts';
import { createTestDatabase } from '../../support/database.ts';
import { connectTestDatabase } from '../../support/relay.ts';

const actor = { tokenId: 'a token', name: 'Ada', role: 'operator', remoteAddress: '127.0.0.1' };

test('one call may log more lines than a statement can have parameters for, and they keep their order', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  // Eight values each: 80,000, and Postgres takes 65,535.
  const entries = Array.from({ length: 10_000 }, (_, index) => ({
    action: 'a test',
    subject: String(index),
  }));

  await appendAllToLog(connection.db, actor, entries);

  const rows = await database.query<{ subject: string }>('select subject from operator_log order by id');
  expect(rows.map(({ subject }) => subject)).toEqual(entries.map(({ subject }) => subject));
});

test('a line is kept as it was given, with what it has not left empty', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const strange = `{"a",NULL}\\ 'ü' "\n`;

  await appendAllToLog(connection.db, actor, [
    { action: 'a test', source: strange, subject: 'NULL', detail: { said: strange } },
    { action: 'a test', source: '', detail: null },
  ]);

  const of = {
    token_id: 'a token',
    actor: 'Ada',
    role: 'operator',
    remote_address: '127.0.0.1',
    action: 'a test',
  };
  expect(
    await database.query(
      `select token_id, actor, role, remote_address, action, source, subject, detail::json from operator_log order by id`,
    ),
  ).toEqual([
    { ...of, source: strange, subject: 'NULL', detail: { said: strange } },
    { ...of, source: '', subject: null, detail: null },
  ]);
});
