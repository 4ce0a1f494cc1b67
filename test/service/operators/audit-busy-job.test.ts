// A job that was told of again and again: what a page of its deliveries costs, by what Postgres says that it read.

import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  deliveries,
  type DeliveryFilters,
  readDeliveriesOfJob,
} from '../../../src/operators/deliveries/queries.ts';
import { costOf, createHistory, type History } from '../../support/history.ts';

const DELIVERIES = 40_000;
const LIMIT = 50;

let history: History;
beforeAll(async () => {
  history = await createHistory(20_000);
  await history.database.query(
    `insert into deliveries (id, received_at, source, outcome, http_status, job_id, status, path, remote_address,
       headers, secret_fingerprint, body_bytes)
     select gen_random_uuid(), now() - n * interval '10 ms', 'default',
       case when n % 100 = 0 then 'conflict' else 'duplicate' end, 200, 'busy', 'completed', '/webhooks', '10.0.0.1',
       '{}', 'bbbbbbbbbbbbbbbb', 400
     from generate_series(1, $1::int) n`,
    [DELIVERIES],
  );
  await history.database.query('analyze deliveries');
});
afterAll(() => history[Symbol.asyncDispose]());

test.for<[what: string, filters: Partial<DeliveryFilters>, rows: number]>([
  ['the job', {}, 300],
  ['the job and its source', { sources: ['default'] }, 300],
  ['the job and an outcome that few of its deliveries had', { outcome: 'conflict' }, 12_000],
  [
    'the job, its source and an outcome that none had',
    { sources: ['default'], outcome: 'malformed' },
    12_000,
  ],
])('a page by %s does not read all that the job has', async ([, filters, rows]) => {
  const asked = { sources: null, job_id: 'busy', ...filters } as DeliveryFilters;
  const costs = await costOf(history.connection, (db) =>
    deliveries.read(db, asked, { after: null, limit: LIMIT }),
  );

  expect(costs.reduce((sum, cost) => sum + cost.rows, 0)).toBeLessThan(rows);
});

test('its story reads a page of its deliveries', async () => {
  const costs = await costOf(history.connection, (db) =>
    readDeliveriesOfJob(
      db,
      { source: 'default', jobId: 'busy' },
      { after: { at: '-infinity', id: '00000000-0000-0000-0000-000000000000' }, limit: LIMIT },
    ),
  );
  expect(costs.reduce((sum, cost) => sum + cost.rows, 0)).toBeLessThan(300);
});

test('its pages by another filter lead to each delivery that is meant, once', async () => {
  const asked = { sources: null, job_id: 'busy', outcome: 'conflict' } as DeliveryFilters;
  const found: string[] = [];
  let after = null;
  do {
    const page = await deliveries.read(history.connection.db, asked, { after, limit: LIMIT });
    found.push(...page.items.map(({ id }) => id));
    after = page.next;
  } while (after !== null);

  expect(new Set(found).size).toBe(found.length);
  expect(found).toHaveLength(DELIVERIES / 100);
});

test('its pages by a filter without an index lead to those of each source, though the newest of one are not meant', async () => {
  await history.database.query(
    `insert into deliveries (id, received_at, source, outcome, http_status, job_id, status, path, remote_address,
       headers, secret_fingerprint, body_bytes)
     select gen_random_uuid(), now() - at * interval '10 ms', source, 'accepted', 202, 'shared', status, '/webhooks',
       '10.0.0.1', '{}', 'bbbbbbbbbbbbbbbb', 400
     from (
       select 'default', case when n > 5050 then 'processing' else 'completed' end, n from generate_series(1, 5100) n
       union all select 'other', 'processing', 6000 + n from generate_series(1, 200) n
     ) as delivery (source, status, at)`,
  );
  const found: string[] = [];
  let after = null;
  do {
    const asked = { sources: null, job_id: 'shared', kind: 'progress' } as DeliveryFilters;
    const page = await deliveries.read(history.connection.db, asked, { after, limit: LIMIT });
    found.push(...page.items.map(({ source }) => source));
    after = page.next;
  } while (after !== null);

  expect(found.filter((source) => source === 'default')).toHaveLength(50);
  expect(found).toHaveLength(250);
});
