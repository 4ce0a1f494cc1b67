// What /sources and /stats cost on a long history, by what Postgres says that it read.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { SEEDED } from '../../../bench/audit-seed.ts';
import type { DatabaseConnection } from '../../../src/ledger/index.ts';
import { readSources } from '../../../src/operators/sources/queries.ts';
import { readStatistics, type StatsRange } from '../../../src/operators/statistics/queries.ts';
import { costOf, createHistory, type History } from '../../support/history.ts';

const HOUR_MS = 3_600_000;

const read = (connection: DatabaseConnection, range: StatsRange) =>
  readStatistics(connection, { steps: range, total: range }, null);

let history: History;
beforeAll(async () => {
  history = await createHistory(Number(process.env['B2_COUNT'] ?? 200_000));
  // A month of three sources, five rows a minute each.
  await history.database.query(
    `insert into rollups (minute, measure, source, result, bucket, count)
     select date_trunc('minute', now()) - n * interval '1 minute', 'answer', source, 'accepted', bucket, 10
     from generate_series(0, 30 * 1440 - 1) n, unnest($1::text[]) source, generate_series(20, 24) bucket`,
    [['default', 'studio', 'archive']],
  );
  await history.database.query('vacuum analyze rollups');
  // As the migration does.
  await history.database.query(
    `insert into secret_matches (source, fingerprint, last_matched_at)
     select source, secret_fingerprint, max(received_at) from deliveries
     where secret_fingerprint is not null group by source, secret_fingerprint`,
  );
});
afterAll(() => history[Symbol.asyncDispose]());

test('all sources cost a few look-ups each and the rollups of a day', async () => {
  const known = [{ name: 'default', fingerprints: [SEEDED.secrets.present, SEEDED.secrets.old] }];
  const { connection } = history;
  const costs = await costOf(connection, (db) => readSources({ ...connection, db }, known, null));

  const ofDeliveries = costs.filter(({ text }) => text.includes('deliveries'));
  expect(ofDeliveries).toHaveLength(2);
  for (const { rows, scanned } of ofDeliveries) {
    expect(rows).toBeLessThan(500);
    expect(scanned).toEqual([]);
  }
  const [ofRollups] = costs.filter(({ text }) => text.includes('from rollups'));
  expect(ofRollups?.rows).toBeLessThan(1_442 * 15);
  expect(ofRollups?.scanned).toEqual([]);
});

test('they are those of the history', async () => {
  const reports = await readSources(history.connection, [], null);
  const newest = await history.database.query<{ source: string; at: Date }>(
    'select source, max(received_at) as at from deliveries group by 1 order by source collate "C"',
  );

  expect(reports.map(({ source, lastDeliveryAt }) => ({ source, at: lastDeliveryAt }))).toEqual(newest);
  const [ofDefault] = reports.filter(({ source }) => source === 'default');
  expect(ofDefault?.rates.last24h).toBeCloseTo(50, 0);
  expect(ofDefault?.secrets[0]?.fingerprint).toBe(SEEDED.secrets.present);
});

test('statistics cost the rollups of their time and no more', async () => {
  const { connection } = history;
  const toMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const range = { from: new Date(toMs - 6 * HOUR_MS), to: new Date(toMs), stepS: 300 };
  const costs = await costOf(connection, (db) => read({ ...connection, db }, range));
  const { steps } = await read(connection, range);

  expect(steps).toHaveLength(6 * 12 * 3);
  expect(steps?.every(({ deliveries }) => deliveries['accepted'] === 250)).toBe(true);
  const ofRollups = costs.filter(({ text }) => text.includes('from rollups'));
  expect(ofRollups).toHaveLength(2);
  for (const cost of ofRollups) {
    expect(cost.scanned).toEqual([]);
    // The rows themselves, and four times what they come to: read again for results, buckets and percentiles.
    expect(cost.rows).toBeLessThanOrEqual(6 * 60 * 15 + 4 * 6 * 12 * 15);
  }
});

test('the steps and the total are of one moment, also while counts are written', async () => {
  const { connection, database } = history;
  const toMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS + HOUR_MS;
  const range = { from: new Date(toMs - 2 * HOUR_MS), to: new Date(toMs), stepS: 300 };
  let isRead = false;
  const writing = (async () => {
    while (!isRead) {
      await database.query(
        `insert into rollups (minute, measure, source, result, bucket, count)
         values (date_trunc('minute', now()), 'answer', 'busy', 'accepted', 20, 1)
         on conflict (minute, measure, source, result, bucket) do update set count = rollups.count + 1`,
      );
    }
  })();
  const totals = new Set<number>();
  for (let n = 0; n < 100; n += 1) {
    const { steps, total } = await readStatistics(connection, { steps: range, total: range }, ['busy']);
    const sum = steps?.reduce((all, { deliveries }) => all + (deliveries['accepted'] ?? 0), 0);
    expect(total.deliveries['accepted'] ?? 0).toBe(sum);
    totals.add(sum ?? 0);
  }
  isRead = true;
  await writing;
  expect(totals.size).toBeGreaterThan(1);
});

test('a year of statistics costs its hours, within the time of a query', async () => {
  const { connection, database } = history;
  const toMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  await database.query(
    `insert into rollups_hourly (hour, measure, source, result, bucket, count)
     select $1::timestamptz - n * interval '1 hour', 'answer', source, 'accepted', bucket, 10
     from generate_series(48, 366 * 24 - 1) n, unnest($2::text[]) source, generate_series(20, 24) bucket`,
    [new Date(toMs), ['default', 'studio', 'archive']],
  );
  await database.query('vacuum analyze rollups_hourly');
  const range = { from: new Date(toMs - 366 * 24 * HOUR_MS), to: new Date(toMs), stepS: 86_400 };
  const { steps } = await read(connection, range);

  expect(new Set(steps?.map(({ at }) => at.getTime())).size).toBeGreaterThanOrEqual(366);
  expect(steps?.at(100)?.deliveries).toEqual({ accepted: 1_200 });
});
