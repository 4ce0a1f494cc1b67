// Publications that share a row, among those with a row of their own: operators cannot tell one from the other.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNewRows, type RowKey } from '../../../src/operators/kernel/list/new-rows.queries.ts';
import { readPublicationsNamed } from '../../../src/operators/publications/queries.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Answer, operators, type Operators } from '../../support/operators.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { startTestService, type TestService } from '../../support/service.ts';

type Item = Record<string, unknown>;
type Page = { items: Item[]; next_cursor: string | null };

const RELAY = '00000000-0000-4000-8000-000000000001';
const REPLAY = '00000000-0000-4000-8000-000000000002';

/** Jobs of 20 events each: 1 to 20, 21 to 40, … */
const EVENTS = `
  insert into events (sequence, source, job_id, status, progress_percentage, late, recorded_at, delivery_id, content_hash, repeats)
  overriding system value
  select n, case when n <= 60 then 'default' else 'studio' end, 'job_' || (n - 1) / 20, 'processing', (n - 1) % 20, false,
    now() - interval '1 hour', gen_random_uuid(), '\\x00', 0
  from generate_series(1, 80) n`;

/** A row for each, as of old with ids that follow each other. */
const rows = (minutesAgo: number, sequences: string, more: string, id = `nextval('publications_id')`) => `
  insert into publications (id, published_at, event_sequence, attempt, result, replay_id, duration_ms, relay_attempt, relay_id, source)
  select ${id}, now() - interval '${minutesAgo} minutes', n, ${more}, 2, 0, '${RELAY}', case when n <= 60 then 'default' else 'studio' end
  from unnest('{${sequences}}'::bigint[]) n`;

const batch = (minutesAgo: number, source: string, [from, to]: [number, number]) => `
  insert into publication_batches (published_at, relay_id, source, first, sequences, durations_ms)
  select now() - interval '${minutesAgo} minutes', '${RELAY}', '${source}', min(n), array_agg(n order by n),
    array_agg(100 + n order by n)
  from generate_series(${from}, ${to}) n`;

/** In one transaction, so that all times of a minute are equal. */
const HISTORY = [
  EVENTS,
  rows(50, '1,2,3', `1, 'confirmed', null::uuid`, 'n'),
  `select setval('publications_id', 3)`,
  rows(40, '4', `1, 'nacked', null::uuid`),
  // Between rows of the same time.
  rows(30, '61', `1, 'returned', null::uuid`),
  batch(30, 'default', [5, 18]),
  rows(30, '62', `1, 'returned', null::uuid`),
  batch(30, 'studio', [63, 70]),
  batch(30, 'default', [21, 30]),
  rows(20, '4', `2, 'confirmed', null::uuid`),
  rows(20, '5', `1, 'confirmed', '${REPLAY}'::uuid`),
  batch(10, 'default', [19, 20]),
  batch(10, 'studio', [71, 71]),
];

async function walk(api: Operators, path: string): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  do {
    const { status, body, text }: Answer<Page> = await api.get<Page>(
      cursor === null ? path : `${path}&cursor=${encodeURIComponent(cursor)}`,
    );
    expect([status, text.slice(0, 300)]).toEqual([200, expect.any(String)]);
    items.push(...body.items);
    cursor = body.next_cursor;
  } while (cursor !== null);
  return items;
}

const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const idsOf = (items: readonly Item[]) => items.map(({ id }) => id);

describe('with publications in both tables', () => {
  let database: TestDatabase;
  let service: TestService;
  let api: Operators;
  beforeAll(async () => {
    database = await createTestDatabase();
    await database.query(`begin; ${HISTORY.join(';')}; commit`);
    service = await startTestService({ database });
    api = await operators(service);
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  const wanted = async (where: string) =>
    idsOf(
      await database.query<Item>(
        `select id::text from ${PUBLICATIONS} t where ${where} order by published_at desc, t.id desc`,
      ),
    );

  test.each([
    ['', 'true', 43],
    ['source=default', `source = 'default'`, 32],
    ['source=studio', `source = 'studio'`, 11],
    ['result=confirmed', `result = 'confirmed'`, 40],
    ['result=returned', `result = 'returned'`, 2],
    ['result=confirmed&source=studio', `result = 'confirmed' and source = 'studio'`, 9],
    [`replay_id=${REPLAY}`, `replay_id is not null`, 1],
    ['job_id=job_0', 'event_sequence <= 20', 22],
    ['job_id=job_0&result=confirmed', `event_sequence <= 20 and result = 'confirmed'`, 21],
    ['job_id_prefix=job_&source=studio', `source = 'studio'`, 11],
    ['event_id=default:job_0:processing:4', 'event_sequence = 5', 2],
    ['event_id=default:job_0:processing:3', 'event_sequence = 4', 2],
    ['event_id=default:job_2:processing:3', 'false', 0],
    [`from=${ago(25)}`, `published_at > now() - interval '25 minutes'`, 5],
    [
      `from=${ago(35)}&to=${ago(25)}`,
      'published_at = (select min(published_at) from publication_batches)',
      34,
    ],
  ])(
    'the list by "%s" has each of them once, in one order, however small its pages',
    async (query, where, count) => {
      const ids = await wanted(where);
      expect(ids).toHaveLength(count);
      for (const limit of [3, 200]) {
        expect(idsOf(await walk(api, `/publications?limit=${limit}${query && `&${query}`}`))).toEqual(ids);
      }
    },
  );

  test('one that shares a row says as much as one with a row of its own', async () => {
    const { body } = await api.get<Page>('/publications?event_id=default:job_0:processing:6');
    expect(body.items).toEqual([
      {
        id: expect.stringMatching(/^\d+$/),
        published_at: expect.any(String),
        event_id: 'default:job_0:processing:6',
        source: 'default',
        job_id: 'job_0',
        attempt: 1,
        result: 'confirmed',
        detail: null,
        duration_ms: 107,
        relay_id: RELAY,
        replay_id: null,
        queue: null,
      },
    ]);
  });

  test('a caller who may see one source sees none of another in the same settle', async () => {
    const limited = await operators(service, { role: 'viewer', sources: ['studio'] });
    expect(idsOf(await walk(limited, '/publications?limit=5'))).toEqual(await wanted(`source = 'studio'`));
  });

  test.each(['ndjson', 'csv'])('an export as %s has them in the order of the list', async (format) => {
    const response = await api.fetch(`/export?list=publications&format=${format}`);
    const ids = (await response.text())
      .trim()
      .split('\n')
      .map((line) => (format === 'csv' ? line.split(',')[0] : (JSON.parse(line) as Item)['id']));
    expect(format === 'csv' ? ids.slice(1) : ids).toEqual(await wanted('true'));
  });

  test('an event shows its publications of both tables', async () => {
    const { body } = await api.get<{ publications: Item[] }>('/events/default:job_0:processing:4');
    expect(idsOf(body.publications)).toEqual(await wanted('event_sequence = 5'));
    expect(body.publications.map(({ replay_id }) => replay_id)).toEqual([REPLAY, null]);
  });

  test.each([2, 500])('a story tells them in the order of time, in pages of %i', async (limit) => {
    const steps = (await walk(api, `/jobs/default/job_0?limit=${limit}`)) as { publication?: Item }[];
    const ids = steps.flatMap(({ publication }) => publication?.['id'] ?? []);
    expect(ids).toEqual((await wanted('event_sequence <= 20')).toReversed());
  });
});

describe('as they happen', () => {
  test('the newest of a shared row are read, and the others are counted', async () => {
    await using database = await createTestDatabase();
    await database.query(EVENTS);
    await using connection = connectTestDatabase(database);
    const newRows = createNewRows({
      connection,
      of: {
        table: 'publications',
        time: 'published_at',
        packed: { table: 'publication_batches', array: 'durations_ms' },
      },
      lateMs: 600_000,
      rowsMax: 10,
    });
    const poll = () => newRows.poll((keys: readonly RowKey[]) => readPublicationsNamed(connection.db, keys));
    await database.query(batch(3, 'default', [1, 5]));
    expect((await poll()).rows).toEqual([]);

    // Less than ten, of both tables.
    await database.query(batch(2, 'default', [6, 10]));
    await database.query(rows(2, '61', `1, 'returned', null::uuid`));
    const some = await poll();
    expect(some.leftOut).toBe(0);
    expect(some.rows.map(({ event_id }) => event_id)).toEqual([
      ...[5, 6, 7, 8, 9].map((percent) => `default:job_0:processing:${percent}`),
      'studio:job_3:processing:0',
    ]);

    // More: seven, then twelve.
    await database.query(batch(1, 'default', [11, 17]));
    await database.query(batch(0, 'default', [21, 32]));
    const many = await poll();
    expect(many.leftOut).toBe(9);
    expect(many.rows.map(({ event_id }) => event_id)).toEqual(
      Array.from({ length: 10 }, (_, at) => `default:job_1:processing:${at + 2}`),
    );
    expect(many).toMatchObject({ rows: expect.any(Array), since: expect.any(String) });
    expect((await poll()).rows).toEqual([]);
  });
});
