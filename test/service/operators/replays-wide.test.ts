// Replays of more events than may be counted: a few here, since the limit is given.

import { expect, test } from 'vitest';
import { keepPartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { findReplay } from '../../../src/operators/replays/queries.ts';
import { createReplay, previewReplay } from '../../../src/operators/replays/changes.queries.ts';
import type { EventFilter } from '../../../src/operators/replays/selection.queries.ts';
import { cliOf, cliWith } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startReceiver } from '../../support/receiver.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { copiesInOutbox, createTestFeeder, replayToNobody, seedEvents } from '../../support/replays.ts';
import { startTestService } from '../../support/service.ts';

async function start() {
  const database = await createTestDatabase();
  const connection = connectTestDatabase(database);
  await keepPartitions(connection, { retentionDays: 30 });
  const feeder = createTestFeeder(connection);
  const { db } = connection;
  return {
    database,
    preview: (filter: EventFilter, lookMax: number, sources: string[] | null = null) =>
      previewReplay(db, { selection: { filter }, sources, lookMax }, 3),
    create: async (filter: EventFilter, lookMax: number) => {
      const made = await db.transaction().execute((trx) =>
        createReplay(trx, {
          selection: { filter },
          sources: null,
          lookMax,
          queue: null,
          ratePerSecond: 1_000,
          note: null,
          createdBy: 'a test',
        }),
      );
      if (made === 'too many') throw new Error('too many replays');
      return made;
    },
    shown: (id: string) => findReplay(db, id),
    feedAll: async () => {
      await feeder.after(0);
      while ((await feeder.after(100)) > 0);
    },
    finish: async () => {
      await database.query('delete from replay_copies'); // published
      await feeder.after(100);
    },
    [Symbol.asyncDispose]: async () => {
      await connection.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

test('of more events than may be looked at, at least so many are counted, and all are fed and no later ones', async () => {
  await using place = await start();
  const { database } = place;
  const ids = await seedEvents(database, 20, { source: 'team-a' });
  await seedEvents(database, 3, { source: 'team-b' });

  const dry = await place.preview({ source: 'team-a' }, 5);
  const replay = await place.create({ source: 'team-a' }, 5);
  await seedEvents(database, 3, { source: 'team-a', prefix: 'later_' });
  await place.feedAll();
  const fed = await place.shown(replay.id);
  const copies = await copiesInOutbox(database);
  await place.finish();

  expect(dry).toMatchObject({ matched: 5, matched_exactly: false });
  expect(dry.sample.map(({ id }) => id)).toEqual(ids.slice(0, 3));
  expect(replay).toMatchObject({ counts: { matched: 5 }, matched_exactly: false });
  expect(copies.map(({ id }) => id)).toEqual(ids);
  expect(fed).toMatchObject({ state: 'running', counts: { matched: 20 }, matched_exactly: false });
  expect(await place.shown(replay.id)).toMatchObject({
    state: 'finished',
    counts: { matched: 20, queued: 20 },
    matched_exactly: true,
  });
});

test('so many as may be looked at are counted exactly, whatever else there is', async () => {
  await using place = await start();
  const { database } = place;
  const [id = ''] = await seedEvents(database, 5, { source: 'team-a', prefix: 'a_' });
  await seedEvents(database, 50, { source: 'team-b', prefix: 'b_' });
  await database.query(`update events set status = 'failed', error_code = 'X' where job_id like 'a\\_%'`);
  await database.query(`update events set late = true where job_id like 'a\\_%'`);
  const exactly = { matched: 5, matched_exactly: true };

  expect(await place.preview({ source: 'team-a' }, 5)).toMatchObject(exactly);
  expect(await place.preview({ status: 'failed' }, 5)).toMatchObject(exactly);
  expect(await place.preview({ kind: 'failed', remote_address: '10.0.0.1' }, 5)).toMatchObject(exactly);
  expect(await place.preview({ error_code: 'X' }, 5)).toMatchObject(exactly);
  expect(await place.preview({ late: true }, 5)).toMatchObject(exactly);
  expect(await place.preview({ job_id_prefix: 'a_' }, 5)).toMatchObject(exactly);
  expect(await place.preview({ job_id: id.split(':')[1] }, 1)).toMatchObject({ ...exactly, matched: 1 });
  expect(await place.preview({ late: true, source: 'team-b' }, 5)).toMatchObject({ ...exactly, matched: 0 });
  expect(await place.preview({ status: 'failed' }, 5, ['team-a', 'team-c'])).toMatchObject(exactly);
  expect(await place.preview({ secret_fingerprint: 'abcd1234' }, 5, ['team-a'])).toMatchObject(exactly);
  expect(await place.preview({ secret_fingerprint: 'abcd1234' }, 5)).toMatchObject({
    matched: 5,
    matched_exactly: false,
  });
});

test('what no index finds may be behind all that is looked at: none is counted then, and the replay finds it', async () => {
  await using place = await start();
  const { database } = place;
  await seedEvents(database, 20);
  const [rare] = await seedEvents(database, 1, { prefix: 'rare_' });
  await database.query(`update deliveries set remote_address = '10.9.9.9' where job_id like 'rare%'`);
  await seedEvents(database, 20, { prefix: 'more_' });

  expect(await place.preview({ remote_address: '10.9.9.9' }, 10)).toEqual({
    matched: 0,
    matched_exactly: false,
    matched_before: expect.stringMatching(/Z$/),
    sample: [],
  });
  const replay = await place.create({ remote_address: '10.9.9.9' }, 10);
  await place.feedAll();

  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual([rare]);
  await place.finish();
  expect(await place.shown(replay.id)).toMatchObject({ counts: { matched: 1 }, matched_exactly: true });
});

test('a wide replay of the last hours does not look through what is older', async () => {
  await using place = await start();
  const { database } = place;
  await seedEvents(database, 10, { prefix: 'old_' });
  await database.query(`update events set recorded_at = now() - interval '5 hours'`);
  await database.query(`update deliveries set received_at = (select min(recorded_at) from events)`);
  const ids = await seedEvents(database, 10);
  const from = new Date(Date.now() - 2 * 3_600_000).toISOString();

  const replay = await place.create({ from, remote_address: '10.0.0.1' }, 5);

  const [at] = await database.query<{ cursor: string; oldest: string }>(
    `select cursor_sequence as cursor,
            (select max(sequence) from events where job_id like 'old%') as oldest from replays where id = $1`,
    [replay.id],
  );
  expect(at?.cursor).toBe(at?.oldest);
  await place.feedAll();
  expect((await copiesInOutbox(database)).map(({ id }) => id)).toEqual(ids);
});

test('the command line says "at least" where not all were counted', async () => {
  await using service = await startTestService();
  const cli = await cliOf(service, { role: 'operator' });
  const [id = ''] = await seedEvents(service.database, 1);
  const { id: replay } = await replayToNobody(service.database, { ids: [id] });
  const run = await cli.run('replays', 'watch', replay);
  expect(run.code).toBe(1);
  expect(JSON.parse(run.stdout)).toMatchObject({ state: 'paused', matched_exactly: true });
  await service.database.query('update replays set matched_exactly = false, matched = 1000000');
  expect(await cli.items('replays', 'show', replay)).toMatchObject([
    { matched_exactly: false, counts: { matched: 1_000_000 } },
  ]);
  expect((await cli.onTerminal(['replays', 'show', replay])).screen).toMatch(/matched +at least 1,000,000/);
  const watched = await cli.onTerminal(['replays', 'watch', replay]);
  expect(watched.screen).toContain('paused: 0 of at least 1,000,000 events in queue nobody');
});

test('a wide replay that is counted first is begun though no event was found yet', async () => {
  const created = {
    id: '01a1ff8a-4104-756a-a9d6-586f15a50f62',
    state: 'running',
    paused_because: null,
    created_at: '2026-01-15T10:30:00Z',
    created_by: 'Ada',
    note: null,
    queue: null,
    rate_per_second: 100,
    counts: { matched: 0, queued: 0, confirmed: 0, returned: 0, failed: 0, skipped: 0 },
    matched_exactly: false,
    updated_at: '2026-01-15T10:30:00Z',
    finished_at: null,
  };
  await using api = await startReceiver((response, _received, index) => {
    const answer = index === 0 ? { matched: 0, matched_exactly: false, sample: [] } : created;
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
  });
  const cli = cliWith({ TALLYHOOK_URL: `http://127.0.0.1:${api.port}`, TALLYHOOK_TOKEN: 'thk_test_x' });

  const run = await cli.run('replay', '--address', '10.9.9.9', '--yes', '--detach');

  expect(run.code).toBe(0);
  expect(run.stderr).toContain('none was found yet');
  expect(JSON.parse(run.stdout)).toMatchObject({ id: created.id, matched_exactly: false });
});
