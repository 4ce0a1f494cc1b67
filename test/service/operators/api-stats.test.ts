import { Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { bucketOf, coarsenRollups } from '../../../src/ledger/counts/rollups.ts';
import type { Database } from '../../../src/ledger/schema/tables.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';
import { startWatchedService } from '../../support/watched.ts';

type Percentiles = { p50: number; p90: number; p99: number } | null;
type Item = {
  at: string;
  source: string;
  deliveries: Record<string, number>;
  answer_ms: Percentiles;
  publications: Record<string, number>;
  lag_ms: Percentiles;
};
type Total = Omit<Item, 'at' | 'source'> & { from: string; to: string };
type Stats = { from: string; to: string; step: number; items: Item[]; total: Total; waits: object[] };

type Count = [minute: string, measure: string, source: string, result: string, bucket: number, count: number];

async function seed(database: TestDatabase, counts: Count[]): Promise<void> {
  for (const count of counts) {
    await database.query(
      'insert into rollups (minute, measure, source, result, bucket, count) values ($1, $2, $3, $4, $5, $6)',
      count,
    );
  }
}

/** Kept by the minute still. */
const YESTERDAY = new Date(Date.now() - 24 * 60 * 60 * 1_000).toISOString().slice(0, 10);

function minutesAgo(minutes: number): string {
  return `${new Date(Date.now() - minutes * 60_000).toISOString().slice(0, 16)}Z`;
}
const hoursAgo = (hours: number) => minutesAgo(60 * hours);

async function coarsen({ url }: TestDatabase): Promise<void> {
  const pool = new Pool({ connectionString: url });
  pool.on('error', () => {}); // the test may end, and its database, before its connection is closed
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  await coarsenRollups(db, 10_000);
  await db.destroy();
}

/** It counts nothing itself, since nothing is delivered to it. What a test seeds has a source or a time of its own. */
const shared = shareTestService();

describe('seeded', () => {
  let relay: TestService;
  let viewer: Operators;

  beforeAll(async () => {
    relay = shared();
    viewer = await operators(relay, { role: 'viewer' });
    await seed(relay.database, [
      [`${YESTERDAY}T10:00Z`, 'answer', 'team-a', 'accepted', bucketOf(10), 90],
      [`${YESTERDAY}T10:01Z`, 'answer', 'team-a', 'accepted', bucketOf(1_000), 8],
      [`${YESTERDAY}T10:01Z`, 'answer', 'team-a', 'unavailable', bucketOf(8_000), 2],
      [`${YESTERDAY}T10:01Z`, 'lag', 'team-a', 'confirmed', bucketOf(50), 3],
      [`${YESTERDAY}T10:01Z`, 'lag', 'team-a', 'returned', 0, 5],
      [`${YESTERDAY}T10:01Z`, 'answer', 'team-b', 'duplicate', bucketOf(10), 7],
      [`${YESTERDAY}T10:59Z`, 'answer', 'team-b', 'accepted', bucketOf(10), 1],
      [`${YESTERDAY}T11:00Z`, 'answer', 'team-b', 'accepted', bucketOf(10), 1_000],
    ]);
  });

  const ask = (query: string, as = viewer) => as.get<Stats>(`/stats?${query}`);

  test('the sources together have the percentiles of all answers, and not those of the slowest source', async () => {
    const range = `from=${YESTERDAY}T10:00:00Z&to=${YESTERDAY}T12:00:00Z&step=7200`;
    const apart = (await ask(range)).body.items.map(({ source, answer_ms: ms }) => [
      source,
      (ms?.p99 ?? 0) > 1_000,
    ]);
    const { items } = (await ask(`${range}&together=true`)).body;

    expect(apart).toEqual([
      ['team-a', true],
      ['team-b', false],
    ]);
    expect(items).toMatchObject([
      {
        source: '*',
        deliveries: { accepted: 1_099, duplicate: 7, unavailable: 2 },
        publications: { confirmed: 3, returned: 5 },
      },
    ]);
    expect(items[0]?.answer_ms?.p99).toBeLessThan(20);
  });

  test('each step and source has its counts and percentiles, right to a tenth', async () => {
    const { status, body } = await ask(`from=${YESTERDAY}T10:00:00Z&to=${YESTERDAY}T11:00:00Z&step=3600`);

    expect(status).toBe(200);
    expect(body).toEqual({
      from: `${YESTERDAY}T10:00:00.000Z`,
      to: `${YESTERDAY}T11:00:00.000Z`,
      step: 3_600,
      items: [
        {
          at: `${YESTERDAY}T10:00:00.000Z`,
          source: 'team-a',
          deliveries: { accepted: 98, unavailable: 2 },
          answer_ms: {
            p50: expect.closeTo(10, -0.3),
            p90: expect.closeTo(10, -0.3),
            p99: expect.any(Number),
          },
          publications: { confirmed: 3, returned: 5 },
          lag_ms: { p50: expect.any(Number), p90: expect.any(Number), p99: expect.any(Number) },
        },
        {
          at: `${YESTERDAY}T10:00:00.000Z`,
          source: 'team-b',
          deliveries: { duplicate: 7, accepted: 1 },
          answer_ms: { p50: expect.any(Number), p90: expect.any(Number), p99: expect.any(Number) },
          publications: {},
          lag_ms: null,
        },
      ],
      total: {
        from: `${YESTERDAY}T10:00:00.000Z`,
        to: `${YESTERDAY}T11:00:00.000Z`,
        deliveries: { accepted: 99, unavailable: 2, duplicate: 7 },
        answer_ms: { p50: expect.any(Number), p90: expect.any(Number), p99: expect.any(Number) },
        publications: { confirmed: 3, returned: 5 },
        lag_ms: { p50: expect.any(Number), p90: expect.any(Number), p99: expect.any(Number) },
      },
      waits: [],
    });
    const [{ answer_ms, lag_ms }] = body.items as [Item];
    for (const [shown, meant] of [
      [answer_ms?.p50, 10],
      [answer_ms?.p90, 10],
      [answer_ms?.p99, 8_000],
      [lag_ms?.p99, 50],
    ] as const) {
      expect((shown ?? 0) / meant).toBeGreaterThan(0.9);
      expect((shown ?? 0) / meant).toBeLessThan(1.1);
    }
  });

  test('the range is widened to whole steps, and steps without anything are left out', async () => {
    const { body } = await ask(`from=${YESTERDAY}T10:00:30Z&to=${YESTERDAY}T10:01:01Z`);

    expect(body).toMatchObject({
      from: `${YESTERDAY}T10:00:00.000Z`,
      to: `${YESTERDAY}T10:02:00.000Z`,
      step: 60,
    });
    expect(body.items.map(({ at, source }) => [at.slice(11, 16), source])).toEqual([
      ['10:00', 'team-a'],
      ['10:01', 'team-a'],
      ['10:01', 'team-b'],
    ]);
  });

  test('the total has the percentiles of all sources and steps together, and no mean of theirs', async () => {
    await seed(relay.database, [
      [`${YESTERDAY}T14:00Z`, 'lag', 'team-a', 'confirmed', bucketOf(10), 98],
      [`${YESTERDAY}T14:01Z`, 'lag', 'team-b', 'confirmed', bucketOf(9_000), 1],
      [`${YESTERDAY}T14:02Z`, 'lag', 'team-b', 'confirmed', bucketOf(9_000), 1],
      [`${YESTERDAY}T14:02Z`, 'answer', 'team-b', 'accepted', bucketOf(20), 1],
    ]);

    const { body } = await ask(`from=${YESTERDAY}T14:00:00Z&to=${YESTERDAY}T14:10:00Z`);

    expect(body.items).toHaveLength(3);
    const { lag_ms, publications, deliveries } = body.total;
    expect({ publications, deliveries }).toEqual({
      publications: { confirmed: 100 },
      deliveries: { accepted: 1 },
    });
    // A mean of the three steps would be some 6 s.
    for (const [shown, meant] of [
      [lag_ms?.p50, 10],
      [lag_ms?.p90, 10],
      [lag_ms?.p99, 9_000],
    ] as const) {
      expect((shown ?? 0) / meant).toBeGreaterThan(0.9);
      expect((shown ?? 0) / meant).toBeLessThan(1.1);
    }
    const { total } = (await ask(`from=${YESTERDAY}T14:00:00Z&to=${YESTERDAY}T14:10:00Z&source=team-a`)).body;
    expect(total).toMatchObject({ publications: { confirmed: 98 }, deliveries: {}, answer_ms: null });
    expect((total.lag_ms?.p99 ?? 0) / 10).toBeLessThan(1.1);
  });

  test('the last hour in total is the last sixty minutes, whatever the step', async () => {
    await seed(relay.database, [
      [minutesAgo(63), 'lag', 'team-now', 'confirmed', bucketOf(10), 1_000],
      [minutesAgo(59), 'lag', 'team-now', 'confirmed', bucketOf(10), 10],
      [minutesAgo(2), 'lag', 'team-now', 'confirmed', bucketOf(10), 1],
    ]);
    const { body } = await ask('source=team-now&step=3600');

    expect(body.total.publications).toEqual({ confirmed: 11 });
    const minutes = (Date.parse(body.total.to) - Date.parse(body.total.from)) / 60_000;
    expect([60, 61]).toContain(minutes);
    expect(Date.parse(body.to) - Date.parse(body.from)).toBeGreaterThanOrEqual(2 * 3_600_000);
  });

  test('a time in which nothing happened has a total of nothing', async () => {
    const { body } = await ask(`from=${YESTERDAY}T03:00:00Z&to=${YESTERDAY}T03:10:00Z`);

    expect(body).toMatchObject({
      items: [],
      total: { deliveries: {}, answer_ms: null, publications: {}, lag_ms: null },
    });
  });

  test('what waited is the most in each step, for those who see all sources', async () => {
    const day = '2026-02-03';
    for (const [minute, pending, oldestS] of [
      ['10:01', 5, 12.5],
      ['10:02', 9, 3],
      ['12:00', 1, 0],
    ]) {
      await relay.database.query('insert into waits values ($1, $2, 0, 4, 1000, $3)', [
        `${day}T${minute}Z`,
        pending,
        oldestS,
      ]);
    }
    const waitsOf = async (query: string, as?: Operators) =>
      (await ask(`from=${day}T10:00:00Z&to=${day}T12:00:00Z&step=3600${query}`, as)).body.waits;

    expect(await waitsOf('')).toEqual([
      {
        at: `${day}T10:00:00.000Z`,
        pending: 9,
        returned: 0,
        parked: 4,
        quarantined: 1_000,
        oldest_pending_s: 12.5,
      },
    ]);
    expect(await waitsOf('&source=team-a')).toEqual([]);
    expect(await waitsOf('', await operators(relay, { role: 'viewer', sources: ['team-b'] }))).toEqual([]);
  });

  test('a source can be named, and a token that is limited sees its own alone', async () => {
    const limited = await operators(relay, { role: 'viewer', sources: ['team-b'] });
    const range = `from=${YESTERDAY}T10:00:00Z&to=${YESTERDAY}T12:00:00Z&step=7200`;

    const sourcesOf = async (query: string, as?: Operators) =>
      (await ask(query, as)).body.items.map(({ source }) => source);

    expect(await sourcesOf(range)).toEqual(['team-a', 'team-b']);
    expect(await sourcesOf(`${range}&source=team-a`)).toEqual(['team-a']);
    expect(await sourcesOf(range, limited)).toEqual(['team-b']);
    expect((await ask(`${range}&source=team-a`, limited)).status).toBe(403);
    expect((await ask(range, limited)).body.total.deliveries).toEqual({ duplicate: 7, accepted: 1_001 });
  });

  test.for([
    ['step=59', 'step'],
    ['step=90', 'step'],
    ['step=0', 'step'],
    ['step=1e9', 'step'],
    ['from=yesterday', 'from'],
    ['from=2026-01-15T10:00:00Z&to=2026-01-15T10:00:00Z', 'from'],
    ['from=2026-01-15T10:00:00Z&to=2025-01-15T10:00:00Z', 'from'],
    ['from=2025-01-01T00:00:00Z&to=2026-06-01T00:00:00Z&step=86400', '366'],
    ['from=2026-01-01T00:00:00Z&to=2026-06-01T00:00:00Z', 'step'],
    ['from=9999-12-31T00:00:00Z&to=9999-12-31T23:59:59Z', 'to: leaves the year 9999'],
    ['from=9999-06-01T00:00:00Z&to=9999-12-31T00:00:00Z&step=31622400', 'to: leaves the year 9999'],
    ['colour=red', 'colour'],
  ])('%s is a 400 that says what', async ([query, word]) => {
    const { status, body } = await viewer.get<{ error: string; message: string }>(`/stats?${query}`);

    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' });
    expect(body.message).toContain(word);
  });

  test('the last whole step of the year 9999 is answered', async () => {
    const { status, body } = await ask('from=9999-12-31T00:00:00Z&to=9999-12-31T23:00:00Z');

    expect({ status, to: body.to }).toEqual({ status: 200, to: '9999-12-31T23:00:00.000Z' });
  });

  test('a year in steps of a day is answered', async () => {
    const { status, body } = await ask('from=2025-12-01T00:00:00Z&to=2026-12-01T00:00:00Z&step=86400');

    expect({ status, step: body.step }).toEqual({ status: 200, step: 86_400 });
  });
});

test('counts older than two days are kept by the hour, added to what is there, and nothing of them is lost', async () => {
  const relay = shared();
  const source = 'team-old';
  const viewer = await operators(relay, { role: 'viewer' });
  const day = new Date(Date.now() - 4 * 24 * 60 * 60 * 1_000).toISOString().slice(0, 10);
  const range = `from=${day}T10:00:00Z&to=${day}T12:00:00Z&source=${source}`;
  const itemsOf = async () => (await viewer.get<Stats>(`/stats?${range}&step=3600`)).body.items;
  const rowsOf = async (table: string) =>
    (await relay.database.query(`select from ${table} where source = $1`, [source])).length;
  const counts: Count[] = [
    [`${day}T10:00Z`, 'answer', source, 'accepted', bucketOf(10), 90],
    [`${day}T10:59Z`, 'answer', source, 'accepted', bucketOf(10), 5],
    [`${day}T10:59Z`, 'lag', source, 'confirmed', bucketOf(50), 3],
    [`${day}T11:00Z`, 'answer', source, 'accepted', bucketOf(900), 1],
  ];
  await seed(relay.database, counts);
  const before = await itemsOf();
  await coarsen(relay.database);

  expect(before.map(({ deliveries }) => deliveries)).toEqual([{ accepted: 95 }, { accepted: 1 }]);
  expect(await itemsOf()).toEqual(before);
  expect(await rowsOf('rollups')).toBe(0);
  expect(await rowsOf('rollups_hourly')).toBe(3);

  await seed(relay.database, counts.slice(1, 2)); // from a replica that was away
  await coarsen(relay.database);
  expect((await itemsOf())[0]?.deliveries).toEqual({ accepted: 100 });

  const { body } = await viewer.get<Stats>(`/stats?${range}&step=60`);
  expect({ step: body.step, steps: body.items.length }).toEqual({ step: 3_600, steps: 2 });
  expect(body.total).toMatchObject({
    from: `${day}T10:00:00.000Z`,
    to: `${day}T12:00:00.000Z`,
    deliveries: { accepted: 101 },
  });
});

test('counts of the last two days stay by the minute, and a service adds up what is older', async () => {
  await using database = await createTestDatabase();
  await seed(database, [
    [hoursAgo(50), 'answer', 'default', 'accepted', 10, 1],
    [hoursAgo(47), 'answer', 'default', 'accepted', 10, 1],
    [hoursAgo(1), 'answer', 'default', 'accepted', 10, 1],
  ]);
  await using relay = await startTestService({ database });
  await expect.poll(async () => (await database.query('select from rollups')).length).toBe(2);
  expect(await database.query('select from rollups_hourly')).toHaveLength(1);
  expect(relay.log).not.toContainEqual(expect.objectContaining({ msg: 'upkeep failed' }));
});

test('what two replicas answered and published is added up, refusals too, and survives their stop', async () => {
  await using database = await createTestDatabase();
  const [one, two] = await Promise.all([startTestService({ database }), startTestService({ database })]);
  const job = newJobId();
  await deliver(one.webhooks, completed(job));
  await deliver(two.webhooks, completed(job));
  await deliver(two.webhooks, completed(newJobId()));
  await fetch(one.webhooks, { method: 'POST', body: 'unsigned' });
  await expect.poll(async () => (await database.query(`select from ${PUBLICATIONS} p`)).length).toBe(2);
  await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);

  await using relay = await startTestService({ database });
  const { body } = await (await operators(relay)).get<Stats>('/stats?step=3600');

  const sum = (of: 'deliveries' | 'publications') => {
    const total: Record<string, number> = {};
    for (const item of body.items) {
      for (const [name, count] of Object.entries(item[of])) total[name] = (total[name] ?? 0) + count;
    }
    return total;
  };
  expect(sum('deliveries')).toEqual({ accepted: 2, duplicate: 1, unauthorized: 1 });
  expect(sum('publications')).toEqual({ returned: 2 });
  expect(body.items.every(({ lag_ms }) => lag_ms === null)).toBe(true);
});

test('a delivery that was turned away since Postgres was away is counted once it is back', async () => {
  await using database = await createTestDatabase();
  const relay = await startTestService({ database });
  await database.query('alter table jobs rename to jobs_away');
  const refused = await deliver(relay.webhooks, completed(newJobId()));
  await database.query('alter table jobs_away rename to jobs');
  expect(refused.status).toBe(503);
  await relay[Symbol.asyncDispose]();

  expect(await database.query("select result, count from rollups where measure = 'answer'")).toEqual([
    { result: 'unavailable', count: '1' },
  ]);
});

test('statistics and drift older than the retention are dropped', async () => {
  await using database = await createTestDatabase();
  await seed(database, [
    ['2020-01-01T10:00Z', 'answer', 'default', 'accepted', 10, 1],
    ['2020-01-05T10:00Z', 'answer', 'default', 'accepted', 10, 1],
    [hoursAgo(1), 'answer', 'default', 'accepted', 10, 1],
  ]);
  await database.query(
    `insert into drift values ('default', 'field', 'completed', 'old', 'string', 1, now() - interval '40 days',
       now() - interval '31 days', gen_random_uuid()),
      ('default', 'field', 'completed', 'new', 'string', 1, now() - interval '40 days', now(), gen_random_uuid())`,
  );
  const counts = async () =>
    (await database.query('select minute from rollups union all select hour from rollups_hourly')).length;

  await using relay = await startTestService({ database });
  await expect.poll(counts).toBe(1);
  await expect.poll(() => database.query('select name from drift')).toEqual([{ name: 'new' }]);
  expect(relay.log).not.toContainEqual(expect.objectContaining({ msg: 'upkeep failed' }));
});

test('lag is that of what was confirmed, and a replay is none', async () => {
  await using watched = await startWatchedService();
  const { relay, database } = watched;
  const job = newJobId();
  await deliver(relay.webhooks, completed(job));
  await watched.published(); // and what tells that it is all
  const operator = await operators(relay, { role: 'operator' });
  const { status } = await operator.post(
    '/replays',
    { event_ids: [`default:${job}:completed`] },
    { key: job },
  );
  expect(status).toBe(202);
  await expect.poll(async () => (await database.query(`select from ${PUBLICATIONS} p`)).length).toBe(3);
  await relay.service.stop();

  const counted = await database.query<{ result: string; count: number; least: number }>(
    `select result, sum(count)::int as count, min(bucket)::int as least from rollups where measure = 'lag' group by 1`,
  );
  expect(counted).toEqual([{ result: 'confirmed', count: 2, least: expect.any(Number) }]);
  expect(counted[0]?.least).toBeGreaterThan(0);
});
