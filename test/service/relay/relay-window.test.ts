import { expect, test } from 'vitest';
import type { Statement } from '../../../src/ledger/index.ts';
import { LOAD_HELD } from '../../../src/relay/held.ts';
import { LOAD_ALL, LOAD_NEW } from '../../../src/relay/pending.ts';
import { listen, newExchange, UNHEARD } from '../../support/bus.ts';
import { createTestDatabase } from '../../support/database.ts';
import { outboxCount, outOfOrder } from '../../support/facts.ts';
import {
  ADD_ENTRY,
  entryValues,
  addEntries,
  addEntry,
  connectTestDatabase,
  createTestRelay,
} from '../../support/relay.ts';
import { write } from '../../support/relay-stage.ts';
import { completed, newJobId } from '../../support/sender.ts';
import { openSession, openTransaction } from '../../support/transaction.ts';
import { hold, OUTBOX } from '../../support/outbox.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { waitFor } from '../../support/waits.ts';

/** All that is pending. */
const ALL = {
  since: undefined,
  except: { batches: [], events: [] },
  inFlight: [],
  limit: 10,
  bytes: 1_000_000,
};

test('a relay that does not hold the lease publishes nothing', async () => {
  await using database = await createTestDatabase();
  await using relay = await createTestRelay({ database, exchange: UNHEARD });
  await addEntry(database, { jobId: newJobId() });

  expect(await relay.relay.runOnce()).toBe(0);
  expect(relay.published).toEqual([]);
  expect(await outboxCount(database)).toBe(1);
});

test('one event of a job is in flight at most, and RELAY_IN_FLIGHT in all', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const jobs = Array.from({ length: 30 }, newJobId);
  // Two of a job in a row, so that both are in the relay's window together.
  for (const percents of [
    [1, 2],
    [3, 4],
  ]) {
    for (const jobId of jobs) {
      for (const percent of percents) await addEntry(database, { jobId, percent });
    }
  }
  await using relay = await createTestRelay({ database, exchange, limits: { inFlight: 7 } });
  await relay.lease.attempt();

  await relay.runUntil(async () => (await outboxCount(database)) === 0);

  expect(relay.peak()).toMatchObject({ job: 1, total: 7 });
  await bus.received(120);
  expect(outOfOrder(bus.messages)).toEqual([]);
});

test('RELAY_IN_FLIGHT_BYTES bounds what is in flight to one event more', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const bytes = 300_000;
  const inFlightBytes = 1024 * 1024;
  await Promise.all(Array.from({ length: 20 }, () => addEntry(database, { jobId: newJobId(), bytes })));
  await using relay = await createTestRelay({ database, exchange, limits: { inFlightBytes } });
  await relay.lease.attempt();

  await relay.runUntil(async () => (await outboxCount(database)) === 0);

  const peak = relay.peak();
  expect(peak.bytes).toBeGreaterThan(bytes);
  expect(peak.bytes).toBeLessThan(inFlightBytes + bytes + 1_000);
  await bus.received(20);
});

test('what is loaded ahead is bounded in bytes too', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const bytes = 300_000;
  const inFlightBytes = 1024 * 1024;
  const jobId = newJobId();
  for (let percent = 1; percent <= 40; percent++) await addEntry(database, { jobId, percent, bytes });
  await using relay = await createTestRelay({ database, exchange, limits: { inFlightBytes } });
  await relay.lease.attempt();

  // The first of them is under way for long, and the others wait behind it.
  const letGo = relay.holdPublishes();
  for (let round = 0; round < 15; round++) await relay.relay.runOnce();
  letGo();

  await relay.runUntil(async () => (await outboxCount(database)) === 0);

  await bus.received(40);
  expect(relay.peakLoaded()).toBeGreaterThan(bytes);
  expect(relay.peakLoaded()).toBeLessThan(2 * inFlightBytes + 2 * bytes);
});

test('an entry that commits late, with a lower sequence than those already sent, is not lost', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  const [slow, quick] = [newJobId(), newJobId()];
  {
    await using session = await openSession(database);
    await session.query('begin');
    const { rows } = await session.query<{ sequence: string }>(ADD_ENTRY, entryValues({ jobId: slow }));
    const later = await addEntry(database, { jobId: quick });
    expect(Number(rows[0]?.sequence)).toBeLessThan(Number(later));
    await relay.runUntil(async () => (await outboxCount(database)) === 0);
    await session.query('commit');
  }

  await relay.runUntil(async () => (await outboxCount(database)) === 0);

  await bus.received(2);
  expect(bus.ids()).toEqual([`default:${quick}:completed`, `default:${slow}:completed`]);
});

test('a round settles what came back before it loads, so nothing is published twice', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using relay = await createTestRelay({ database, exchange, limits: { inFlight: 3 } });
  await relay.lease.attempt();
  await Promise.all(Array.from({ length: 50 }, () => addEntry(database, { jobId: newJobId() })));

  // Many rounds that overlap nothing: each ends before the next.
  for (let round = 0; round < 200 && (await outboxCount(database)) > 0; round++) await relay.relay.runOnce();

  await bus.received(50);
  expect(relay.published).toHaveLength(50);
  expect(new Set(bus.ids()).size).toBe(50);
});

test('confirms that came back together are settled in one statement', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  await addEntries(database, Array.from({ length: 80 }, newJobId));
  await relay.relay.runOnce();
  await bus.received(80);
  await waitFor(() => expect(relay.relay.inFlight()).toBe(0));

  expect(await relay.relay.runOnce()).toBe(80);

  expect(
    await database.query(
      `select count(*)::int as rows, count(distinct published_at)::int as times from ${PUBLICATIONS} p`,
    ),
  ).toEqual([{ rows: 80, times: 1 }]);
  expect(await outboxCount(database)).toBe(0);
});

test('a settlement moves an entry on only from the state and attempts that the relay saw', async () => {
  await using database = await createTestDatabase();
  await using relay = await createTestRelay({ database, exchange: UNHEARD });
  const jobId = newJobId();
  await addEntry(database, { jobId });
  const { found } = await relay.outbox.loadPending(ALL);
  const [{ entry } = {}] = found;
  if (entry === undefined) throw new Error('nothing was loaded');
  const nacked = { result: 'nacked', detail: 'a test', blame: 'event', durationMs: 1 } as const;
  const state = () =>
    database.query<{ state: string; attempts: number }>(`select state, attempts from ${OUTBOX}`);
  const settle = (next: 'retry' | 'park' | 'return', kind: 'single' | 'held', attempts = 0) => {
    const { batch, ...rest } = entry;
    const settled = { ...rest, attempts, ...(kind === 'single' && batch && { batch }) };
    const results = [{ entry: settled, number: attempts, publication: nacked, next, retryInMs: 60_000 }];
    return relay.outbox.settle({ single: [], whole: [], held: [], [kind]: results });
  };

  await settle('retry', 'single');
  expect(await state()).toEqual([{ state: 'pending', attempts: 1 }]);

  // A leader of yesterday, with what it saw then.
  await settle('park', 'single');
  await settle('return', 'held');
  expect(await state()).toEqual([{ state: 'pending', attempts: 1 }]);

  await settle('park', 'held', 1);
  expect(await state()).toEqual([{ state: 'parked', attempts: 2 }]);
  expect(await relay.outbox.loadHeld({ limit: 1, bytes: 1_000, except: [] })).toEqual([]);
  expect((await relay.outbox.loadPending(ALL)).found).toEqual([]);
});

test('a relay that does not lead any more tells the leader which events it takes out of their batches', async () => {
  await using database = await createTestDatabase();
  await using relay = await createTestRelay({ database, exchange: UNHEARD });
  const settleOne = async () => {
    await addEntry(database, { jobId: newJobId() });
    const { found } = await relay.outbox.loadPending(ALL);
    const single = found.map(({ entry }) => ({ entry, next: 'hold' as const, retryInMs: 0 as const }));
    await relay.outbox.settle({ single, whole: [], held: [] });
    return relay.outbox.version();
  };
  await relay.lease.attempt();
  expect(await settleOne()).toBe('0');
  await relay.lease.release();
  await database.query('update relay_lease set holder = gen_random_uuid()');

  expect(await settleOne()).toBe('1');
  // There is nothing left of it.
  await relay.outbox.settle({ single: [], whole: [], held: [] });
  expect(await relay.outbox.version()).toBe('1');
});

test('so does one whose lease runs out while it waits for a lock', async () => {
  await using database = await createTestDatabase();
  await using relay = await createTestRelay({ database, exchange: UNHEARD });
  await addEntry(database, { jobId: newJobId() });
  const { found } = await relay.outbox.loadPending(ALL);
  const single = found.map(({ entry }) => ({ entry, next: 'hold' as const, retryInMs: 0 as const }));
  await relay.lease.attempt();
  await database.query(`update relay_lease set expires_at = clock_timestamp() + interval '0.5 s'`);
  await using locked = await openTransaction(database);
  await locked.query('select from jobs for update');

  const settled = relay.outbox.settle({ single, whole: [], held: [] });
  await waitFor(async () =>
    expect(await database.query('select from relay_lease where expires_at < clock_timestamp()')).toHaveLength(
      1,
    ),
  );
  await locked.rollback();
  await settled;

  expect(await relay.outbox.version()).toBe('1');
});

test('what the relay knows already is not loaded again', async () => {
  await using database = await createTestDatabase();
  await using relay = await createTestRelay({ database, exchange: UNHEARD });
  const known = await addEntry(database, { jobId: newJobId() });
  const fresh = await addEntry(database, { jobId: newJobId() });

  const { found } = await relay.outbox.loadPending({ ...ALL, except: { batches: [known], events: [] } });
  expect(found.map(({ entry }) => entry.sequence)).toEqual([fresh]);
  await hold(database, {});
  const held = await relay.outbox.loadHeld({ limit: 10, bytes: 1_000_000, except: [known] });
  expect(held.map(({ sequence }) => sequence)).toEqual([fresh]);
  expect(await outboxCount(database)).toBe(2);
});

test('of batches that overlap the oldest events are loaded, and a batch of which some are left is not whole', async () => {
  await using database = await createTestDatabase();
  await using relay = await createTestRelay({ database, exchange: UNHEARD });
  await addEntries(database, Array.from({ length: 6 }, newJobId));
  await database.query('delete from outbox_batches');
  await database.query(`
    insert into outbox_batches (first, sequences, bytes)
    values (1, '{5}', 500), (2, '{2,4}', 1000), (3, '{3,6}', 1000)`); // 1 has left the first one
  const load = async (limit: number) => {
    const { found, bound } = await relay.outbox.loadPending({ ...ALL, limit });
    return [
      bound,
      ...found.map(({ entry }) => `${entry.position} of ${entry.batch?.first} ${entry.batch?.isWhole()}`),
    ];
  };

  expect(await load(1)).toEqual(['3', '2 of 2 false']);
  expect(await load(3)).toEqual(['5', '2 of 2 true', '3 of 3 false', '4 of 2 true']);
  expect(await load(9)).toEqual([
    undefined,
    '2 of 2 true',
    '3 of 3 true',
    '4 of 2 true',
    '5 of 1 true',
    '6 of 3 true',
  ]);
});

test('an event larger than the whole allowance of bytes is still published', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using relay = await createTestRelay({ database, exchange, limits: { inFlightBytes: 1_000 } });
  await relay.lease.attempt();
  await addEntry(database, { jobId: newJobId(), bytes: 50_000 });
  await addEntry(database, { jobId: newJobId(), bytes: 50_000 });

  await relay.runUntil(async () => (await outboxCount(database)) === 0);

  await bus.received(2);
  expect(relay.peak().total).toBe(1);
});

test('loads go by their index though the outbox was empty when its statistics were taken', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await database.query('analyze outbox_batches, outbox_held');
  await addEntries(database, Array.from({ length: 2_000 }, newJobId));
  const planOf = async ({ name, text }: Statement, values: unknown[]) => {
    const plan = await connection.execute<{ 'QUERY PLAN': string }>(
      { name: `explain-${name}`, text: `explain ${text}` },
      values,
    );
    return plan.map((row) => row['QUERY PLAN']).join('\n');
  };

  const all = await planOf(LOAD_ALL, [[], [], [], 100, 1_000_000, 200, 10_000, []]);
  expect(all).toMatch(/Index Scan using outbox_batches_pkey/);
  const news = await planOf(LOAD_NEW, [[], [], [], 100, 1_000_000, 200, 10_000, [], '3']);
  expect(news).toMatch(/Index Scan using outbox_batches_xid/);
  const held = await planOf(LOAD_HELD, [[], 100, 1_000_000, 0]);
  expect(held).toMatch(/Index Scan using outbox_held_pending/);
  for (const plan of [all, news, held])
    expect(plan).not.toMatch(/Seq Scan on (outbox_batches|outbox_held|events|jobs)|Bitmap/);
});

const completions = (count: number) => Array.from({ length: count }, () => completed(newJobId()));

test('results that fill the window do not wait for deliveries that are being recorded', async () => {
  await using database = await createTestDatabase();
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using connection = connectTestDatabase(database);
  await using leader = await createTestRelay({
    database,
    exchange,
    limits: { inFlight: 10, pollMs: 60_000 },
  });
  await leader.lease.attempt();
  await leader.runUntil(() => true);
  leader.relay.start();
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = write(leader, connection, completions(64), { beforeAnswer: () => promise });

  await write(leader, connection, completions(64));
  await bus.received(64);
  await expect.poll(() => database.query(`select from ${PUBLICATIONS} p`)).toHaveLength(64);

  resolve();
  await slow;
});
