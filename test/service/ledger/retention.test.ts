// Years of data, and a statement time-out that no large delete stays below: what is too old goes, bit by bit, and nobody
// who delivers has to wait for it.

import { expect, test } from 'vitest';
import { connectDatabase, type DatabaseConnection } from '../../../src/ledger/sessions/database.ts';
import { recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { SLICE_ROWS } from '../../../src/ledger/upkeep/retention.ts';
import { coarsenRollups } from '../../../src/ledger/counts/rollups.ts';
import { keepUp } from '../../../src/ledger/upkeep/upkeep.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { lockWaits } from '../../support/ledger.ts';
import { eventRecord } from '../../support/records.ts';
import { completed, newJobId } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';
import { OUTBOX } from '../../support/outbox.ts';

const OLD = 300_000;

function connect(database: TestDatabase, statementTimeoutMs: number): DatabaseConnection & AsyncDisposable {
  const connection = connectDatabase({
    url: database.url,
    name: 'test',
    connections: 2,
    statementTimeoutMs,
    lockTimeoutMs: statementTimeoutMs,
    queryTimeoutMs: statementTimeoutMs + 1_000,
    log: createTestLog().log,
  });
  return { ...connection, [Symbol.asyncDispose]: connection.close };
}

/** Returned events of two months ago, with copies of a paused replay among them, then young and waiting ones. */
async function addReturned(database: TestDatabase): Promise<void> {
  const add = (from: number, to: number, columns: string) =>
    database.query(`
      insert into outbox_held (sequence, source, job_id, status, late, recorded_at, data, state)
      select n, 'default', 'job-' || n, 'completed', false, ${columns} from generate_series(${from}, ${to}) n`);
  const old = `now() - interval '60 days', '{}'`;
  await database.query(`
    insert into replay_copies (position, replay_id, replay_of, replayed_by, source, job_id, status, late, recorded_at, data, state)
    select n, '00000000-0000-7000-8000-000000000001', n, 'Ada', 'default', 'job-' || n, 'completed', false, ${old}, 'returned'
    from generate_series(1, 5000) n`);
  await add(5_001, 5_000 + OLD, `${old}, 'returned'`);
  await add(400_001, 400_100, `${old}, 'pending'`);
  await add(400_101, 400_200, `${old}, 'parked'`);
  await add(400_201, 400_300, `now(), '', 'returned'`);
  await database.query(`select setval('events_sequence_seq', 1000000)`);
}

async function addOldPartitions(database: TestDatabase): Promise<void> {
  for (const parent of ['deliveries', 'publications', 'publication_batches']) {
    for (const day of ['2020-01-01', '2020-01-02']) {
      await database.query(
        `create table ${parent}_${day.replaceAll('-', '')} partition of ${parent}
         for values from ('${day} 00:00:00+00') to ('${day} 24:00:00+00')`,
      );
    }
  }
}

const oldPartitions = (database: TestDatabase) =>
  database.query(
    `select relname from pg_class where relispartition and relname ~ '_2020' and relkind = 'r' order by 1`,
  );

test('hundreds of thousands of old returned events go in slices, and every delivery beside is recorded', async () => {
  await using database = await createTestDatabase();
  await addReturned(database);
  await addOldPartitions(database);
  await using upkeep = connect(database, 500); // less than a single delete of them all takes
  await using intake = connect(database, 3_000);
  const { log, lines } = createTestLog();
  const state = { isOver: false };
  const delivering = (async () => {
    let recorded = 0;
    for (; !state.isOver; recorded++) {
      const [delivery] = await recordDeliveries(intake, [eventRecord(completed(newJobId()))]);
      expect(delivery).toMatchObject({ outcome: 'accepted' });
    }
    return recorded;
  })();

  const runs: boolean[] = [];
  while (runs.at(-1) !== true && runs.length < 5) {
    runs.push(await keepUp(upkeep, { retentionDays: 30, log }));
  }
  state.isOver = true;

  expect(await delivering).toBeGreaterThan(10);
  expect(lines).toEqual([]);
  expect(runs).toEqual([false, true]); // no run goes on for ever
  expect(await oldPartitions(database)).toEqual([]);
  expect(
    await database.query(
      `select state, count(*)::int, count(replay_id)::int as copies from ${OUTBOX} where job_id like 'job-%' group by 1 order by 1`,
    ),
  ).toEqual([
    { state: 'parked', count: 100, copies: 0 },
    { state: 'pending', count: 100, copies: 0 },
    { state: 'returned', count: 5_100, copies: 5_000 },
  ]);
});

/** How long one statement takes for all minutes, on this machine. It is undone. */
async function msAtOnce(database: TestDatabase): Promise<number> {
  await using connection = connect(database, 30_000);
  const undo = new Error('undone');
  const startedMs = performance.now();
  const done = connection.db.transaction().execute(async (trx) => {
    await coarsenRollups(trx, 1_000_000);
    throw undo;
  });
  await expect(done).rejects.toBe(undo);
  return performance.now() - startedMs;
}

test('minutes of many sources are added up to hours in slices, and none is lost', async () => {
  await using database = await createTestDatabase();
  await database.query(`
    insert into rollups (minute, measure, source, result, bucket, count)
    select date_trunc('day', now()) - interval '4 days' + make_interval(mins => m), 'answer', 'source-' || s, 'accepted', b, 1
    from generate_series(0, 59) m, generate_series(1, 250) s, generate_series(1, 10) b`);
  await using upkeep = connect(database, Math.max(500, (await msAtOnce(database)) / 2));
  const { log, lines } = createTestLog();

  expect(await keepUp(upkeep, { retentionDays: 30, log })).toBe(true);

  expect(lines).toEqual([]);
  expect(await database.query('select from rollups')).toEqual([]);
  expect(await database.query('select count, count(*)::int as rows from rollups_hourly group by 1')).toEqual([
    { count: '60', rows: 2_500 },
  ]);
});

test('a part of the upkeep that fails keeps no other from its turn, and is named', async () => {
  await using database = await createTestDatabase();
  await addOldPartitions(database);
  await database.query(`insert into refusals values ('2020-01-01', 'old', 1, 1)`);
  await database.query(`
    insert into drift values ('old', 'field', 'completed', 'name', 'string', 1, '2020-01-01', '2020-01-01', gen_random_uuid())`);
  await using reader = await openSession(database);
  await reader.query('begin; select count(*) from deliveries; lock table refusals'); // a dump, and a change of a table
  await using upkeep = connect(database, 1_500);
  const { log, lines } = createTestLog();

  await keepUp(upkeep, { retentionDays: 30, log });

  expect(lines).toEqual([
    expect.objectContaining({
      msg: 'upkeep failed',
      part: 'partitions',
      err: expect.objectContaining({ code: '55P03' }),
    }),
    expect.objectContaining({
      msg: 'upkeep failed',
      part: 'refusals',
      err: expect.objectContaining({ code: '57014' }),
    }),
  ]);
  expect(await database.query('select from drift')).toEqual([]);
  const left = await oldPartitions(database);
  expect(left).toEqual([{ relname: 'deliveries_20200101' }, { relname: 'deliveries_20200102' }]);

  await reader.query('rollback');
  expect(await keepUp(upkeep, { retentionDays: 30, log })).toBe(true);
  expect(await oldPartitions(database)).toEqual([]);
  expect(await database.query('select from refusals')).toEqual([]);
});

test('whoever stops waits for the one drop that is under way, and begins no other', async () => {
  await using database = await createTestDatabase();
  await addOldPartitions(database);
  const before = await oldPartitions(database);
  await using reader = await openSession(database);
  await reader.query('begin; lock table deliveries in access share mode');
  await using relay = await startTestService({ database, env: { SHUTDOWN_DELAY_MS: '500' } });
  await expect.poll(() => lockWaits(database)).toContainEqual({ kind: 'relation' }); // and the relay's load behind it

  const stopped = relay.service.stop();
  await reader.query('rollback');
  await stopped;

  expect(await oldPartitions(database)).toEqual(before.slice(1));
  expect(relay.log.filter(({ msg }) => msg === 'upkeep failed')).toEqual([]);
});

test('replicas that keep up at once do not get in their own way', async () => {
  await using database = await createTestDatabase();
  await database.query(`
    insert into refusals select '2020-01-01'::timestamptz + make_interval(mins => n), 'old', 1, 1
    from generate_series(1, ${5 * SLICE_ROWS}) n`);
  await using one = connect(database, 1_000);
  await using other = connect(database, 1_000);
  const { log, lines } = createTestLog();

  await Promise.all(
    [one, other, one, other].map((connection) => keepUp(connection, { retentionDays: 30, log })),
  );

  expect(lines).toEqual([]);
  expect(await database.query('select from refusals')).toEqual([]);
});
