// How much waits for which reason, counted to a limit, and at a bounded cost however much there is.

import { expect, test } from 'vitest';
import { groupOutbox, groupQuarantine } from '../../../src/operators/groups/queries.ts';
import { connectDatabase } from '../../../src/ledger/sessions/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { costOf } from '../../support/history.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { seedEntries, seedQuarantine } from '../../support/waiting.ts';

type Group = {
  value: string | null;
  state?: string;
  copies?: boolean;
  count: number;
  count_is_exact: boolean;
  oldest_at: string;
  newest_at: string | null;
};
type Groups = { items: Group[]; has_more: boolean; complete: boolean };

/** Rows of each part that are read, and one more. */
const READ = 50_001;
/** Pending events in a batch, and the batches that are read. */
const BATCH = 20;
const BATCHES = Math.ceil(READ / BATCH);

const told = ({ items }: Groups) =>
  items.map(({ value, state, copies, count, count_is_exact: isExact }) =>
    [value, state, copies ? 'copies' : undefined, `${count}${isExact ? '' : '+'}`]
      .filter((part) => part !== undefined)
      .join(' | '),
  );

/** As operators are connected. */
const connect = ({ url }: TestDatabase) =>
  connectDatabase({
    url,
    name: 'operators',
    connections: 1,
    statementTimeoutMs: 20_000,
    lockTimeoutMs: 10_000,
    queryTimeoutMs: 21_000,
    reading: 'planned',
    log: createTestLog().log,
  });

test('the outbox is grouped by reason, source and queue, each state for itself, the largest group first', async () => {
  await using database = await createTestDatabase();
  await holdOutbox(database);
  await using service = await startTestService({ database });
  await seedEntries(database, { state: 'returned', from: 1, count: 3 });
  await seedEntries(database, { state: 'returned', from: 4, source: 'team-a', count: 2 });
  await seedEntries(database, { state: 'parked', from: 10, count: 4, error: 'too large' });
  await seedEntries(database, { state: 'pending', from: 20 });
  await seedEntries(database, { state: 'returned', from: 30, count: 2, queue: 'billing' });
  const api = await operators(service, { role: 'viewer' });
  const groups = async (query: string, caller = api) => {
    const { body } = await caller.get<Groups>(`/outbox/groups?${query}`);
    expect(body).toMatchObject({ has_more: false, complete: true });
    return told(body);
  };

  const { body } = await api.get<Groups>('/outbox/groups');
  expect(told(body)).toEqual([
    '312 NO_ROUTE | returned | 5',
    'too large | parked | 4',
    '312 NO_ROUTE | returned | copies | 2',
    ' | pending | 1',
  ]);
  const [{ recorded_at: oldest }] = (await api.get<{ items: [{ recorded_at: string }] }>('/outbox')).body
    .items;
  expect(body.items[0]).toMatchObject({ value: '312 NO_ROUTE', oldest_at: oldest, count_is_exact: true });
  const spanMs = Date.parse(body.items[0]?.newest_at ?? '') - Date.parse(oldest);
  expect(Math.floor(spanMs / 1_000)).toBe(4); // each is a second younger than the one before
  expect(body.items.at(-1)?.value).toBeNull();
  expect(await groups('by=source&state=returned&copies=false')).toEqual([
    'default | returned | 3',
    'team-a | returned | 2',
  ]);
  expect(await groups('by=queue&copies=true')).toEqual(['billing | returned | copies | 2']);
  expect(await groups('by=source&reason=too+large')).toEqual(['default | parked | 4']);
  expect(await groups('source=team-a')).toEqual(['312 NO_ROUTE | returned | 2']);
  const limited = await operators(service, { role: 'viewer', sources: ['team-a'] });
  expect(await groups('', limited)).toEqual(['312 NO_ROUTE | returned | 2']);
  expect((await limited.get('/outbox/groups?source=default')).status).toBe(403);
  expect((await api.get('/outbox/groups?by=job')).status).toBe(400);
  expect((await api.get('/outbox/groups?job_id=job_1')).status).toBe(400);
});

test('the quarantine is grouped by reason and source, of what waits or was decided', async () => {
  await using service = await startTestService();
  const { database } = service;
  await seedQuarantine(database, { count: 3 });
  await seedQuarantine(database, { count: 2, reason: 'cost_cents is missing', source: 'team-a' });
  const [gone] = await seedQuarantine(database, { reason: 'a test' });
  const api = await operators(service, { role: 'operator' });
  await orderOne(api, 'quarantine/discard', gone ?? '', { note: 'a test' });
  const groups = async (query: string, caller = api) => {
    const { body } = await caller.get<Groups>(`/quarantine/groups?${query}`);
    expect(body).toMatchObject({ has_more: false, complete: true });
    return told(body);
  };

  expect(await groups('')).toEqual(['unknown status | 3', 'cost_cents is missing | 2']);
  expect(await groups('by=source')).toEqual(['default | 3', 'team-a | 2']);
  expect(await groups('by=source&reason=unknown+status')).toEqual(['default | 3']);
  expect(await groups('state=discarded')).toEqual(['a test | 1']);
  expect(await groups('job_id=job_1&status=paused')).toHaveLength(2);
  expect(await groups(`from=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
  const limited = await operators(service, { role: 'viewer', sources: ['team-a'] });
  expect(await groups('', limited)).toEqual(['cost_cents is missing | 2']);
  expect((await limited.get('/quarantine/groups?source=default')).status).toBe(403);
  expect((await api.get('/quarantine/groups?by=queue')).status).toBe(400);
});

test('a group is counted to 10,000, and a hundred groups are shown, the largest ones', async () => {
  await using service = await startTestService();
  const { database } = service;
  const api = await operators(service, { role: 'viewer' });
  await seedQuarantine(database, { count: 10_000 });
  expect(told((await api.get<Groups>('/quarantine/groups')).body)).toEqual(['unknown status | 10000']);
  await seedQuarantine(database);
  await seedQuarantine(database, { count: 300, reason: 'one of many' });
  await database.query(
    `update deliveries set reason = 'reason ' || split_part(job_id, '_', 2)::int % 150 where reason = 'one of many'`,
  );
  await seedQuarantine(database, { count: 3, reason: 'a larger one' });

  const { body } = await api.get<Groups>('/quarantine/groups');

  expect(body).toMatchObject({ has_more: true, complete: true });
  expect(body.items).toHaveLength(100);
  expect(told(body).slice(0, 3)).toEqual([
    'unknown status | 10000+',
    'a larger one | 3',
    expect.stringMatching(/^reason \d+ \| 2$/),
  ]);
});

test('of a deep outbox a bounded part is read, statistics or not, and the rest is said to be there', async () => {
  await using database = await createTestDatabase();
  for (const table of ['outbox_batches', 'outbox_held'])
    await database.query(`alter table ${table} set (autovacuum_enabled = false)`);
  await seedEntries(database, { state: 'pending', from: 1, count: READ, batchOf: BATCH });
  await seedEntries(database, { state: 'returned', from: 1_000_001, count: 2 * READ });
  await seedEntries(database, { state: 'parked', from: 2_000_001, count: 2, source: 'team-b' });
  const connection = connect(database);
  await using _ = { [Symbol.asyncDispose]: connection.close };
  const parked = '312 NO_ROUTE | parked | 2';
  const returned = '312 NO_ROUTE | returned | 10000+';
  for (const isKnown of [false, true]) {
    if (isKnown) await database.query('analyze outbox_batches, outbox_held');
    for (const { asked, most, groups } of [
      { asked: {}, most: READ + BATCHES + 2, groups: [' | pending | 10000+', parked, returned] },
      // Only a look at its event tells the source of one in a batch.
      { asked: { sources: ['team-b'] }, most: 2 * READ + BATCHES + 2, groups: [parked] },
      { asked: { state: 'returned' }, most: READ, groups: [returned] },
      { asked: { reason: 'of nobody' }, most: READ + BATCHES + 2, groups: [] },
      { asked: { copies: true }, most: 0, groups: [] },
    ] as const) {
      const found: Groups[] = [];
      const costs = await costOf(connection, async (db) => {
        found.push(await groupOutbox(db, { by: 'reason', sources: null, ...asked }));
      });
      expect(costs).toHaveLength(1);
      expect(costs[0]?.rows).toBeLessThanOrEqual(most);
      expect(found.map((one) => told(one).toSorted())).toEqual([groups]);
      expect(found).toMatchObject([{ complete: most === 0 }]);
      const ofReturned = found.flatMap(({ items }) => items).filter(({ state }) => state === 'returned');
      expect(ofReturned.filter(({ newest_at: newest }) => newest !== null)).toEqual([]);
    }
  }
});

test('of a deep quarantine a bounded part is read', async () => {
  await using database = await createTestDatabase();
  await seedQuarantine(database, { count: 2 * READ });
  await database.query('analyze deliveries');
  const connection = connect(database);
  await using _ = { [Symbol.asyncDispose]: connection.close };
  for (const asked of [{}, { reason: 'of nobody' }, { source: 'nobody' }, { job_id: 'job_1' }]) {
    const costs = await costOf(connection, async (db) => {
      expect(await groupQuarantine(db, { by: 'reason', sources: null, ...asked })).toMatchObject({
        complete: false,
        has_more: false,
      });
    });
    expect(costs).toHaveLength(1);
    expect(costs[0]?.rows).toBeLessThanOrEqual(READ);
  }
});
