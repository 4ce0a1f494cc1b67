// The migration to an outbox by batches, from a ledger that the program before it filled.

import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { migrate } from '../../../src/ledger/migrate.ts';
import { recordDeliveries } from '../../../src/ledger/record.ts';
import { changeReplay } from '../../../src/operators/replays/replays.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { copies, outboxCount, outOfOrder } from '../../support/facts.ts';
import { lockWaits } from '../../support/ledger.ts';
import { migrateTo, migrations } from '../../support/migrations.ts';
import {
  copyBefore,
  publishBefore,
  RECORD_BEFORE,
  recordBefore,
  settleBefore,
  valuesBefore,
} from '../../support/old-outbox.ts';
import { eventRecord } from '../../support/records.ts';
import { connectTestDatabase, createTestRelay, retry } from '../../support/relay.ts';
import { countsOf, createTestFeeder, stateOf } from '../../support/replays.ts';
import { completed, failed, type Notification, progress } from '../../support/sender.ts';
import { openSession, openTransaction } from '../../support/transaction.ts';

const upTo = (last: string) => ({
  getMigrations: async () => Object.fromEntries(Object.entries(migrations).filter(([name]) => name <= last)),
});
/** What the program before knows, and the last migration before ours. */
const [PROGRAM_BEFORE, BEFORE] = ['0008-replicas', '0009-oldest-program'];

const QUEUE = `test.migration.${randomUUID()}`;
const running = { id: randomUUID(), queue: null };
const paused = { id: randomUUID(), queue: QUEUE };

async function createOldDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ empty: true });
  await migrate(database.url, undefined, upTo(PROGRAM_BEFORE));
  await database.query(`
    select make_partition(parent, (now() at time zone 'UTC')::date + n)
    from unnest(array['deliveries', 'publications']) as parent, generate_series(0, 1) as n`);
  return database;
}

/**
 * Of each job two events, the first of which is: of `fresh` not tried yet, `failing` tried, `returned` and `parked` as they say.
 * Six jobs were published. One replay is under way: one copy was confirmed, one waits, one has failed, one is still to be
 * made. Another replay waits for its queue.
 */
async function fill(database: TestDatabase): Promise<void> {
  const jobs = ['fresh', 'failing', 'returned', 'parked'];
  const past = ['a', 'b', 'c', 'd', 'e', 'f'];
  await recordBefore(database, ...jobs.map((job) => progress(job, 10)), ...past.map((job) => completed(job)));
  await recordBefore(database, ...jobs.map((job) => progress(job, 20)));
  await settleBefore(database, 'failing', { state: 'pending', attempts: 3, error: 'nacked' });
  await settleBefore(database, 'returned', { state: 'returned', attempts: 1, error: '312 NO_ROUTE' });
  await settleBefore(database, 'parked', { state: 'parked', attempts: 20, error: 'nacked' });
  await publishBefore(database, past);
  await copyBefore(database, running, ['b', 'c']);
  await copyBefore(database, paused, ['e', 'f']);
  await database.query(
    `update outbox set attempts = 2, last_error = 'nacked' where replay_id = $1 and job_id = 'c'`,
    [running.id],
  );
  await database.query(
    `update outbox set state = 'returned', attempts = 1, last_error = '312 NO_ROUTE'
     where replay_id = $1 and job_id = 'e'`,
    [paused.id],
  );
  await addReplay(database, running, { of: ['a', 'b', 'c', 'd'], cursor: 'c', queued: 3, confirmed: 1 });
  await addReplay(database, paused, { of: ['e', 'f'], cursor: 'f', queued: 2, confirmed: 0 });
}

async function addReplay(
  database: TestDatabase,
  { id, queue }: { id: string; queue: string | null },
  has: { of: readonly string[]; cursor: string; queued: number; confirmed: number },
): Promise<void> {
  await database.query(
    `insert into replays (
       id, created_at, created_by, selection, up_to_sequence, queue, rate_per_second, state, paused_because, matched,
       cursor_sequence, queued, confirmed, updated_at
     )
     select $1, now(), 'a test',
            json_build_object('event_ids', json_agg('default:' || job_id || ':completed'),
                              'sequences', json_agg(sequence::text))::text,
            max(sequence), $2, 100, case when $2::text is null then 'running' else 'paused' end,
            case when $2::text is not null then 'there is no queue ' || $2 end, count(*),
            max(sequence) filter (where job_id = $4), $5, $6, now()
     from events where job_id = any($3)`,
    [id, queue, has.of, has.cursor, has.queued, has.confirmed],
  );
}

const LIVE = `sequence, source, job_id, status, progress_percentage, late, occurred_at, recorded_at, data, state, attempts,
  due_at, last_error`;
const COPY = `replay_id, replay_of, replayed_by, queue, source, job_id, status, progress_percentage, late, occurred_at,
  recorded_at, data, state, attempts, due_at, last_error`;

/** All that the old outbox has, each by its number. */
const oldOutbox = async (database: TestDatabase) => ({
  live: await database.query(`select ${LIVE} from outbox where replay_id is null order by sequence`),
  copies: await database.query(
    `select sequence as position, ${COPY} from outbox where replay_id is not null order by sequence`,
  ),
  replays: await database.query('select * from replays order by id'),
});

const newOutbox = async (database: TestDatabase) => ({
  live: await database.query(`select ${LIVE} from outbox_held order by sequence`),
  copies: await database.query(`select position, ${COPY} from replay_copies order by position`),
  replays: await database.query('select * from replays order by id'),
});

const holds = async (database: TestDatabase): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await database.query<{ job: string; hold: number }>('select job_id as job, hold from jobs')).map(
      ({ job, hold }) => [job, hold],
    ),
  );

describe('a ledger that the program before has filled', () => {
  test('keeps all entries with their states, attempts and numbers, and its jobs wait as before', async () => {
    await using database = await createOldDatabase();
    await fill(database);
    const before = await oldOutbox(database);
    expect([before.live.length, before.copies.length]).toEqual([8, 4]);

    await migrate(database.url);

    expect(await newOutbox(database)).toEqual(before);
    const unheld = { a: 0, b: 0, c: 0, d: 0, e: 0, f: 0 };
    expect(await holds(database)).toEqual({ ...unheld, fresh: 1, failing: 1, returned: 1, parked: 1 });
  });

  test('a job whose only entry was returned holds nothing', async () => {
    await using database = await createOldDatabase();
    await recordBefore(database, completed('returned'));
    await settleBefore(database, 'returned', { state: 'returned', attempts: 1, error: '312 NO_ROUTE' });

    await migrate(database.url);

    expect(await holds(database)).toEqual({ returned: 0 });
  });

  test('is published in order together with new events, and its replays end with exact counts', async () => {
    const exchange = newExchange();
    await using database = await createOldDatabase();
    await fill(database);
    await migrate(database.url);
    await using connection = connectTestDatabase(database);
    await using bus = await listen(exchange);
    await using queue = await listen(newExchange(), { queue: QUEUE, bindings: [] });
    await using relay = await createTestRelay({ database, exchange });
    await relay.lease.attempt();
    const add = (...contents: Notification[]) =>
      recordDeliveries(
        connection,
        contents.map((content) => eventRecord(content)),
      );
    await add(...['fresh', 'failing', 'returned', 'parked', 'new'].map((job) => completed(job)));
    await add(failed('a'));

    const feeder = createTestFeeder(connection);
    const isFinished = async ({ id }: { id: string }) => {
      await feeder.after(1_000);
      return (await stateOf(database, id))?.state === 'finished';
    };
    await relay.runUntil(() => isFinished(running));
    await relay.runUntil(async () => (await outboxCount(database)) === 4 + 2); // the returned one, the parked job, the paused replay
    await connection.db.transaction().execute((trx) => changeReplay(trx, paused.id, 'resume'));
    await relay.runUntil(() => isFinished(paused));

    // 6 of the jobs that go on, 2 of the one that was returned, the new one, the one of job a, and 3 copies.
    await bus.received(13);
    await queue.received(2);
    expect(outOfOrder(bus.messages)).toEqual([]);
    expect(await countsOf(database, running.id)).toMatchObject({
      matched: 4,
      queued: 4,
      confirmed: 4,
      failed: 0,
    });
    expect(await countsOf(database, paused.id)).toMatchObject({
      matched: 2,
      queued: 2,
      confirmed: 2,
      returned: 0,
    });
    expect(queue.ids()).toEqual(['default:e:completed', 'default:f:completed']);
    expect((await holds(database))['parked']).toBeGreaterThan(0);

    expect(await retry(connection.db, 'returned')).toBe(1);
    expect(await retry(connection.db, 'parked')).toBe(1);
    await relay.runUntil(async () => (await outboxCount(database)) === 0);
    await bus.received(13 + 4);
    expect(bus.ids().filter((id) => id.includes(':parked:'))).toEqual([
      'default:parked:processing:10',
      'default:parked:processing:20',
      'default:parked:completed',
    ]);
    expect([...copies(bus.messages).values()].every((count) => count === 1)).toBe(true);
    expect(Object.values(await holds(database)).every((hold) => hold === 0)).toBe(true);
  });

  test('goes back to the tables of before and forward again with all that it had', async () => {
    await using database = await createOldDatabase();
    await fill(database);
    const before = await oldOutbox(database);
    await migrate(database.url);

    await migrateTo(database, BEFORE);
    expect(await oldOutbox(database)).toEqual(before);
    await recordBefore(database, completed('fresh'), completed('later'));
    const after = await oldOutbox(database);
    await migrate(database.url);

    expect(await newOutbox(database)).toEqual(after);
    expect(await holds(database)).toMatchObject({ fresh: 1, later: 1, a: 0 });
  });

  test('does not go back while it has events whose content the tables of before lack', async () => {
    await using database = await createOldDatabase();
    await recordBefore(database, progress('held', 10));
    await migrate(database.url);
    await using connection = connectTestDatabase(database);
    const refusal = 'events are still to be published: let the relay publish them first';
    await recordDeliveries(connection, [eventRecord(completed('held'))]);
    await expect(migrateTo(database, BEFORE)).rejects.toThrow(refusal);

    await database.query('delete from outbox_held where data is null');
    await recordDeliveries(connection, [eventRecord(completed('new'))]);
    await expect(migrateTo(database, BEFORE)).rejects.toThrow(refusal);

    await database.query('delete from outbox_batches');
    await migrateTo(database, BEFORE);
    expect((await oldOutbox(database)).live).toEqual([expect.objectContaining({ job_id: 'held' })]);
  });
});

describe('beside programs of before', () => {
  test('the migration waits until the lease of their leader has expired, while deliveries go on', async () => {
    await using database = await createOldDatabase();
    await recordBefore(database, completed('first'));
    const [lease] = await database.query<{ until: string }>(
      `insert into relay_lease values ('relay', gen_random_uuid(), 1, clock_timestamp() + interval '2 seconds')
       returning expires_at::text as until`,
    );

    const migrating = migrate(database.url);
    await using leader = await openSession(database);
    const isLeaseLocked = async () =>
      (await database.query(`select from relay_lease where name = 'relay' for update skip locked`)).length ===
      0;
    await expect.poll(isLeaseLocked, { interval: 10 }).toBe(true);
    const renewal = leader.query(
      `update relay_lease set expires_at = now() + interval '1 hour' where name = 'relay'`,
    );
    await expect.poll(() => lockWaits(database), { interval: 10 }).toHaveLength(1);
    await recordBefore(database, completed('second'));
    expect(await database.query('select from outbox')).toHaveLength(2);
    await migrating;

    const [row] = await database.query<{ isOver: boolean }>(
      'select clock_timestamp() >= $1::timestamptz as "isOver"',
      [lease?.until],
    );
    expect(row).toEqual({ isOver: true });
    await renewal; // it leads again now, and finds no outbox
    expect((await newOutbox(database)).live).toHaveLength(2);
    expect(await holds(database)).toEqual({ first: 1, second: 1 });
  });

  test('the migration waits for a delivery that is being recorded, and takes it along', async () => {
    await using database = await createOldDatabase();
    await using intake = await openTransaction(database);
    await intake.query(
      `insert into jobs (source, job_id, first_seen_at, last_seen_at) values ('default', 'other', now(), now())`,
    );

    const migrating = migrate(database.url);
    await expect.poll(() => lockWaits(database), { interval: 10 }).toEqual([{ kind: 'relation' }]);
    await recordBefore(intake, completed('late'));
    await intake.query('commit');
    await migrating;

    expect((await newOutbox(database)).live).toEqual([expect.objectContaining({ job_id: 'late' })]);
  });

  test('their writes fail from then on and leave nothing, also those that are prepared', async () => {
    await using database = await createOldDatabase();
    await using intake = await openSession(database);
    const write = (content: Notification) =>
      intake.query({ name: 'record-batch', text: RECORD_BEFORE, values: valuesBefore([content]) });
    await write(progress('job', 10));

    await migrate(database.url);

    // Not a value that Postgres refuses but a failure of the ledger: such deliveries are answered with 503.
    await expect(write(completed('job'))).rejects.toMatchObject({ code: '42P01' });
    expect(await database.query('select status from events')).toEqual([{ status: 'processing' }]);
    expect(await database.query('select status from deliveries')).toEqual([{ status: 'processing' }]);
  });
});
