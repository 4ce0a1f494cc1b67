// The list of all deliveries, which no index has in its order: it is merged from the parts of all sources, in a table with a partition
// for each day. Most days here have none, some have many at one time, and one has a source with nearly all of them.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { deliveries } from '../../../src/operators/deliveries/queries.ts';
import type { PageOptions } from '../../../src/operators/kernel/list/list.queries.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { costOf } from '../../support/history.ts';
import { connectTestDatabase } from '../../support/relay.ts';

const SOURCES = 1_000;
const SAME_TIME = 500;
const BUSY = 6_000;
const DAYS = 31;
const DAY_MS = 86_400_000;
const TODAY_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS;

let database: TestDatabase;
let connection: ReturnType<typeof connectTestDatabase>;
beforeAll(async () => {
  database = await createTestDatabase();
  connection = connectTestDatabase(database, { reading: 'planned' });
  await database.query(`
    do $$ declare day date; name text; begin
      for n in -7..${DAYS} loop
        day := '${noon(0)}'::date - n;
        name := 'deliveries' || to_char(day, '_YYYYMMDD');
        if to_regclass(name) is null then -- the template has some
          execute format('create table %I partition of deliveries for values from (%L) to (%L)', name,
            day || ' 00:00:00+00', day + 1 || ' 00:00:00+00');
        end if;
      end loop;
    end $$`);
  const today = `'${new Date(TODAY_MS).toISOString()}'::timestamptz`;
  // Each: its first, how many, and when. One is in the future, as when the clock was set back.
  const parts = [
    [1, 20, `now() - g * interval '1 ms'`],
    [101, 3_000, `${today} - interval '9 days' - g / 7 * interval '1 s'`],
    [10_001, SAME_TIME, `${today} - interval '12 days'`],
    [20_001, SAME_TIME, `${today} - interval '20 days' + interval '1 hour'`],
    [30_001, 1, `${today} + interval '5 days'`],
    [100_001, BUSY, `${today} - interval '15 days' - g * interval '1 ms'`],
  ] as const;
  for (const [first, count, at] of parts) {
    await database.query(
      `insert into deliveries (id, received_at, source, outcome, http_status, status, path, headers)
       select gen_random_uuid(), ${at}, case when g < 100000 or g % 20 = 0 then 's' || g % ${SOURCES} else 'busy' end,
         'accepted', 202, case when g < 100000 and g % 10 = 0 then 'completed' else 'processing' end, '/webhooks', '{}'
       from generate_series(${first}::int, ${first + count - 1}::int) g`,
    );
  }
  await database.query('vacuum analyze deliveries');
});
afterAll(async () => {
  await connection.close();
  await database[Symbol.asyncDispose]();
});

/** Of the day that many days ago, so that the time at which the test runs does not decide in which partition a place is. */
function noon(daysAgo: number): string {
  return new Date(TODAY_MS - (daysAgo - 0.5) * DAY_MS).toISOString();
}
const read = (asked: object, options: PageOptions, db = connection.db) =>
  deliveries.read(db, { sources: null, ...asked }, options);

test.each([
  [{}, 'true', 40],
  [{}, 'true', 1_000],
  [{ status: 'completed' }, `status = 'completed'`, 40],
  [{ to: noon(10) }, `received_at < '${noon(10)}'`, 60],
  [{ from: noon(13), to: noon(5) }, `received_at between '${noon(13)}' and '${noon(5)}'`, 60],
  [{ from: noon(3) }, `received_at > '${noon(3)}'`, 15],
])('by %j every delivery comes once, in the order of the list', async (asked, condition, limit) => {
  const wanted = await database.query<{ id: string }>(
    `select id from deliveries where ${condition} order by received_at desc, id desc`,
  );
  const found: string[] = [];
  let after: PageOptions['after'] = null;
  do {
    const page = await read(asked, { after, limit });
    found.push(...page.items.map(({ id }) => id));
    after = page.next;
  } while (after !== null);
  expect(wanted.length).toBeGreaterThan(limit);
  expect(found).toEqual(wanted.map(({ id }) => id));
});

test.each([
  // The day with twenty rows is one page, which Postgres reads for each source.
  { what: 'where the newest days have few rows', asked: {}, statements: 3, more: SOURCES * 21 },
  { what: 'in a day with many rows', asked: { to: noon(9) }, statements: 1, more: 0 },
  { what: 'among rows of the same time', asked: { to: noon(12) }, statements: 1, more: SAME_TIME },
  // The page, and how far it reaches. Nearly all rows are of one source.
  {
    what: 'by a status that no row has',
    asked: { to: noon(15), status: 'completed' },
    statements: 2,
    more: 0,
  },
])('a page $what reads a bounded part', async ({ asked, statements, more }) => {
  const { next } = await read(asked, { after: null, limit: 30 });
  for (const after of [null, next]) {
    const costs = await costOf(connection, (db) => read(asked, { after, limit: 50 }, db));
    expect(costs.length).toBeLessThanOrEqual(statements);
    // A step to find each source, two rows of each, and the page.
    expect(Math.max(...costs.map(({ rows }) => rows))).toBeLessThan(SOURCES * 5 + more);
    expect(costs.flatMap(({ scanned }) => scanned).filter((name) => !name.endsWith(newestDay()))).toEqual([]);
  }
});

const newestDay = () => noon(0).slice(0, 10).replaceAll('-', '');
