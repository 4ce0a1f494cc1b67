// The one statement that tallies a batch, under concurrency, and the upkeep of its tables.

import { describe, expect, test } from 'vitest';
import { connectDatabase, type DatabaseConnection } from '../../../src/ledger/sessions/database.ts';
import { DAYS_AHEAD, keepPartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { hold } from '../../support/outbox.ts';
import { createPendingLoads } from '../../../src/relay/pending.ts';
import { recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { addRefusals } from '../../../src/ledger/counts/refusals.ts';
import { keepUp } from '../../../src/ledger/upkeep/upkeep.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { deliveries, events, jobs, outbox, partitionsOf, refusals } from '../../support/ledger.ts';
import { eventRecord, refusedRecord } from '../../support/records.ts';
import { completed, failed, newJobId, progress } from '../../support/sender.ts';
import { createTestLog } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';

const ALL_PENDING = { since: undefined, except: { batches: [], events: [] }, inFlight: [], bytes: 1_000_000 };

async function connectTo(
  database: TestDatabase,
  options: { connections?: number } = {},
): Promise<DatabaseConnection & AsyncDisposable> {
  const connection = connectDatabase({
    url: database.url,
    name: 'test',
    connections: options.connections ?? 2,
    statementTimeoutMs: 5_000,
    lockTimeoutMs: 4_000,
    queryTimeoutMs: 6_000,
    log: createTestLog().log,
  });
  await keepPartitions(connection, { retentionDays: 30 });
  return { ...connection, [Symbol.asyncDispose]: connection.close };
}

async function daysFromNow(database: TestDatabase, from: number, to: number): Promise<string[]> {
  const rows = await database.query<{ day: string }>(
    `select to_char((now() at time zone 'UTC')::date + n, 'YYYYMMDD') as day from generate_series($1::int, $2::int) n order by n`,
    [from, to],
  );
  return rows.map(({ day }) => day);
}

async function addOld(database: TestDatabase, parent: string, daysAgo: number): Promise<string> {
  const [day = ''] = await daysFromNow(database, -daysAgo, -daysAgo);
  const name = `${parent}_${day}`;
  await database.query(
    `create table ${name} partition of ${parent} for values from ('${day} 00:00:00+00') to (('${day}'::date + 1)::timestamp at time zone 'UTC')`,
  );
  return name;
}

describe('recording a batch', () => {
  test('outcomes come back in the order of the batch, whatever they are', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    const [a, b] = [newJobId(), newJobId()];
    await recordDeliveries(connection, [eventRecord(completed(b)), eventRecord(progress(a, 50))]);

    const recorded = await recordDeliveries(connection, [
      refusedRecord({ outcome: 'refused' }),
      eventRecord(completed(b, { cost_cents: 1 })),
      eventRecord(progress(a, 20)),
      refusedRecord({ source: 'unknown' }),
      eventRecord(completed(b)),
      eventRecord(progress(a, 20, { x: 1 })),
      eventRecord(failed(newJobId())),
      eventRecord(progress(a, 20)),
    ]);

    expect(recorded).toMatchObject([
      { outcome: 'refused', late: false },
      { outcome: 'conflict', late: false },
      { outcome: 'accepted', late: true },
      { outcome: 'unauthorized', late: false },
      { outcome: 'duplicate', late: false },
      { outcome: 'conflict', late: true },
      { outcome: 'accepted', late: false },
      { outcome: 'duplicate', late: true },
    ]);
    expect((await events(database)).map(({ repeats }) => repeats)).toEqual(
      expect.arrayContaining([2, 0, 2, 0]),
    );
    expect(await outbox(database)).toHaveLength(4);
  });

  test('an empty batch is no trouble', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);

    expect(await recordDeliveries(connection, [])).toEqual([]);
  });

  test('a batch is recorded wholly or not at all', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    const good = eventRecord(completed('good'));

    await expect(
      recordDeliveries(connection, [good, { ...refusedRecord(), source: 'a NUL \0 that text cannot hold' }]),
    ).rejects.toMatchObject({ code: expect.stringMatching(/^22/) });

    expect(await events(database)).toEqual([]);
    expect(await jobs(database)).toEqual([]);
    expect(await deliveries(database)).toEqual([]);
    expect(await recordDeliveries(connection, [good])).toMatchObject([{ outcome: 'accepted', late: false }]);
  });

  test('times are cut to microseconds, and text that Postgres would not read as a time is none the less recorded', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    const times = [
      '2026-01-15T10:35:00Z',
      '2026-01-15T10:35:00.9Z',
      '2026-01-15T10:35:00.1234569Z',
      `2026-01-15T10:35:00.${'9'.repeat(10_000)}Z`,
      '0001-01-01T00:00:00Z',
      '9999-12-31T23:59:59.9999999Z',
    ];

    for (const [index, time] of times.entries()) {
      await recordDeliveries(connection, [eventRecord(completed(`job_${index}`, { completed_at: time }))]);
    }

    const rows = await database.query<{ time: string }>(
      `select to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as time from events order by sequence`,
    );
    expect(rows.map(({ time }) => time)).toEqual([
      '2026-01-15T10:35:00.000000Z',
      '2026-01-15T10:35:00.900000Z',
      '2026-01-15T10:35:00.123456Z',
      '2026-01-15T10:35:00.999999Z',
      '0001-01-01T00:00:00.000000Z',
      '9999-12-31T23:59:59.999999Z',
    ]);
    const { found } = await createPendingLoads(connection)({ ...ALL_PENDING, limit: times.length });
    expect(found.map(({ entry }) => entry.occurredAt)).toEqual(times);
  });

  test('two replicas that record the same jobs in opposite orders never deadlock', async () => {
    await using database = await createTestDatabase();
    await using one = await connectTo(database);
    await using other = await connectTo(database);
    const names = Array.from({ length: 60 }, newJobId);
    const rounds = 40;

    async function record(connection: DatabaseConnection, isReversed: boolean): Promise<string[]> {
      const outcomes: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const batch = names.map((name) => eventRecord(progress(name, round)));
        const ordered = isReversed ? batch.toReversed() : batch;
        for (const { outcome } of await recordDeliveries(connection, ordered)) outcomes.push(outcome);
      }
      return outcomes;
    }
    const outcomes = (
      await Promise.all([record(one, false), record(other, true), record(one, true), record(other, false)])
    ).flat();

    expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(names.length * rounds);
    expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(names.length * rounds * 3);
    expect(await events(database)).toHaveLength(names.length * rounds);
    const [deadlocks] = await database.query<{ deadlocks: string }>(
      'select deadlocks from pg_stat_database where datname = current_database()',
    );
    expect(deadlocks).toEqual({ deadlocks: '0' });
  });

  test('a job’s events are numbered in the order in which they were committed, whoever wrote them', async () => {
    await using database = await createTestDatabase();
    await using one = await connectTo(database, { connections: 4 });
    await using other = await connectTo(database, { connections: 4 });
    const names = Array.from({ length: 5 }, newJobId);
    // Notes the order of commits, by the last thing that each transaction does under its job's lock.
    await database.query(
      'create table committed (place bigint generated always as identity, sequence bigint)',
    );
    await database.query(`
      create function note() returns trigger language plpgsql as $$
      begin insert into committed (sequence) values (new.sequence); return null; end $$`);
    await database.query(`
      create constraint trigger note after insert on events deferrable initially deferred
      for each row execute function note()`);

    await Promise.all(
      Array.from({ length: 80 }, (_, index) =>
        recordDeliveries(
          index % 2 ? one : other,
          (index % 3 ? names : names.toReversed()).map((name) => eventRecord(progress(name, index))),
        ),
      ),
    );

    const rows = await database.query<{ job_id: string; sequence: string }>(
      'select job_id, sequence from committed join events using (sequence) order by job_id, place',
    );
    expect(rows).toHaveLength(400);
    for (const name of names) {
      const sequences = rows.filter(({ job_id }) => job_id === name).map(({ sequence }) => BigInt(sequence));
      expect(sequences).toEqual(sequences.toSorted((a, b) => (a < b ? -1 : 1)));
    }
  });

  test('of two ends of a job the first is when it ended, and the last is its status', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    const jobId = newJobId();

    await recordDeliveries(connection, [eventRecord(progress(jobId, 90))]);
    await recordDeliveries(connection, [eventRecord(failed(jobId))]);
    await recordDeliveries(connection, [eventRecord(completed(jobId))]);
    await recordDeliveries(connection, [eventRecord(failed(jobId))]);

    const [job] = await jobs(database);
    expect(job).toMatchObject({
      highest_progress: 90,
      last_status: 'completed',
      terminal_at: job?.failed_at,
    });
    expect(
      await database.query(
        'select failed_at > first_seen_at and completed_at > failed_at and last_seen_at > completed_at as grows from jobs',
      ),
    ).toEqual([{ grows: true }]);
  });
});

describe('counts of refusals', () => {
  test('replicas add to one row a minute and source, and do not deadlock', async () => {
    await using database = await createTestDatabase();
    await using one = await connectTo(database);
    await using other = await connectTo(database);
    const counts = ['a', 'b', 'c', 'd'].map((source) => ({ source, unauthorized: 2, refused: 1 }));

    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        addRefusals(index % 2 ? one : other, index % 4 < 2 ? counts : counts.toReversed()),
      ),
    );
    await addRefusals(one, []);

    const rows = await refusals(database);
    for (const source of ['a', 'b', 'c', 'd']) {
      const own = rows.filter((row) => row.source === source);
      expect(own.length).toBeLessThanOrEqual(2); // two if the minute turned meanwhile
      expect(own.reduce((sum, { unauthorized }) => sum + Number(unauthorized), 0)).toBe(80);
      expect(own.reduce((sum, { refused }) => sum + Number(refused), 0)).toBe(40);
    }
    expect(rows.every(({ minute }) => minute.getTime() % 60_000 === 0)).toBe(true);
  });
});

describe('partitions', () => {
  test('they are made from yesterday to a week ahead, once, by however many replicas', async () => {
    await using database = await createTestDatabase();
    await using one = await connectTo(database);
    await using other = await connectTo(database);
    const expected = await daysFromNow(database, -1, DAYS_AHEAD);

    const results = await Promise.all(
      [one, other, one, other].map((connection) => keepPartitions(connection, { retentionDays: 30 })),
    );

    expect(results).toEqual(results.map(() => ({ made: [], dropped: [] })));
    for (const parent of ['deliveries', 'publications', 'publication_batches']) {
      expect(await partitionsOf(database, parent)).toEqual(expected.map((day) => `${parent}_${day}`));
    }
  });

  test('there is no DEFAULT partition', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    await keepPartitions(connection, { retentionDays: 1 });

    expect(
      await database.query(
        `select from pg_class where relispartition and pg_get_expr(relpartbound, oid) = 'DEFAULT'`,
      ),
    ).toEqual([]);
  });

  test('rows older than the retention are dropped, younger rows and all events stay', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    const [gone, kept] = [await addOld(database, 'deliveries', 31), await addOld(database, 'deliveries', 30)];
    const gonePublications = await addOld(database, 'publications', 400);
    await recordDeliveries(connection, [eventRecord(completed('old')), eventRecord(completed('new'))]);
    await database.query(
      `update deliveries set received_at = now() - interval '31 days' where job_id = 'old'`,
    );
    await database.query(`update events set recorded_at = now() - interval '400 days' where job_id = 'old'`);
    expect(await database.query(`select from ${gone}`)).toHaveLength(1);

    const result = await keepPartitions(connection, { retentionDays: 30 });

    expect(result).toEqual({ made: [], dropped: [gone, gonePublications] });
    expect(await partitionsOf(database, 'deliveries')).toContain(kept);
    expect((await deliveries(database)).map(({ job_id }) => job_id)).toEqual(['new']);
    expect((await events(database)).map(({ job_id }) => job_id)).toEqual(['old', 'new']);
    expect(await jobs(database)).toHaveLength(2);
    // The dedup ledger outlives the bodies: the old event is still known.
    expect(await recordDeliveries(connection, [eventRecord(completed('old'))])).toMatchObject([
      { outcome: 'duplicate' },
    ]);
  });

  test('returned entries and counts past the retention go, pending and parked ones stay', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    await recordDeliveries(
      connection,
      ['pending', 'returned', 'parked', 'fresh'].map((name) => eventRecord(completed(name))),
    );
    await hold(database, {});
    await database.query(`update outbox_held set state = job_id where job_id <> 'fresh'`);
    await database.query(`update outbox_held set state = 'returned' where job_id = 'fresh'`);
    await database.query(
      `update outbox_held set recorded_at = now() - interval '31 days' where job_id <> 'fresh'`,
    );
    await addRefusals(connection, [{ source: 'default', unauthorized: 1, refused: 0 }]);
    await database.query(
      `insert into refusals select minute - interval '31 days', 'old', 1, 1 from refusals`,
    );
    await database.query(`insert into refusal_addresses select minute, source, '192.0.2.1', 1 from refusals`);

    await keepUp(connection, { retentionDays: 30, log: createTestLog().log });

    expect((await outbox(database)).map(({ job_id }) => job_id)).toEqual(
      expect.arrayContaining(['pending', 'parked', 'fresh']),
    );
    expect(await outbox(database)).toHaveLength(3);
    expect((await refusals(database)).map(({ source }) => source)).toEqual(['default']);
    expect(await database.query('select source from refusal_addresses')).toEqual([{ source: 'default' }]);
  });

  test('while somebody reads the old ones for long, new ones are made all the same', async () => {
    await using database = await createTestDatabase();
    await using connection = await connectTo(database);
    const old = await addOld(database, 'deliveries', 31);
    const [lastDay = ''] = await daysFromNow(database, DAYS_AHEAD, DAYS_AHEAD);
    const last = `deliveries_${lastDay}`;
    await database.query(`drop table ${last}`);
    await using reader = await openSession(database);
    await reader.query('begin');
    await reader.query('select count(*) from deliveries'); // as pg_dump would

    await keepPartitions(connection, { retentionDays: 30 }).catch(() => {});

    expect(await partitionsOf(database, 'deliveries')).toContain(last);
    await reader.query('rollback');
    expect(await keepPartitions(connection, { retentionDays: 30 })).toMatchObject({ dropped: [old] });
  });
});
