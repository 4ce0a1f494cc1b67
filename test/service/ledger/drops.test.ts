// Before a day of deliveries is dropped, what is still needed of it is saved. Here: the bodies of jobs that are named "needed".

import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { connectDatabase, type DatabaseConnection } from '../../../src/ledger/sessions/database.ts';
import type { BeforeDrop } from '../../../src/ledger/upkeep/drops.ts';
import { keepPartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { keepUp } from '../../../src/ledger/upkeep/upkeep.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { partitionsOf } from '../../support/ledger.ts';
import { createTestLog } from '../../support/service.ts';

const [FIRST, SECOND, THIRD] = ['2020-01-01', '2020-01-02', '2020-01-03'];
const retentionDays = 30;

function connect(database: TestDatabase): DatabaseConnection & AsyncDisposable {
  const { log } = createTestLog();
  const timeouts = { statementTimeoutMs: 5_000, lockTimeoutMs: 4_000, queryTimeoutMs: 6_000 };
  const connection = connectDatabase({ url: database.url, name: 'test', connections: 2, ...timeouts, log });
  return { ...connection, [Symbol.asyncDispose]: connection.close };
}

async function addPartition(database: TestDatabase, parent: string, day: string): Promise<void> {
  await database.query(
    `create table ${parent}_${day.replaceAll('-', '')} partition of ${parent}
     for values from ('${day} 00:00:00+00') to ('${day} 24:00:00+00')`,
  );
}

/** Two old days, with five needed bodies and one other each, and a place to save them. */
async function addDays(database: TestDatabase): Promise<void> {
  await database.query('create table saved (job_id text primary key, body bytea not null)');
  for (const day of [FIRST, SECOND]) {
    await addPartition(database, 'deliveries', day);
    await database.query(
      `insert into deliveries (id, received_at, source, outcome, http_status, job_id, path, headers, body)
       select gen_random_uuid(), '${day} 12:00:00+00', 'default', 'accepted', 202, name || ' ${day} ' || n, '/', '{}', 'a body'
       from unnest(array['needed', 'needed', 'needed', 'needed', 'needed', 'other']) with ordinality as t (name, n)`,
    );
  }
  await addPartition(database, 'publications', THIRD);
}

/** Two bodies at a time. */
const saveTwo: BeforeDrop = async (trx, day) => {
  const { numAffectedRows } = await sql`
    insert into saved
    select job_id, body from deliveries d
    where received_at >= ${day}::date and received_at < ${day}::date + 1 and job_id like 'needed%'
      and not exists (select from saved s where s.job_id = d.job_id)
    limit 2`.execute(trx);
  return Number(numAffectedRows);
};

const oldDays = async (database: TestDatabase, parent = 'deliveries') =>
  (await partitionsOf(database, parent)).filter((name) => name.includes('_2020'));

const savedOf = (database: TestDatabase, day: string) =>
  database.query('select from saved where job_id like $1', [`% ${day} %`]);

test('what is still needed of a day is saved in slices before the day goes', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addDays(database);
  const slices: { day: string; saved: number }[] = [];
  const beforeDrop: BeforeDrop = async (trx, day) => {
    const saved = await saveTwo(trx, day);
    slices.push({ day, saved });
    return saved;
  };

  const kept = await keepPartitions(connection, { retentionDays, beforeDrop });

  expect(kept).toEqual({
    made: [],
    dropped: ['deliveries_20200101', 'deliveries_20200102', 'publications_20200103'],
  });
  // The last one is the look right before the drop. Days of other tables are not asked about.
  expect(slices).toEqual([FIRST, SECOND].flatMap((day) => [2, 2, 1, 0, 0].map((saved) => ({ day, saved }))));
  expect(await savedOf(database, FIRST)).toHaveLength(5);
  expect(await savedOf(database, SECOND)).toHaveLength(5);
});

test('a day that cannot be saved is kept and logged, and all others go', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addDays(database);
  const { log, lines } = createTestLog();
  const failAfterOne: BeforeDrop = async (trx, day) => {
    if (day === FIRST && (await savedOf(database, FIRST)).length > 0) {
      await sql`insert into saved select job_id, body from saved`.execute(trx);
    }
    return saveTwo(trx, day);
  };

  expect(await keepUp(connection, { retentionDays, beforeDrop: failAfterOne, log })).toBe(true);

  expect(lines).toEqual([
    expect.objectContaining({
      msg: 'upkeep failed',
      part: 'partitions',
      err: expect.objectContaining({
        name: 'DayKeptError',
        code: 'day_kept',
        message: `the deliveries of ${FIRST} are kept: the database refused a value (saved_pkey)`,
      }),
    }),
  ]);
  expect(await oldDays(database)).toEqual(['deliveries_20200101']);
  expect(await database.query(`select from deliveries where received_at < '2021-01-01'`)).toHaveLength(6);
  expect(await oldDays(database, 'publications')).toEqual([]);
  expect(await savedOf(database, FIRST)).toHaveLength(2); // what earlier slices saved stays saved
  expect(await savedOf(database, SECOND)).toHaveLength(5);

  expect(await keepUp(connection, { retentionDays, beforeDrop: saveTwo, log })).toBe(true);
  expect(await oldDays(database)).toEqual([]);
  expect(await savedOf(database, FIRST)).toHaveLength(5);
});

test('a day that is too large for one run is kept until a later run has saved it', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addDays(database);
  const { log, lines } = createTestLog();
  let left = 150;
  const beforeDrop: BeforeDrop = async (_trx, day) => (day === FIRST && left > 0 ? left-- : 0);

  expect(await keepUp(connection, { retentionDays, beforeDrop, log })).toBe(false); // so it runs again soon
  expect({ left, days: await oldDays(database) }).toEqual({ left: 50, days: ['deliveries_20200101'] });

  expect(await keepUp(connection, { retentionDays, beforeDrop, log })).toBe(true);
  expect({ left, days: await oldDays(database) }).toEqual({ left: 0, days: [] });
  expect(lines).toEqual([]);
});

test('what comes after the last slice is seen before the drop', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addDays(database);
  let asked = 0;
  const beforeDrop: BeforeDrop = async (trx, day) => {
    if (day !== FIRST || (asked += 1) > 1) return saveTwo(trx, day);
    return 0; // nothing yet: they come now
  };

  expect(await keepPartitions(connection, { retentionDays, beforeDrop })).toMatchObject({ hasMore: true });
  expect(await oldDays(database)).toEqual(['deliveries_20200101']);
  expect(await savedOf(database, FIRST)).toHaveLength(2);

  await keepPartitions(connection, { retentionDays, beforeDrop });
  expect(await oldDays(database)).toEqual([]);
  expect(await savedOf(database, FIRST)).toHaveLength(5);
});

test('whoever stops begins no further slice, and drops nothing', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addDays(database);
  const ending = new AbortController();
  const beforeDrop: BeforeDrop = (trx, day) => {
    ending.abort();
    return saveTwo(trx, day);
  };

  await keepPartitions(connection, { retentionDays, beforeDrop, signal: ending.signal });

  expect(await savedOf(database, FIRST)).toHaveLength(2);
  expect(await oldDays(database)).toEqual(['deliveries_20200101', 'deliveries_20200102']);
});

test('replicas that keep up at once save each body once, and drop each day once', async () => {
  await using database = await createTestDatabase();
  await using one = connect(database);
  await using other = connect(database);
  await addDays(database);

  const runs = await Promise.all(
    [one, other, one, other].map((connection) =>
      keepPartitions(connection, { retentionDays, beforeDrop: saveTwo }),
    ),
  );

  expect(runs.flatMap(({ dropped }) => dropped).toSorted()).toEqual([
    'deliveries_20200101',
    'deliveries_20200102',
    'publications_20200103',
  ]);
  expect(await database.query('select from saved')).toHaveLength(10);
});
