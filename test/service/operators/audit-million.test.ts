// The lists on a million deliveries, by what Postgres says that it read. Times are for the benchmark.

import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SEEDED } from '../../../bench/audit-seed.ts';
import { deliveries, findBody, findDelivery } from '../../../src/operators/deliveries/queries.ts';
import { events, findEvent } from '../../../src/operators/events/queries.ts';
import { jobs } from '../../../src/operators/jobs/queries.ts';
import type { List, Page } from '../../../src/operators/kernel/list/list.queries.ts';
import { LOOK_MAX, readLooks } from '../../../src/ledger/looks/looks.ts';
import { readOutboxDepth } from '../../../src/ledger/recording/outbox-depth.ts';
import { outbox } from '../../../src/operators/outbox/queries.ts';
import { publications } from '../../../src/operators/publications/queries.ts';
import { quarantine } from '../../../src/operators/quarantine/queries.ts';
import { search } from '../../../src/operators/search/queries.ts';
import { readStory } from '../../../src/operators/story/queries.ts';
import { operators } from '../../support/operators.ts';
import { patience } from '../../support/patience.ts';
import { startReplica } from '../../support/replica.ts';
import { costOf, createHistory, type History, type ListTable, placeAt } from '../../support/history.ts';

const DELIVERIES = 1_000_000;
const HEAP_MIB = 72;
const PAGE = 50;
/** Of a million rows, for a page by one filter: some for each page, and for each partition. */
const ONE_FILTER_ROWS = 1_000;
/** By a prefix of job ids: those that begin with it are counted first, to a limit. */
const PREFIX_ROWS = 8_000;
/** Where filters meet that no index serves together. Pages may be short there, and nowhere else. */
const MEETING_ROWS = 25_000;

let history: History;
beforeAll(async () => {
  history = await createHistory(DELIVERIES);
}, patience(300_000));
afterAll(async () => {
  await history[Symbol.asyncDispose]();
});

const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1_000).toISOString();
const { sources, secrets, addresses, errorCodes, prefixes } = SEEDED;
const NONE = 'there-is-none';

const bySource = [
  { source: sources.common },
  { source: sources.rare },
  { source: sources.oldest },
  { source: NONE },
];
const byPrefix = [
  { job_id_prefix: prefixes.common },
  { job_id_prefix: prefixes.narrow },
  { job_id_prefix: NONE },
];
/** Of one row in fifty: too many to sort, too few to be met on the way. */
const byMiddlingPrefix = { job_id_prefix: prefixes.oldest };
const byTime = [
  {},
  { from: daysAgo(20), to: daysAgo(10) },
  { to: daysAgo(28) },
  { from: daysAgo(-1) },
  { from: daysAgo(3), to: daysAgo(2.9) },
];

const midsts = new Map<ListTable, Promise<string[]>>();

/** The cursor position of some row of two weeks ago. It is looked for once for each table. */
function midstOf(table: ListTable, order: { time: string; ties: readonly string[] }): Promise<string[]> {
  const midst = midsts.get(table) ?? placeAt(history.connection, table, { ...order, before: daysAgo(14) });
  midsts.set(table, midst);
  return midst;
}

type Asked = Readonly<Record<string, unknown>>;

const LISTS = {
  deliveries: {
    list: deliveries,
    order: { time: 'received_at', ties: ['id'] },
    single: [
      ...byTime,
      ...bySource,
      ...byPrefix,
      ...['accepted', 'duplicate', 'quarantined', 'malformed', 'unauthorized', 'refused'].map((outcome) => ({
        outcome,
      })),
      { status: 'completed' },
      { status: 'exploded' },
      { status: NONE },
      { kind: 'progress' },
      ...[...Object.values(errorCodes), NONE].map((error_code) => ({ error_code })),
      ...[...Object.values(secrets), NONE].map((secret_fingerprint) => ({ secret_fingerprint })),
      ...[...Object.values(addresses), NONE].map((remote_address) => ({ remote_address })),
      { job_id: NONE },
    ],
    meeting: [
      byMiddlingPrefix,
      { sources: [sources.common, sources.rare, NONE] },
      { sources: [sources.second, sources.common, sources.oldest], status: 'exploded' },
      { source: sources.oldest, error_code: errorCodes.common },
      { outcome: 'conflict', status: 'processing' },
      { job_id: NONE, outcome: 'accepted' },
      { secret_fingerprint: secrets.old, outcome: 'accepted', status: 'failed' },
      { secret_fingerprint: secrets.old, from: daysAgo(2) },
      { secret_fingerprint: secrets.present, remote_address: addresses.common, to: daysAgo(15) },
      { source: sources.second, job_id_prefix: prefixes.oldest },
    ],
  },
  events: {
    list: events,
    order: { time: 'recorded_at', ties: ['sequence'] },
    single: [
      ...byTime,
      ...bySource,
      ...byPrefix,
      { status: 'failed' },
      { kind: 'progress' },
      ...[...Object.values(errorCodes), NONE].map((error_code) => ({ error_code })),
      { late: true },
      { late: false },
      { job_id: NONE },
    ],
    meeting: [
      byMiddlingPrefix,
      { sources: [sources.common, sources.rare, NONE] },
      { source: sources.oldest, status: 'failed' },
      { error_code: errorCodes.common, status: 'completed' },
      { late: true, source: sources.second },
      { job_id_prefix: prefixes.oldest, status: 'failed' },
    ],
  },
  publications: {
    list: publications,
    order: { time: 'published_at', ties: ['id'] },
    single: [
      ...byTime,
      ...bySource,
      ...['confirmed', 'returned', 'nacked', 'failed'].map((result) => ({ result })),
      { replay_id: '00000000-0000-4000-8000-000000000001' },
      { event_id: `${sources.common}:${NONE}:completed` },
      { event_id: NONE },
      { job_id: NONE },
      { job_id_prefix: prefixes.common },
      { job_id_prefix: prefixes.narrow },
      { job_id_prefix: NONE },
    ],
    meeting: [
      { sources: [sources.common, sources.rare, NONE] },
      { result: 'returned', source: sources.oldest },
      byMiddlingPrefix,
    ],
  },
  jobs: {
    list: jobs,
    order: { time: 'first_seen_at', ties: ['source', 'job_id'] },
    single: [
      ...byTime,
      ...bySource,
      ...byPrefix,
      ...['processing', 'completed', 'failed', 'stuck'].map((state) => ({ state })),
      { state: 'stuck', stuck_after: 25 * 24 * 60 * 60 },
      { job_id: NONE },
    ],
    meeting: [
      byMiddlingPrefix,
      { sources: [sources.common, sources.rare, NONE] },
      { state: 'failed', source: sources.oldest },
      { state: 'stuck', job_id_prefix: prefixes.oldest },
    ],
  },
  quarantine: {
    list: quarantine,
    order: { time: 'received_at', ties: ['id'] },
    single: [...byTime, { state: 'released' }, { state: 'discarded' }, { job_id: NONE }],
    // What waits in quarantine is the index: the seed has 5,000 of them.
    meeting: [...bySource, ...byPrefix, byMiddlingPrefix, { status: 'exploded' }, { status: 'completed' }],
  },
} as const;

/** As the API reads a query of a token that sees all. */
function toFilters({ source, ...others }: Asked): never {
  return { sources: source === undefined ? null : [source], ...others } as never;
}

const cases = Object.entries(LISTS).flatMap(([name, { single, meeting }]) => [
  ...(single as readonly Asked[]).map((asked) => {
    const most = 'job_id_prefix' in asked ? PREFIX_ROWS : ONE_FILTER_ROWS;
    return [name, asked, { most, isFull: true }] as const;
  }),
  ...(meeting as readonly Asked[]).map(
    (asked) => [name, asked, { most: MEETING_ROWS, isFull: false }] as const,
  ),
]);

describe('on a million deliveries', () => {
  test.each(cases)(
    'the list of %s by %j reads no table, from its begin and from its midst',
    async (name, asked, { most, isFull }) => {
      const { list, order } = LISTS[name as keyof typeof LISTS];
      const table = name === 'quarantine' ? 'deliveries' : (name as ListTable);
      const midst = await midstOf(table, order);
      for (const after of [null, midst]) {
        const pages: Page<unknown>[] = [];
        const costs = await costOf(history.connection, async (db) => {
          pages.push(await (list as List<never, unknown>).read(db, toFilters(asked), { after, limit: PAGE }));
        });
        expect(costs.length).toBeGreaterThan(0);
        const isShort = pages.some(({ items, next }) => items.length < PAGE && next !== null);
        expect(isFull && isShort).toBe(false);
        expect(costs.flatMap(({ scanned }) => scanned)).toEqual([]);
        expect(Math.max(...costs.map(({ rows }) => rows))).toBeLessThan(most);
      }
    },
  );

  test.each([
    ['deliveries', {}],
    ['deliveries', { outcome: 'accepted' }],
    ['deliveries', { source: sources.common }],
    ['events', {}],
    ['events', { source: sources.common }],
    ['publications', {}],
    ['jobs', { state: 'completed' }],
  ] as const)('page 1,000 of %s by %j touches as much as page 1', async (name, asked) => {
    const { list, order } = LISTS[name];
    const deep = await placeAt(history.connection, name, { ...order, offset: 1_000 * PAGE });
    const read = async (after: readonly string[] | null) => {
      const [cost, ...others] = await costOf(history.connection, (db) =>
        (list as List<never, unknown>).read(db, toFilters(asked), { after, limit: PAGE }),
      );
      if (cost === undefined || others.length > 0) throw new Error('a page is one statement');
      return cost;
    };
    const [first, thousandth] = [await read(null), await read(deep)];
    expect(thousandth.rows).toBeLessThan(first.rows * 1.5 + PAGE);
    expect(thousandth.buffers).toBeLessThan(first.buffers * 1.5 + 50);
  });

  test('filters that no index serves together still give every row once, though pages are short', async () => {
    const { db } = history.connection;
    const { rows: wanted } = await sql<{ id: string }>`
      select id from deliveries where source in ('studio', 'rare') and outcome = 'duplicate'
        and secret_fingerprint = ${secrets.old} and job_id like 'batch-%'
      order by received_at desc, id desc`.execute(db);
    expect(wanted.length).toBeGreaterThan(100);
    const found: string[] = [];
    let shortPages = 0;
    let after: readonly string[] | null = null;
    do {
      const page: Awaited<ReturnType<typeof deliveries.read>> = await deliveries.read(
        db,
        {
          sources: ['studio', 'rare'],
          outcome: 'duplicate',
          secret_fingerprint: secrets.old,
          job_id_prefix: prefixes.oldest,
        },
        { after, limit: 200 },
      );
      found.push(...page.items.map(({ id }) => id));
      if (page.next !== null && page.items.length < 200) shortPages += 1;
      after = page.next;
    } while (after !== null);
    expect(found).toEqual(wanted.map(({ id }) => id));
    expect(shortPages).toBeGreaterThan(0);
  });

  test.each([
    {},
    { state: 'pending' },
    { state: 'returned' },
    { state: 'parked' },
    { copies: true },
    { copies: false },
    { copies: false, state: 'pending' },
    { copies: false, state: 'returned' },
    { copies: true, source: sources.rare },
    { source: sources.common },
    { source: NONE },
    { source: sources.rare, state: 'pending' },
    { job_id: NONE },
  ] as const)('the outbox by %j reads a bounded part of it', async (asked) => {
    const costs = await costOf(history.connection, (db) =>
      outbox.read(db, toFilters(asked), { after: null, limit: PAGE }),
    );
    expect(Math.max(...costs.map(({ rows }) => rows))).toBeLessThanOrEqual(10_500);
  });

  test('the depth of the outbox, a delivery, its body, an event and a story are looked up', async () => {
    const [event] = (
      await events.read(history.connection.db, { sources: null, to: daysAgo(12) }, { after: null, limit: 1 })
    ).items;
    if (event === undefined) throw new Error('there is no event');
    const costs = await costOf(history.connection, async (db) => {
      await findDelivery(db, event.delivery_id);
      await findBody(db, event.delivery_id);
      await findEvent(db, event.id);
      const story = await readStory(
        db,
        { source: event.source, jobId: event.job_id },
        { after: null, limit: 500 },
      );
      expect(story?.items.length).toBeGreaterThan(3);
    });
    expect(costs.flatMap(({ scanned }) => scanned)).toEqual([]);
    expect(costs.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThan(200);

    const [depth] = await costOf(history.connection, (db) => readOutboxDepth(db, null));
    expect(depth?.rows).toBeLessThanOrEqual(100_001);
  });

  test('a look reads no table, and of what it counts no more than it counts', async () => {
    // All sources share the present secret, so that of each hour as many deliveries are read as at most are.
    await history.database.query(
      `insert into secret_matches select source, $1, now() - interval '1 minute' from unnest($2::text[]) source`,
      [secrets.present, Object.values(sources)],
    );
    const [depth, ...others] = await costOf(history.connection, (db) => readLooks(db));
    expect(depth?.rows).toBeLessThanOrEqual(100_001);
    expect(others.flatMap(({ scanned }) => scanned).filter((table) => table !== 'pg_class')).toEqual([]);
    const rows = others.map((cost) => cost.rows);
    const [waiting = NaN, catalog = NaN, ofSources = NaN, leases = NaN] = rows;
    expect(waiting).toBeLessThanOrEqual(3 * (LOOK_MAX + 1));
    expect(catalog).toBeLessThan(20_000); // what is in the catalog is by tables, days and indexes
    expect(ofSources).toBeLessThan(Object.keys(sources).length * 24 * 100 + 100);
    expect(leases).toBeLessThan(10);
  });

  test.each([
    'job',
    prefixes.common,
    prefixes.narrow,
    prefixes.oldest,
    NONE,
    sources.common,
    sources.oldest,
    errorCodes.common,
    '00000000-0000-4000-8000-000000000001',
    `${sources.common}:${NONE}:completed`,
  ])('a search for %s is a few look-ups', async (text) => {
    for (const within of [null, [sources.rare, sources.oldest]]) {
      const costs = await costOf(history.connection, (db) =>
        search(db, text, { sources: within, configured: [sources.common] }),
      );
      expect(costs.flatMap(({ scanned }) => scanned)).toEqual([]);
      expect(Math.max(...costs.map(({ rows }) => rows))).toBeLessThan(MEETING_ROWS);
      expect(costs.filter(({ rows }) => rows >= ONE_FILTER_ROWS).length).toBeLessThanOrEqual(
        // The middle of an id is looked for in the newest jobs; an error code of some sources among the newest of all.
        1 + (within === null ? 0 : 2),
      );
    }
  });

  test('a search for a busy job reads none of its deliveries but the newest', async () => {
    const { rows } = await sql<{ job_id: string }>`
      select job_id from deliveries where job_id is not null group by job_id order by count(*) desc limit 1`.execute(
      history.connection.db,
    );
    const costs = await costOf(history.connection, (db) =>
      search(db, rows[0]?.job_id ?? '', { sources: null, configured: [] }),
    );
    expect(Math.max(...costs.map((cost) => cost.rows))).toBeLessThan(ONE_FILTER_ROWS);
  });

  test('an export goes through a heap that is smaller than its text', async () => {
    // It would be out of memory, and the answer cut, if it kept what it reads or what it writes.
    await using replica = await startReplica({
      databaseUrl: history.database.url,
      env: {
        // With a small young generation. One of the usual size finds no room in so small a heap, and each collection is
        // a full one: that takes four times as long.
        NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB} --max-semi-space-size=1`,
        // Without a broker, so that it does not publish the 20,000 entries that wait in the outbox meanwhile.
        AMQP_URL: 'amqp://127.0.0.1:1',
      },
    });
    const api = await operators({ operators: replica.operators, database: history.database });
    const response = await api.fetch(`/export?list=deliveries&from=${daysAgo(6.1)}`);
    let [lines, bytes] = [0, 0];
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1;
    }
    expect(lines).toBeGreaterThan(170_000);
    expect(bytes / 2 ** 20).toBeGreaterThan(HEAP_MIB);
  });
});
