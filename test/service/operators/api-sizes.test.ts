// What `tallyhook sizes` tells is what the tables hold, and it reads none of their rows to know it.

import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sizes } from '../../../src/operators/sizes/contract.ts';
import { readSizes } from '../../../src/operators/sizes/queries.ts';
import { type Cli, cliOf } from '../../support/cli.ts';
import { createHistory, type History } from '../../support/history.ts';
import { operators } from '../../support/operators.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';

/** Of a month. */
const DELIVERIES = 10_000;
const RETENTION_DAYS = 60;
/** On each of the seven days that count, and on others. */
const ACCEPTED_A_DAY = 276;

const fresh = shareTestService();

let history: History;
let service: TestService;
let cli: Cli;
let sizes: Sizes;
beforeAll(async () => {
  history = await createHistory(DELIVERIES);
  // Of two days by the minute, and of the days before by the hour.
  for (const [table, column, days] of [
    ['rollups', 'minute', [0, 1, 2]],
    ['rollups_hourly', 'hour', [3, 4, 5, 6, 7, 8]],
  ] as const) {
    await history.database.query(
      `insert into ${table} (${column}, measure, source, result, bucket, count)
       select date_trunc('day', now(), 'UTC') - make_interval(days => day), 'answer', 'default', result, 40, $2
       from unnest($1::int[]) as day, unnest('{accepted,duplicate}'::text[]) as result`,
      [days, ACCEPTED_A_DAY],
    );
  }
  // The relay would publish these meanwhile.
  await history.database.query('truncate outbox_batches, outbox_held');
  await history.database.query('vacuum analyze');
  service = await startTestService({
    database: history.database,
    env: { RETENTION_DAYS: String(RETENTION_DAYS) },
  });
  cli = await cliOf(service, { role: 'viewer' });
  [sizes] = (await cli.items<Sizes>('sizes')) as [Sizes];
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await history[Symbol.asyncDispose]();
});

const of = (name: string) => {
  const found = sizes.items.find(({ table }) => table === name);
  if (found === undefined) throw new Error(`sizes has no ${name}`);
  return found;
};

async function counted(query: string): Promise<number> {
  const [row] = await history.database.query<{ count: number }>(`select (${query})::float8 as count`);
  return row?.count ?? NaN;
}

/** Statistics are floats of four bytes, and each partition is rounded. */
const near = (actual: number | undefined, expected: number) => {
  expect(actual).toBeGreaterThanOrEqual(expected * 0.99);
  expect(actual).toBeLessThanOrEqual(expected * 1.01);
};

test.each(['deliveries', 'publications', 'publication_batches', 'events', 'jobs'])(
  'the rows and the bytes of %s are told as they are',
  async (table) => {
    near(of(table).rows, await counted(`select count(*) from ${table}`));
    const files = `select sum(pg_total_relation_size(oid)) from (
      select '${table}'::regclass as oid union all select inhrelid from pg_inherits where inhparent = '${table}'::regclass) t`;
    expect(of(table).bytes).toBe(await counted(files));
  },
);

test('a day adds the mean of the last seven whole days, which is reckoned up to the retention', async () => {
  expect(sizes).toMatchObject({ retention_days: RETENTION_DAYS, days_measured: 7 });
  const { a_day: day, bytes_at_retention: atRetention, days } = of('deliveries');
  const week = `received_at >= date_trunc('day', now(), 'UTC') - interval '7 days' and received_at < date_trunc('day', now(), 'UTC')`;
  near(day?.rows, (await counted(`select count(*) from deliveries where ${week}`)) / 7);
  near(atRetention ?? NaN, (day?.bytes ?? 0) * (RETENTION_DAYS + 1));
  expect(days).toBe(
    await counted(`select count(*) from pg_inherits where inhparent = 'deliveries'::regclass`),
  );
});

test('events and jobs, which are kept for good, grow by the deliveries that were accepted on these days', async () => {
  const [events, jobs] = [of('events'), of('jobs')];
  expect(events.a_day?.rows).toBe(ACCEPTED_A_DAY);
  near(events.a_day?.bytes, (events.bytes / events.rows) * ACCEPTED_A_DAY);
  near(jobs.a_day?.rows, (jobs.rows / events.rows) * ACCEPTED_A_DAY);
  expect(sizes.all_tables.for_good_a_day_bytes).toBe((events.a_day?.bytes ?? 0) + (jobs.a_day?.bytes ?? 0));
});

test('every table is in it, and all together', async () => {
  expect(sizes.items.map(({ table }) => table).toSorted()).toEqual(
    (
      await history.database.query<{ name: string }>(
        `select relname as name from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
           and relname !~ '^kysely' order by 1`,
      )
    ).map(({ name }) => name),
  );
  expect(sizes.all_tables.bytes).toBe(sizes.items.reduce((sum, { bytes }) => sum + bytes, 0));
  expect(sizes.database_bytes).toBe(await counted('select pg_database_size(current_database())'));
});

test('a table that was not analysed yet has as many rows as Postgres has counted writes', async () => {
  await history.database.query(`insert into drift (source, kind, status, name, value_type, count, first_seen_at, last_seen_at,
      sample_delivery_id)
    select 'default', 'field', 'completed', 'f' || g, 'string', 1, now(), now(), gen_random_uuid() from generate_series(1, 30) g`);
  await expect
    .poll(async () => {
      const { items } = await readSizes(history.connection.db, { retentionDays: 30 });
      return items.find(({ table }) => table === 'drift')?.rows;
    })
    .toBe(30);
});

test('no row of a table is read for it, but the counts of answers', async () => {
  const read = await history.connection.db.transaction().execute(async (trx) => {
    await readSizes(trx, { retentionDays: 30 });
    const { rows } = await sql<{ name: string }>`
      select relname as name from pg_stat_xact_user_tables
      where coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) > 0 order by 1`.execute(trx);
    return rows.map(({ name }) => name);
  });
  expect(read).toEqual(['rollups', 'rollups_hourly']);
});

test('on a terminal the largest tables are a table, and sentences say what it comes to', async () => {
  const { screen } = await cli.onTerminal(['sizes']);
  expect(screen).toMatch(/^table +days +rows +on disk +indexes +rows a day +a day +kept\n/);
  expect(screen).toMatch(/\ndeliveries +\d+ +[\d,]+ +[\d.]+ MiB .* RETENTION_DAYS\n/);
  expect(screen).toMatch(/\n\d+ others /);
  expect(screen).toMatch(/\nA day adds [\d.]+ \w+ \(the last 7 whole days\)\.\n/);
  expect(screen).toMatch(/\nWith RETENTION_DAYS=60 full, the tables with days take [\d.]+ MiB\.\n/);
  expect(screen).toMatch(/\nWhat is kept for good grows by [\d.]+ KiB a day, [\d.]+ MiB a year\.\n/);
});

test('before the first whole day is over, what a day adds is not told', async () => {
  const { body } = await (await operators(fresh(), { role: 'viewer' })).get<Sizes>('/sizes');
  expect(body).toMatchObject({
    days_measured: 0,
    all_tables: { a_day_bytes: null, for_good_a_day_bytes: null, bytes_at_retention: null },
  });
  expect(body.items.filter(({ a_day: day }) => day !== null)).toEqual([]);
  const { screen } = await (await cliOf(fresh(), { role: 'viewer' })).onTerminal(['sizes']);
  expect(screen).toContain('What a day adds is known once a whole day (UTC) is over.');
});

test('a token that is limited to some sources is refused', async () => {
  const limited = await operators(fresh(), { role: 'admin', sources: ['default'] });
  expect(await limited.get('/sizes')).toMatchObject({ status: 403 });
});
