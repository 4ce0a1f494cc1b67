// Replays that the ledger makes trouble for: they hold up no other, and are not tried for ever in the same way.

import { expect, test } from 'vitest';
import { keepPartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { createFeeder } from '../../../src/operators/replays/feeder/feeder.ts';
import { changeReplay } from '../../../src/operators/replays/changes.queries.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { copiesInOutbox, countsOf, newReplay, seedEvents, stateOf } from '../../support/replays.ts';
import { createTestLog } from '../../support/service.ts';

async function start() {
  const database = await createTestDatabase();
  const connection = connectTestDatabase(database);
  await keepPartitions(connection, { retentionDays: 30 });
  const { log, lines } = createTestLog();
  let clockMs = 0;
  const feeder = createFeeder({
    connection,
    isLeading: () => true,
    now: () => clockMs,
    log,
    onFed: () => {},
  });
  return {
    database,
    connection,
    after: (ms: number) => {
      clockMs += ms;
      return feeder.runOnce();
    },
    /** What was logged of a replay. */
    told: (id: string) => lines.filter(({ replay }) => replay === id),
    [Symbol.asyncDispose]: async () => {
      await connection.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** From now on a statement that reads more than so many events takes too long, as Postgres says it. */
async function limitReading(database: TestDatabase, events: number): Promise<void> {
  await database.query(`
    create function take_time() returns boolean language plpgsql volatile as $$
    declare seen int := coalesce(nullif(current_setting('test.seen', true), ''), '0')::int + 1;
    begin
      perform set_config('test.seen', seen::text, true); -- until the end of the statement's transaction
      if seen > ${events} then raise exception 'canceling statement' using errcode = 'query_canceled'; end if;
      return true;
    end $$`);
  await database.query('alter table events rename to all_events');
  await database.query('create view events as select * from all_events where take_time()');
}

test('a replay that fails holds up no later one, is named in the log, and is tried ever more seldom', async () => {
  await using place = await start();
  const { database, connection, after, told } = place;
  const ids = await seedEvents(database, 5);
  const broken = await newReplay(connection, { filter: { source: 'default' } });
  const whole = JSON.stringify({ filter: { source: 'default' } });
  const select = (selection: string) =>
    database.query('update replays set selection = $2 where id = $1', [broken.id, selection]);
  await select('{"filter":{"from":"no time"}}');
  const healthy = await newReplay(connection, { filter: { source: 'default' } });

  await after(0);
  expect(await after(50)).toBe(5);

  expect((await copiesInOutbox(database)).map(({ id, replay_id: by }) => [id, by])).toEqual(
    ids.map((id) => [id, healthy.id]),
  );
  const failed: number[] = [];
  for (const ms of [900, 100, 1_900, 100, 3_900, 100, 3_600_000, 3_600_000, 3_600_000, 59_000, 1_000]) {
    await after(ms);
    failed.push(told(broken.id).length);
  }
  expect(failed).toEqual([1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 8]);
  expect(told(broken.id)[0]).toMatchObject({
    msg: 'a replay could not go on',
    err: { message: 'the database refused a value' },
  });
  await select('no JSON');
  await after(60_000);
  expect(told(broken.id)).toHaveLength(9);

  await select(whole);
  await after(60_000);

  expect(await countsOf(database, broken.id)).toMatchObject({ queued: 5 });
});

test('one that may go but slowly is tried ever more seldom, too', async () => {
  await using place = await start();
  const { database, connection, after, told } = place;
  await seedEvents(database, 5);
  const broken = await newReplay(connection, { filter: { source: 'default' }, ratePerSecond: 1 });
  await database.query(`update replays set selection = '{"filter":{"from":"no time"}}'`);

  for (let turn = 0; turn < 60; turn++) await after(1_000);

  // Not before the first second; then after 1, 2, 4, 8, 16 and 32.
  expect(told(broken.id).length).toBeLessThanOrEqual(6);
});

test('a search through the events that takes too long is cut in halves until it does not', async () => {
  await using place = await start();
  const { database, connection, after, told } = place;
  const ids: string[] = [];
  for (const [index, at] of [1, 3_000, 6_000, 9_000, 60_000].entries()) {
    await database.query(`select setval('events_sequence_seq', ${at})`);
    ids.push(...(await seedEvents(database, 1, { prefix: `sparse${index}_` })));
  }
  const replay = await newReplay(connection, {
    filter: { secret_fingerprint: 'abcd1234', remote_address: '10.0.0.1' },
  });
  await limitReading(database, 2);

  for (let turn = 0; turn < 12; turn++) await after(10_000);

  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual(ids);
  expect(await countsOf(database, replay.id)).toMatchObject({ queued: 5, skipped: 0 });
  expect(told(replay.id)[0]).toMatchObject({ msg: 'a replay could not go on', err: { code: '57014' } });
});

test('a replay whose events take too long to find, however few are looked at, is paused and says why', async () => {
  await using place = await start();
  const { database, connection, after } = place;
  await seedEvents(database, 2);
  const replay = await newReplay(connection, { filter: { secret_fingerprint: 'abcd1234' } });
  await limitReading(database, 0);

  for (let turn = 0; turn < 15; turn++) await after(60_000);

  expect(await stateOf(database, replay.id)).toEqual({
    state: 'paused',
    paused_because: 'the database takes too long to find its events',
  });
  await database.query('drop view events');
  await database.query('alter table all_events rename to events');
  await connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, 'resume'));
  await after(0);
  expect(await after(60_000)).toBe(2);
});
