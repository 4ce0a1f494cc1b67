// What a look at the ledger finds, on rows of every kind that it looks for. That it costs the same on a million deliveries is in
// operators/audit-million.test.ts.

import { beforeEach, expect, test } from 'vitest';
import { LOOK_MAX, type Looks, readLooks, type SourceLook, TABLES } from '../../../src/ledger/index.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { connectTestDatabase } from '../../support/relay.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
  return () => database[Symbol.asyncDispose]();
});

async function look(): Promise<Looks> {
  await using connection = connectTestDatabase(database);
  return await readLooks(connection.db);
}

/** `count` deliveries that came `ago`; `columns` are SQL. Partitions are made for them. */
async function add(
  count: number,
  columns: Readonly<Record<string, string>>,
  ago = '1 minute',
): Promise<void> {
  const all = { source: `'a'`, outcome: `'accepted'`, ...columns };
  await database.query(`
    do $$ declare day date := (now() - interval '${ago}')::timestamptz at time zone 'UTC'; begin
      execute format('create table if not exists deliveries_%s partition of deliveries for values from (%L) to (%L)',
        to_char(day, 'YYYYMMDD'), day || ' 00:00:00+00', day + 1 || ' 00:00:00+00');
    end $$`);
  await database.query(
    `insert into deliveries (id, received_at, http_status, path, headers, ${Object.keys(all).join(', ')})
     select gen_random_uuid(), now() - $2::interval, 202, '/', '{}', ${Object.values(all).join(', ')}
     from generate_series(1, $1)`,
    [count, ago],
  );
}

const addJobs = (count: number, status: string, ago: string) =>
  database.query(
    `insert into jobs (source, job_id, first_seen_at, last_seen_at, last_status)
     select 'a', $2 || n || $3, now() - $3::interval, now(), $2 from generate_series(1, $1) n`,
    [count, status, ago],
  );

const addMatch = (source: string, fingerprint: string, ago: string) =>
  database.query(`insert into secret_matches values ($1, $2, now() - $3::interval)`, [
    source,
    fingerprint,
    ago,
  ]);

const addAnswers = (source: string, result: string, count: number, ago: string) =>
  database.query(
    `insert into rollups values (date_trunc('minute', now() - $4::interval), 'answer', $1, $2, 1, $3)`,
    [source, result, count, ago],
  );

const ofSource = ({ sources }: Looks, name: string): SourceLook | undefined =>
  sources.find(({ source }) => source === name);

test('what waits in quarantine, the conflicts of an hour and stuck jobs are counted', async () => {
  await add(3, { outcome: `'quarantined'` }, '20 days');
  await add(1, { outcome: `'quarantined'`, released_at: 'now()' });
  await add(1, { outcome: `'quarantined'`, discarded_at: 'now()' });
  await add(2, { outcome: `'conflict'` }, '59 minutes');
  await add(1, { outcome: `'conflict'` }, '61 minutes');
  await addJobs(4, 'processing', '61 minutes');
  await addJobs(1, 'processing', '59 minutes');
  await addJobs(1, 'completed', '61 minutes');
  expect(await look()).toMatchObject({
    quarantined: { count: 3, isExact: true },
    conflicts: { count: 2, isExact: true },
    stuckJobs: { count: 4, isExact: true },
  });
});

test('a count goes up to its limit, and says so', async () => {
  await addJobs(LOOK_MAX, 'processing', '2 hours');
  expect((await look()).stuckJobs).toEqual({ count: LOOK_MAX, isExact: true });
  await addJobs(1, 'processing', '3 hours');
  expect((await look()).stuckJobs).toEqual({ count: LOOK_MAX, isExact: false });
});

const sizeOf = async () => {
  const { tables } = await look();
  expect(tables.map(({ table }) => table).toSorted()).toEqual([...TABLES].toSorted());
  return tables.find(({ table }) => table === 'deliveries')?.bytes ?? 0;
};

test('every table has its bytes, those of its partitions and indexes included', async () => {
  const before = await sizeOf();
  await add(1_000, { body: `decode(repeat('00', 1000), 'hex')` });
  expect(await sizeOf()).toBeGreaterThan(before + 1_000_000);
});

const daysAhead = async () => {
  const { partitions } = await look();
  return Object.fromEntries(partitions.map((partition) => [partition.table, partition.daysAhead]));
};
const drop = (table: string, day: number) =>
  database.query(
    `do $$ begin execute 'drop table ${table}_' || to_char((now() at time zone 'UTC')::date + ${day}, 'YYYYMMDD'); end $$`,
  );

test('the days ahead end at the first day without a partition', async () => {
  expect(await daysAhead()).toEqual({ deliveries: 7, publications: 7, publication_batches: 7 });
  await drop('deliveries', 5);
  await drop('publications', 0);
  expect(await daysAhead()).toEqual({ deliveries: 4, publications: -1, publication_batches: 7 });
});

test('a source has the time since it was last verified, its secrets, and the hours in which it delivered', async () => {
  for (const hours of [30, 49, 50, 53, 70])
    await add(2, { secret_fingerprint: `'present'` }, `${hours} hours`);
  await add(1, { secret_fingerprint: `'old'` }, '60 hours');
  await add(1, { secret_fingerprint: `'older'` }, '55 hours');
  await addMatch('a', 'present', '49 hours');
  await addMatch('a', 'old', '60 hours');
  await addMatch('a', 'older', '80 hours'); // before the 24 hours: it cannot have signed in them
  const found = ofSource(await look(), 'a');
  expect(found?.lastVerifiedS).toBeCloseTo(49 * 3_600, -3);
  expect(found?.hoursDelivered).toBe(5); // 49, 50, 53, 60 and 70 hours ago
  expect(found?.secrets.map(({ fingerprint }) => fingerprint)).toEqual(['old', 'older', 'present']);
  expect(found?.secrets[0]?.lastMatchedS).toBeCloseTo(60 * 3_600, -3);
});

test('the hours of a source are its own, also where another shares its secret', async () => {
  await add(1, { secret_fingerprint: `'shared'`, source: `'b'` }, '3 hours');
  await add(1, { secret_fingerprint: `'shared'` }, '5 hours');
  await addMatch('a', 'shared', '5 hours');
  await addMatch('b', 'shared', '3 hours');
  const found = await look();
  expect([ofSource(found, 'a')?.hoursDelivered, ofSource(found, 'b')?.hoursDelivered]).toEqual([1, 1]);
});

test('a source has its answers of ten minutes, also if none of its deliveries was ever verified', async () => {
  await addAnswers('a', 'accepted', 30, '1 minute');
  await addAnswers('a', 'unauthorized', 5, '9 minutes');
  await addAnswers('a', 'unauthorized', 100, '12 minutes');
  await addAnswers('unknown', 'unauthorized', 7, '0 minutes');
  const found = await look();
  expect(found.sources).toEqual([
    {
      source: 'a',
      lastVerifiedS: null,
      secrets: [],
      hoursDelivered: 0,
      deliveries10m: 35,
      unauthorized10m: 5,
    },
    {
      source: 'unknown',
      lastVerifiedS: null,
      secrets: [],
      hoursDelivered: 0,
      deliveries10m: 7,
      unauthorized10m: 7,
    },
  ]);
});

test('a lease is held or ran out', async () => {
  await database.query(`
    insert into relay_lease (name, holder, epoch, expires_at) values
      ('held', gen_random_uuid(), 1, now() + interval '10 seconds'),
      ('lost', gen_random_uuid(), 1, now() - interval '90 seconds')`);
  const [held, lost] = (await look()).leases;
  expect(held).toMatchObject({ name: 'held', ageS: null });
  expect(held?.expiredS).toBeLessThan(0);
  expect(lost?.expiredS).toBeGreaterThanOrEqual(90);
});
