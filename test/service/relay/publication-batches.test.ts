// What the relay writes of confirmed first attempts: few rows, each event once.

import { expect, test } from 'vitest';
import { type Batch, createBatch } from '../../../src/relay/batch.ts';
import type { Entry, Settlement } from '../../../src/relay/entry.ts';
import { settleWhole, takeOut } from '../../../src/relay/batch-results.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { connectTestDatabase } from '../../support/relay.ts';

const RELAY = '00000000-0000-4000-8000-000000000001';

/** Events 1,000 to 1,059, those with an even number of `studio`, in batches of 20. */
async function addBatches(database: TestDatabase): Promise<void> {
  await database.query(`
    insert into events (sequence, source, job_id, status, late, recorded_at, delivery_id, content_hash, repeats)
    overriding system value
    select n, case when n % 2 = 0 then 'studio' else 'default' end, 'job_' || n, 'completed', false, now(), gen_random_uuid(), '\\x00', 0
    from generate_series(1000, 1059) n`);
  await database.query(`
    insert into outbox_batches (first, sequences, bytes)
    select min(n), array_agg(n order by n), 1 from generate_series(1000, 1059) n group by n / 20`);
}

const confirmed = (sequence: number): Settlement => ({
  entry: {
    sequence: String(sequence),
    attempts: 0,
    source: sequence % 2 === 0 ? 'studio' : 'default',
    batch: createBatch(String(sequence - (sequence % 20)), { size: 20 }),
  } as Entry,
  number: sequence,
  next: 'delete',
  publication: { result: 'confirmed', durationMs: sequence + 0.4 },
  retryInMs: 0,
});

function wholeBatch(first: number): Batch {
  const batch = createBatch(String(first), { size: 20 });
  for (let at = 0; at < 20; at += 1) batch.settle(confirmed(first + at));
  return batch;
}

const shared = (database: TestDatabase) =>
  database.query(`
    select source, first::int, cardinality(sequences) as size, durations_ms[1] as duration, relay_id
    from publication_batches order by first`);

test('a settle writes one row for each source and block of 1,024, and to repeat it writes nothing', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const both = { results: connection, rounds: connection };
  await addBatches(database);
  const batches = [1000, 1020, 1040].map(wholeBatch);

  await settleWhole(both, batches, RELAY);
  await settleWhole(both, batches, RELAY);

  expect(await shared(database)).toEqual([
    { source: 'studio', first: 1000, size: 12, duration: 1000, relay_id: RELAY },
    { source: 'default', first: 1001, size: 12, duration: 1001, relay_id: RELAY },
    { source: 'studio', first: 1024, size: 18, duration: 1024, relay_id: RELAY },
    { source: 'default', first: 1025, size: 18, duration: 1025, relay_id: RELAY },
  ]);
  expect(await database.query('select from publications')).toEqual([]);
  expect(await database.query('select from outbox_batches')).toEqual([]);
});

test('of batches that were settled before, nothing is written a second time', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const both = { results: connection, rounds: connection };
  await addBatches(database);

  await settleWhole(both, [wholeBatch(1020)], RELAY);
  await settleWhole(both, [1000, 1020, 1040].map(wholeBatch), RELAY);

  const found = await database.query<{ sequence: number; duration: number }>(
    `select event_sequence::int as sequence, duration_ms as duration from ${PUBLICATIONS} p order by 1`,
  );
  expect(found).toEqual(
    Array.from({ length: 60 }, (_, at) => ({ sequence: 1000 + at, duration: 1000 + at })),
  );
});

test('what a former leader has published, too, is on record as its own, once', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const both = { results: connection, rounds: connection };
  await addBatches(database);
  const former = RELAY.replace('1', '2');

  await settleWhole(both, [wholeBatch(1020)], RELAY);
  for (let turn = 0; turn < 2; turn += 1) {
    await settleWhole(both, [wholeBatch(1020)], former);
    await takeOut(connection, [1021, 1022].map(confirmed), former);
  }

  const found = await database.query<{ relay_id: string; n: number }>(
    `select relay_id, count(*)::int as n from ${PUBLICATIONS} p group by 1 order by 1`,
  );
  expect(found).toEqual([
    { relay_id: RELAY, n: 20 },
    { relay_id: former, n: 20 },
  ]);
});

test('events of a batch that are settled by themselves share a row, too, but for those that failed', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await addBatches(database);
  const { entry } = confirmed(1007);
  const returned: Settlement = {
    entry,
    number: 1007,
    next: 'return',
    publication: { result: 'returned', detail: '312 NO_ROUTE', blame: 'event', durationMs: 3 },
    retryInMs: 0,
  };
  const settlements = [1001, 1003, 1005].map(confirmed).concat(returned);

  await takeOut(connection, settlements, RELAY);
  await takeOut(connection, settlements, RELAY);

  expect(await shared(database)).toEqual([
    { source: 'default', first: 1001, size: 3, duration: 1001, relay_id: RELAY },
  ]);
  expect(
    await database.query(
      'select event_sequence::int as sequence, result, detail, attempt, duration_ms from publications',
    ),
  ).toEqual([{ sequence: 1007, result: 'returned', detail: '312 NO_ROUTE', attempt: 1, duration_ms: 3 }]);
});

test('ids of publications never meet, whichever table they are in', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const both = { results: connection, rounds: connection };
  await addBatches(database);

  await settleWhole(both, [wholeBatch(1000)], RELAY);
  await database.query(`
    insert into publications (published_at, event_sequence, attempt, result, duration_ms, relay_attempt, relay_id)
    select now(), n, 2, 'nacked', 1, 0, '${RELAY}' from generate_series(1000, 1003) n`);
  await settleWhole(both, [wholeBatch(1020), wholeBatch(1040)], RELAY);

  const ids = await database.query<{ id: string }>(`select id from ${PUBLICATIONS} p`);
  expect(ids).toHaveLength(64);
  expect(new Set(ids.map(({ id }) => id)).size).toBe(64);
});
