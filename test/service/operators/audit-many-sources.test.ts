// The lists that no index has in their order: they are merged from the parts of all sources, whose number nobody limits.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { costOf } from '../../support/history.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { events } from '../../../src/operators/events/queries.ts';
import { jobs } from '../../../src/operators/jobs/queries.ts';
import type { List, Page, PageOptions } from '../../../src/operators/kernel/list/list.queries.ts';

const SOURCES = 1_000;
/** Source `s0` has half of all rows. Many rows have the same time, also in different sources. */
const ROWS = 40_000;

const LISTS = {
  events: { list: events, order: 'recorded_at desc, sequence desc', key: 'sequence::text' },
  jobs: {
    list: jobs,
    order: 'first_seen_at desc, source desc, job_id desc',
    key: `source || ' ' || job_id`,
  },
} as const;
const keyOf = (item: unknown): string => {
  const { sequence, source, job_id: job } = item as { sequence?: string; source: string; job_id: string };
  return sequence ?? `${source} ${job}`;
};

let database: TestDatabase;
let connection: ReturnType<typeof connectTestDatabase>;
beforeAll(async () => {
  database = await createTestDatabase();
  connection = connectTestDatabase(database, { reading: 'planned' });
  const source = `'s' || case when g % 2 = 0 then 0 else g / 2 % ${SOURCES} end`;
  const at = `now() - g / 7 * interval '1 second'`;
  await database.query(
    `insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status)
     select ${source}, 'job_' || g, ${at}, now(), case when g % 10 = 0 then now() end,
            case when g % 10 = 0 then 'completed' else 'processing' end
     from generate_series(1, ${ROWS}) g`,
  );
  await database.query(
    `insert into events (source, job_id, status, progress_percentage, late, recorded_at, delivery_id, content_hash, repeats)
     select ${source}, 'job_' || g, case when g % 10 = 0 then 'completed' else 'processing' end,
            case when g % 10 = 0 then null else 45 end, false, ${at}, gen_random_uuid(), '', 0
     from generate_series(1, ${ROWS}) g`,
  );
  // The newest: 600 rows of one source that have not ended, one that has, and 60 of another source that have.
  const newest = `select g, case when g <= 601 then 'loud' else 'even' end as source, g >= 601 as ended,
    now() + interval '1 minute' - g * interval '1 ms' as at from generate_series(1, 661) g`;
  await database.query(
    `insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status)
     select source, 'new_' || g, at, at, case when ended then at end, case when ended then 'completed' else 'processing' end
     from (${newest}) n`,
  );
  await database.query(
    `insert into events (source, job_id, status, progress_percentage, late, recorded_at, delivery_id, content_hash, repeats)
     select source, 'new_' || g, case when ended then 'completed' else 'processing' end, case when not ended then 45 end,
            false, at, gen_random_uuid(), '', 0
     from (${newest}) n`,
  );
  await database.query('vacuum analyze jobs, events');
});
afterAll(async () => {
  await connection.close();
  await database[Symbol.asyncDispose]();
});

describe.each(['events', 'jobs'] as const)('the list of %s of a thousand sources', (name) => {
  const { order, key } = LISTS[name];
  const list = LISTS[name].list as List<never, unknown>;
  const read = (asked: object, options: PageOptions, db = connection.db) =>
    list.read(db, { sources: null, ...asked } as never, options);

  const ended = name === 'events' ? { status: 'completed' } : { state: 'completed' };
  const isEnded = name === 'events' ? `status = 'completed'` : `last_status = 'completed'`;

  test.each([
    [{}, 'true'],
    [ended, isEnded],
  ])('by %j has every row once, in its order', async (asked, condition) => {
    const wanted = await database.query<{ key: string }>(
      `select ${key} as key from ${name} where ${condition} order by ${order} limit 2000`,
    );
    const found: string[] = [];
    let after: PageOptions['after'] = null;
    do {
      const page: Page<unknown> = await read(asked, { after, limit: 40 });
      found.push(...page.items.map(keyOf));
      after = page.next;
    } while (after !== null && found.length < wanted.length);
    expect(found.slice(0, wanted.length)).toEqual(wanted.map((row) => row.key));
  });

  test.each([{}, { to: new Date(Date.now() - 3_000_000).toISOString() }])(
    'by %j reads few rows of each for a page',
    async (asked) => {
      const { next } = await read(asked, { after: null, limit: 1_000 });
      for (const after of [null, next]) {
        const costs = await costOf(connection, (db) => read(asked, { after, limit: 50 }, db));
        expect(costs).toHaveLength(1);
        // A step to find each source, two rows of each, and the page.
        expect(costs[0]?.rows).toBeLessThan(SOURCES * 5);
        expect(costs[0]?.scanned).toEqual([]);
      }
    },
  );
});
