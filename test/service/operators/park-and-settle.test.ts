// An operator parks an event of a batch while the relay writes what became of it. Both change the same row, and the outcome must
// be that of one after the other: no event is lost, none comes back, and none stands in two places.

import { CompiledQuery, type Kysely, type Transaction } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/ledger/schema/tables.ts';
import type { DatabaseConnection } from '../../../src/ledger/sessions/database.ts';
import { RELEASE_JOBS } from '../../../src/ledger/recording/hold.ts';
import { createBatch } from '../../../src/relay/batch.ts';
import type { Entry, Settlement } from '../../../src/relay/entry.ts';
import { settleWhole, takeOut } from '../../../src/relay/batch-results.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { outboxCount } from '../../support/facts.ts';
import { lockWaits } from '../../support/ledger.ts';
import { emptyOutbox, insertHeld, insertJobs, insertPending } from '../../support/outbox-rows.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import {
  addEntries,
  connectTestDatabase,
  createTestRelay,
  decideIn,
  decideNow,
  retry,
} from '../../support/relay.ts';
import { newJobId } from '../../support/sender.ts';
import { openTransaction } from '../../support/transaction.ts';

const RELAY = '00000000-0000-4000-8000-000000000001';

let database: TestDatabase;
let connection: DatabaseConnection & AsyncDisposable;
beforeAll(async () => {
  database = await createTestDatabase();
  connection = connectTestDatabase(database);
});
afterAll(async () => {
  await connection.close();
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await emptyOutbox(database);
  await database.query('truncate publications, publication_batches');
  await insertPending(database, { from: 1, count: 3, batchOf: 3 });
  await insertJobs(database, { from: 1, count: 3 });
});

/** What the relay has in memory of a batch with the events 1, 2 and 3. */
const batch = createBatch('1', { size: 3 });
const entry = (number: number): Entry => ({
  sequence: String(number),
  position: String(number),
  source: 'default',
  jobId: `job_${number}`,
  status: 'completed',
  progress: null,
  late: false,
  occurredAt: null,
  recordedAt: new Date(),
  data: '{}',
  attempts: 0,
  batch,
});
const confirmed = (number: number): Settlement => ({
  entry: entry(number),
  number,
  next: 'delete',
  publication: { result: 'confirmed', durationMs: 1 },
  retryInMs: 0,
});
const failed = (next: 'retry' | 'return' | 'park'): Settlement => ({
  entry: entry(2),
  number: 4,
  next,
  publication: { result: 'nacked', detail: 'a test', blame: 'event', durationMs: 1 },
  retryInMs: next === 'retry' ? 60_000 : 0,
});

const idOf = (job: string | undefined) => `default:${job}:completed`;

type Settle = (execute: Pick<DatabaseConnection, 'execute'>) => Promise<void>;

/** What the relay writes, and what is left of the outbox by that alone. `held` is the state of the event 2. */
const SETTLES: Readonly<Record<string, { settle: Settle; left: string[]; held?: string }>> = {
  'all three are confirmed': {
    settle: (on) =>
      settleWhole(
        { results: on, rounds: on },
        [{ ...batch, confirmed: () => [1, 2, 3].map(confirmed) }],
        RELAY,
      ),
    left: [],
  },
  'it is confirmed': { settle: (on) => takeOut(on, [confirmed(2)], RELAY), left: ['1', '3'] },
  'it has failed': {
    settle: (on) => takeOut(on, [failed('retry')], RELAY),
    left: ['1', '3'],
    held: 'pending',
  },
  'it was returned': {
    settle: (on) => takeOut(on, [failed('return')], RELAY),
    left: ['1', '3'],
    held: 'returned',
  },
  'its attempts are used up': {
    settle: (on) => takeOut(on, [failed('park')], RELAY),
    left: ['1', '3'],
    held: 'parked',
  },
};

/** As an operator's request does it. @returns whether there was such an entry */
async function park(trx: Transaction<Database>): Promise<boolean> {
  const { items } = await decideIn(trx, 'park', { ids: ['2'] });
  return items?.[0]?.result !== 'not_found';
}
const parkNow = () => connection.db.transaction().execute(park);

const onTransaction = (trx: Kysely<Database>): Pick<DatabaseConnection, 'execute'> => ({
  execute: async <Row>({ text }: { text: string }, values: unknown[]) =>
    (await trx.executeQuery<Row>(CompiledQuery.raw(text, values))).rows,
});

const waiting = (count: number) =>
  expect
    .poll(() => lockWaits(database))
    .toEqual(Array.from({ length: count }, () => expect.anything() as unknown));

/** `first` is not committed before `second` waits for it. */
async function inTurn<First, Second>(
  first: (trx: Transaction<Database>) => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second]> {
  let other: Promise<Second> | undefined;
  const done = await connection.db.transaction().execute(async (trx) => {
    const result = await first(trx);
    other = second();
    await waiting(1);
    return result;
  });
  return [done, await (other as Promise<Second>)];
}

async function state(): Promise<{
  batched: string[];
  held: { sequence: string; state: string }[];
  jobs: string[];
}> {
  const batched = await database.query<{ number: string }>(
    'select unnest(sequences) as number from outbox_batches',
  );
  const held = await database.query<{ sequence: string; state: string }>(
    'select sequence, state from outbox_held',
  );
  const jobs = await database.query<{ job_id: string }>(
    'select job_id from jobs where is_held order by job_id',
  );
  return { batched: batched.map(({ number }) => number), held, jobs: jobs.map(({ job_id }) => job_id) };
}

/** Of the event 2. */
const attempts = () =>
  database.query<{ result: string }>(`select result from ${PUBLICATIONS} p where event_sequence = 2`);

describe.each(Object.entries(SETTLES))('%s', (_, { settle, left, held }) => {
  const parked = { batched: left, held: [{ sequence: '2', state: 'parked' }], jobs: ['job_2'] };
  const gone = { batched: left, held: [], jobs: [] };

  test('and was parked first: it stays parked, unless it is published by then', async () => {
    await inTurn(park, () => settle(connection));
    const expected = held === undefined ? gone : parked;
    expect(await state()).toEqual(expected);
    await settle(connection); // as after a commit whose answer was lost
    expect(await state()).toEqual(expected);
    const result = held === undefined ? 'confirmed' : 'nacked';
    expect(await attempts()).toEqual([{ result }]);
  });

  test('before it is parked: it is decided as it is then, or it is gone', async () => {
    const [, found] = await inTurn((trx) => settle(onTransaction(trx)), parkNow);
    expect(found).toBe(held !== undefined);
    expect(await state()).toEqual(found ? parked : gone);
  });

  test.each(['the relay', 'the operator'])('while both wait for a third, %s in front', async (who) => {
    await using third = await openTransaction(database);
    await third.query('select from outbox_batches for update');
    const settled = who === 'the relay' ? settle(connection) : undefined;
    if (settled) await waiting(1);
    const decided = parkNow();
    await waiting(settled ? 2 : 1);
    const other = settled ?? settle(connection);
    await waiting(2);
    await third.rollback();
    await other;
    const found = await decided;
    expect(found).toBe(who === 'the operator' || held !== undefined);
    expect(await state()).toEqual(held === undefined ? gone : parked);
  });

  test('after it was parked and discarded: it does not come back', async () => {
    await parkNow();
    await decideNow(connection.db, 'discard', { ids: ['2'] });
    await settle(connection);
    expect(await state()).toEqual(gone);
    const failures = (await attempts()).filter(({ result }) => result !== 'confirmed');
    expect(failures).toHaveLength(held === undefined ? 0 : 1);
  });
});

const release = (on: Pick<DatabaseConnection, 'execute'>) =>
  on.execute(RELEASE_JOBS, [['default'], ['job_2']]);

test('a job that is held again while its release waits for it stays held, also if it was released in between', async () => {
  await insertHeld(database, { from: 2, state: 'pending' });
  await database.query('delete from outbox_held');

  await inTurn(
    async (trx) => {
      await release(onTransaction(trx));
      await takeOut(onTransaction(trx), [failed('retry')], RELAY);
    },
    () => release(connection),
  );

  expect(await state()).toMatchObject({ held: [{ sequence: '2', state: 'pending' }], jobs: ['job_2'] });
});

test('an event that waits in the relay’s memory with others of its write is not published once it is parked', async () => {
  const exchange = newExchange();
  await using own = await createTestDatabase();
  await using operator = connectTestDatabase(own);
  await using bus = await listen(exchange);
  const jobs = Array.from({ length: 4 }, newJobId);
  await addEntries(own, jobs);
  const sequences = (await own.query<{ first: string }>('delete from outbox_batches returning first')).map(
    ({ first }) => first,
  );
  await own.query(
    `insert into outbox_batches (first, sequences, bytes, recorded_at)
     select min(sequence), array_agg(sequence order by sequence), 1000, recorded_at from events group by recorded_at`,
  );
  let aheadMs = 0;
  await using relay = await createTestRelay({
    database: own,
    exchange,
    limits: { inFlight: 1 },
    now: () => performance.now() + aheadMs,
  });
  await relay.lease.attempt();
  const letGo = relay.holdPublishes();
  await relay.relay.runOnce();
  expect(relay.published).toHaveLength(1);

  await decideNow(operator.db, 'park', { ids: sequences.slice(-1) });
  aheadMs = 1_000; // as long as a decision may take to have its effect
  await relay.relay.runOnce();
  letGo();

  await relay.runUntil(async () => (await outboxCount(own)) === 1);
  await bus.received(3);
  expect(bus.ids().toSorted()).toEqual(jobs.slice(0, 3).map(idOf).toSorted());
  await retry(operator.db, 'parked');
  await relay.runUntil(async () => (await outboxCount(own)) === 0);
  await bus.received(4);
  expect(bus.ids().at(-1)).toBe(idOf(jobs[3]));
});
