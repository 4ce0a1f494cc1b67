import { expect, test } from 'vitest';
import { keepPartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { changeReplay } from '../../../src/operators/replays/changes.queries.ts';
import { createTestDatabase } from '../../support/database.ts';
import { hold } from '../../support/outbox.ts';
import { addEntry, connectTestDatabase } from '../../support/relay.ts';
import {
  copiesInOutbox,
  countsOf,
  createTestFeeder,
  newReplay,
  seedEvents,
  stateOf,
} from '../../support/replays.ts';

async function newLedger() {
  const database = await createTestDatabase();
  const connection = connectTestDatabase(database);
  await keepPartitions(connection, { retentionDays: 30 });
  return {
    database,
    connection,
    [Symbol.asyncDispose]: async () => {
      await connection.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

test('a replay by a filter feeds each event that matched once, in the order of acceptance, and no later one', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  const before = await seedEvents(database, 130, { source: 'team-a' });
  await seedEvents(database, 20, { source: 'team-b' });
  const replay = await newReplay(connection, { filter: { source: 'team-a' } });
  await seedEvents(database, 10, { source: 'team-a', prefix: 'later_' });
  const feeder = createTestFeeder(connection);

  await feeder.after(0);
  while ((await feeder.after(100)) > 0);

  expect(replay.counts.matched).toBe(130);
  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual(before);
  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 130, skipped: 0 });
});

test('no more copies are fed than the rate allows, and a long wait saves up no burst', async () => {
  await using ledger = await newLedger();
  await seedEvents(ledger.database, 400);
  await newReplay(ledger.connection, { filter: { source: 'default' }, ratePerSecond: 60 });
  const feeder = createTestFeeder(ledger.connection);

  const fed = [await feeder.after(0)];
  for (let turn = 0; turn < 10; turn++) fed.push(await feeder.after(50));
  await ledger.database.query('delete from replay_copies');
  fed.push(await feeder.after(3_600_000));

  // 3 in 50 ms; and after an hour a tenth of a second's worth, and the one that was due.
  expect(fed).toEqual([0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 7]);
});

test('a slow rate is kept, too', async () => {
  await using ledger = await newLedger();
  await seedEvents(ledger.database, 5);
  await newReplay(ledger.connection, { filter: { source: 'default' }, ratePerSecond: 1 });
  const feeder = createTestFeeder(ledger.connection);

  await feeder.after(0);
  const fed: number[] = [];
  for (let turn = 0; turn < 12; turn++) {
    fed.push(await feeder.after(250));
    await ledger.database.query('delete from replay_copies'); // published
  }

  expect(fed).toEqual([0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
});

test('so many copies of a replay are in the outbox at most, while others have their turns', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  await seedEvents(database, 2_000);
  const [first, second] = [
    await newReplay(connection, { filter: { source: 'default' } }),
    await newReplay(connection, { filter: { source: 'default' } }),
  ];
  const feeder = createTestFeeder(connection);

  for (let turn = 0; turn < 20; turn++) await feeder.after(100);

  expect(await countsOf(database, first.id)).toMatchObject({ queued: 500 });
  expect(await countsOf(database, second.id)).toMatchObject({ queued: 500 });
});

test('replicas that all believe to lead feed each event once', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  const ids = await seedEvents(database, 480);
  const replay = await newReplay(connection, { filter: { source: 'default' } });
  const feeders = Array.from({ length: 4 }, () => createTestFeeder(connection));

  for (let turn = 0; turn < 20; turn++) await Promise.all(feeders.map((feeder) => feeder.after(100)));

  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual(ids);
  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 480, skipped: 0 });
});

test('a replica that does not lead feeds nothing, and neither does one that was stopped', async () => {
  await using ledger = await newLedger();
  await seedEvents(ledger.database, 5);
  await newReplay(ledger.connection, { filter: { source: 'default' } });
  const follower = createTestFeeder(ledger.connection, { isLeading: () => false });
  const stopped = createTestFeeder(ledger.connection);
  await stopped.stop(); // before it began
  stopped.start();
  await stopped.stop();

  for (const feeder of [follower, stopped]) {
    await feeder.after(100);
    await feeder.after(100);
  }

  expect(await copiesInOutbox(ledger.database)).toEqual([]);
});

/** The job in an event's id. */
const job = (id = '') => id.split(':')[1];

test('what cannot or must not be replayed is skipped with its reason, and the rest goes', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  const [fine, bodiless, changed, other] = await seedEvents(database, 4);
  await database.query('delete from deliveries where job_id = $1', [job(bodiless)]);
  await database.query(`update deliveries set body = '{"job_id":"x"}' where job_id = $1`, [job(changed)]);
  await database.query(
    `update deliveries set body = replace(convert_from(body, 'UTF8'), job_id, 'job_other')::bytea where job_id = $1`,
    [job(other)],
  );
  await addEntry(database, { jobId: 'pending_job', percent: 10 });
  // A batch of other events, which was written at the same time.
  await database.query(
    `insert into outbox_batches (first, sequences, bytes, recorded_at)
     select 1000, '{1000,1001}', 1, recorded_at from events where job_id = $1`,
    [job(fine)],
  );
  const parked = await addEntry(database, { jobId: 'parked_job', percent: 10 });
  await hold(database, { state: 'parked' }, `e.sequence = ${parked}`);
  await database.query(
    `insert into events (source, job_id, status, late, recorded_at, delivery_id, content_hash, repeats)
     select source, 'parked_job', status, late, recorded_at, delivery_id, '', 0 from events where job_id = $1`,
    [job(fine)],
  );
  const replay = await newReplay(connection, { filter: { source: 'default' } });
  const feeder = createTestFeeder(connection);

  await feeder.after(0);
  await feeder.after(100);

  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual([fine]);
  const skips = await database.query<{ id: string; reason: string }>(
    `select job_id || ':' || status as id, reason from replay_skips join events on sequence = event_sequence
     where replay_id = $1 order by sequence`,
    [replay.id],
  );
  expect(skips).toEqual([
    { id: `${job(bodiless)}:completed`, reason: 'its body is no longer kept' },
    {
      id: `${job(changed)}:completed`,
      reason: expect.stringContaining('it is not understood any more') as string,
    },
    { id: `${job(other)}:completed`, reason: 'it is understood as another event now' },
    { id: 'pending_job:processing', reason: 'it has not been published yet' },
    { id: 'parked_job:processing', reason: 'it is parked' },
    { id: 'parked_job:completed', reason: 'an event of its job is parked' },
  ]);
  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 1, skipped: 6 });
});

test('a copy stands behind every live entry that its job has by then, whoever commits late', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  const [id = ''] = await seedEvents(database, 1);
  await newReplay(connection, { ids: [id] });
  const feeder = createTestFeeder(connection);
  await feeder.after(0);
  // As the intake does: its job's row first, and then the entry, not committed yet.
  const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
  const { promise: isWritten, resolve: written } = Promise.withResolvers<void>();
  const live = connection.db.transaction().execute(async (trx) => {
    await trx.selectFrom('jobs').selectAll().where('job_id', '=', 'job_000001').forUpdate().execute();
    await trx
      .insertInto('outbox_held')
      .values({
        sequence: await nextSequence(database),
        source: 'default',
        job_id: 'job_000001',
        status: 'failed',
        progress_percentage: null,
        late: false,
        occurred_at: null,
        recorded_at: new Date(),
        data: '{}',
        last_error: null,
      })
      .execute();
    written();
    await mayCommit;
  });
  await isWritten;

  const feeding = feeder.after(100);
  await expect
    .poll(() =>
      database.query(`select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`, [
        database.name,
      ]),
    )
    .toHaveLength(1);
  commit();
  await live;

  expect(await feeding).toBe(1);
  const rows = await database.query(
    'select position > sequence as "isBehind" from replay_copies cross join outbox_held',
  );
  expect(rows).toEqual([{ isBehind: true }]);
});

async function nextSequence(database: { query: (text: string) => Promise<object[]> }): Promise<string> {
  const [row] = (await database.query(`select nextval('events_sequence_seq') as next`)) as { next: string }[];
  return row?.next ?? '';
}

test('copies that wait behind an event which is parked later are skipped after all, and the replay ends', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  const [id = ''] = await seedEvents(database, 1);
  const live = await addEntry(database, { jobId: 'job_000001', percent: 10 });
  const replay = await newReplay(connection, { ids: [id] });
  const feeder = createTestFeeder(connection);
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(1);

  await hold(database, { state: 'parked' }, `e.sequence = ${live}`);
  for (let turn = 0; turn < 4; turn++) await feeder.after(1_000);

  expect(await copiesInOutbox(database)).toEqual([]);
  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 0, skipped: 1 });
  expect(await stateOf(database, replay.id)).toMatchObject({ state: 'finished' });
});

test('a paused replay is fed no more until it is resumed, and a cancelled one leaves nothing in the outbox', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  await seedEvents(database, 300);
  const replay = await newReplay(connection, { filter: { source: 'default' } });
  const feeder = createTestFeeder(connection);
  const change = (to: 'pause' | 'resume' | 'cancel') =>
    connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, to));
  await feeder.after(0);
  await feeder.after(100);

  expect(await change('pause')).toMatchObject({ changed: true, replay: { state: 'paused' } });
  expect(await change('pause')).toMatchObject({ changed: false });
  expect(await feeder.after(100)).toBe(0);
  expect(await change('resume')).toMatchObject({ changed: true, replay: { state: 'running' } });
  await feeder.after(0);
  expect(await feeder.after(100)).toBe(100);
  expect(await change('cancel')).toMatchObject({ changed: true, replay: { state: 'cancelled' } });

  expect(await feeder.after(100)).toBe(0);
  expect(await copiesInOutbox(database)).toEqual([]);
  expect(await change('resume')).toBe('cancelled');
  expect(await countsOf(database, replay.id)).toMatchObject({ matched: 300, queued: 200, confirmed: 0 });
});

test('a sparse filter is looked through bit by bit', async () => {
  await using ledger = await newLedger();
  const { database, connection } = ledger;
  const [first = ''] = await seedEvents(database, 1, { prefix: 'first_' });
  // As if hundreds of thousands of others lay between.
  await database.query(`select setval('events_sequence_seq', 500000)`);
  const [last = ''] = await seedEvents(database, 1, { prefix: 'last_' });
  const replay = await newReplay(connection, { filter: { source: 'default' } });
  const feeder = createTestFeeder(connection);

  for (let turn = 0; turn < 10; turn++) await feeder.after(100);

  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual([first, last]);
  expect(await countsOf(database, replay.id)).toMatchObject({ matched: 2, queued: 2 });
});
