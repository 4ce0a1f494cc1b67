// How much waits, where there is more of it than is counted: what there is much of must hide nothing of the rest.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { readOutboxDepth } from '../../../src/ledger/recording/outbox-depth.ts';
import { connectDatabase } from '../../../src/ledger/sessions/database.ts';
import { type Cli, cliOf } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { costOf } from '../../support/history.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { insertHeld, insertPending } from '../../support/outbox-rows.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { operators } from '../../support/operators.ts';
import { readMetrics } from '../../support/requests.ts';
import { createTestLog, startTestService, type TestService } from '../../support/service.ts';

/** One more than are counted of a state. */
const MANY = 100_001;

/** Lately enough that those returned are still kept. */
const BEGIN = new Date(Math.floor(Date.now() / 1_000) * 1_000 - 10 * 24 * 60 * 60 * 1_000);

/** As many as a busy intake writes at once. */
const BATCH = 20;

/** Entries numbered `from` and on, recorded a second one after the other; pending ones in batches, each at one time. */
function seed(
  database: TestDatabase,
  {
    state,
    ...entries
  }: { state: 'pending' | 'returned' | 'parked'; source: string; from: number; count?: number },
): Promise<void> {
  const rows = { ...entries, begin: BEGIN };
  return state === 'pending'
    ? insertPending(database, { ...rows, batchOf: BATCH })
    : insertHeld(database, { ...rows, state });
}

const timeOf = (sequence: number) =>
  new Date(BEGIN.getTime() + sequence * 1_000).toISOString().replace('000Z', '000000Z');

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

type Depth = {
  counts: { pending: number; returned: number; parked: number };
  counts_complete: boolean;
  oldest_pending_at: string | null;
};

let database: TestDatabase;
let service: TestService;
let cli: Cli;
beforeAll(async () => {
  database = await createTestDatabase();
  await holdOutbox(database);
  await seed(database, { state: 'returned', source: 'team-a', from: 1, count: MANY });
  await seed(database, { state: 'pending', source: 'team-a', from: 200_001, count: 2 });
  await seed(database, { state: 'pending', source: 'team-b', from: 200_003 });
  await seed(database, { state: 'parked', source: 'team-b', from: 200_004, count: 3 });
  service = await startTestService({ database });
  cli = await cliOf(service, { role: 'operator' });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

test('what is pending and parked is told of behind more returned entries than are counted', async () => {
  const api = await operators(service, { role: 'viewer' });
  expect((await api.get<Depth>('/outbox?limit=1')).body).toMatchObject({
    counts: { pending: 3, returned: 100_000, parked: 3 },
    copies: 0,
    counts_complete: false,
    oldest_pending_at: timeOf(200_001),
  });
});

test('a source whose entries stand behind more of others than are counted is not told that all were counted', async () => {
  const limited = await operators(service, { role: 'viewer', sources: ['team-b'] });
  const all = await operators(service, { role: 'viewer' });
  for (const { body } of [
    await limited.get<Depth>('/outbox'),
    await all.get<Depth>('/outbox?source=team-b'),
  ]) {
    expect(body).toMatchObject({
      counts: { pending: 1, returned: 0, parked: 3 },
      counts_complete: false,
      oldest_pending_at: timeOf(200_003),
    });
  }
  const nobody = await operators(service, { role: 'viewer', sources: ['team-c'] });
  expect((await nobody.get<Depth>('/outbox')).body).toMatchObject({
    counts: { pending: 0, returned: 0, parked: 0 },
    counts_complete: false,
    oldest_pending_at: null,
  });
});

test('more pending entries than are counted cost no more than those that are, statistics or not', async () => {
  await using own = await createTestDatabase();
  await own.query('alter table outbox_batches set (autovacuum_enabled = false)');
  await seed(own, { state: 'pending', source: 'team-a', from: 1, count: MANY + BATCH });
  const connection = connect(own);
  await using _ = { [Symbol.asyncDispose]: connection.close };
  for (const isKnown of [false, true]) {
    if (isKnown) await own.query('analyze outbox_batches');
    for (const sources of [null, ['team-a'], ['team-b']]) {
      const costs = await costOf(connection, async (db) => {
        expect(await readOutboxDepth(db, sources)).toMatchObject({
          counts: { pending: sources?.[0] === 'team-b' ? 0 : 100_000 },
          isComplete: false,
        });
      });
      expect(costs).toHaveLength(1);
      // Of events in batches, only a look at the event tells the source.
      const batches = Math.ceil(MANY / BATCH) + 1;
      expect(costs[0]?.rows).toBeLessThanOrEqual(sources === null ? batches : batches + MANY + BATCH);
    }
  }
});

test('the metrics count as far as the lists do, whatever more there is', async () => {
  const samples = await readMetrics(service.operators);

  expect(samples.get('tallyhook_outbox_returned')).toBe(100_000);
  expect(samples.get('tallyhook_outbox_pending')).toBe(3);
  expect(samples.get('tallyhook_outbox_oldest_seconds')).toBeGreaterThan(0);
  expect(samples.get('tallyhook_database_connected')).toBe(1);
});

test('outbox says that nothing waits only if all was counted', async () => {
  expect(await cli.items('outbox', '--state', 'pending')).toMatchObject([
    { id: '200001' },
    { id: '200002' },
    { id: '200003' },
  ]);
  expect(await cli.items('outbox', '--state', 'pending', '--source', 'team-b')).toMatchObject([
    { id: '200003' },
  ]);
  expect(await cli.run('outbox', '--state', 'pending', '--source', 'team-c')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'no entries match\n',
  });
});

test('outbox retry puts back what stands behind more than is counted', async () => {
  await seed(database, { state: 'returned', source: 'team-b', from: 300_001, count: 1_200 });
  expect(await cli.items('outbox', 'retry', 'parked')).toEqual([{ retried: 3 }]);
  expect(await cli.items('outbox', 'retry', 'returned', '--source', 'team-b')).toEqual([{ retried: 1_200 }]);
  expect(await database.query(`select from ${OUTBOX} where state = 'pending'`)).toHaveLength(1_206);
});
