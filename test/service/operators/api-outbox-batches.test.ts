// Events that are still to be published stand many to a row. Each of them is listed, numbered and decided on by itself.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import {
  emptyOutbox,
  insertEvents,
  insertHeld,
  insertJobs,
  insertPending,
} from '../../support/outbox-rows.ts';
import { startTestService, type TestService } from '../../support/service.ts';

type Entry = { id: string; event_id: string; state: string; source: string; last_error: string | null };
type Page = { items: Entry[]; next_cursor: string | null };

let database: TestDatabase;
let service: TestService;
let api: Operators;
beforeAll(async () => {
  database = await createTestDatabase();
  await holdOutbox(database);
  service = await startTestService({ database });
  api = await operators(service, { role: 'operator', name: 'Ada' });
});
beforeEach(() => emptyOutbox(database));
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const eventOf = (number: number) => `default:job_${number}:completed`;

/** The batches, each as its numbers. */
const batches = async () =>
  (
    await database.query<{ numbers: string }>(
      `select array_to_string(sequences, ' ') as numbers from outbox_batches order by first`,
    )
  ).map(({ numbers }) => numbers);

/** All pages, each with at most `limit` entries. */
async function pages(query: string, limit: number): Promise<Entry[][]> {
  const found: Entry[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const address: string = `/outbox?limit=${limit}&${query}${cursor && `&cursor=${cursor}`}`;
    const page: Page = (await api.get<Page>(address)).body;
    found.push(page.items);
    cursor = page.next_cursor;
  }
  return found;
}

const numbersOf = (entries: readonly Entry[]) => entries.map(({ id }) => Number(id));

/** Moves events from their own batches into one. */
const writeTogether = (numbers: readonly number[]) =>
  database.query(
    `with together as (update events set recorded_at = '2026-01-15T10:30:00Z'::timestamptz + $2::int * interval '1 second'
                       where sequence = any($1::bigint[]) returning sequence, recorded_at)
     insert into outbox_batches (first, sequences, bytes, recorded_at)
     select min(sequence), array_agg(sequence order by sequence), 500, recorded_at from together group by recorded_at`,
    [numbers, numbers[0]],
  );

test('each event of a batch is an entry, and pages of any size have each entry once', async () => {
  await insertPending(database, { from: 1, count: 5, batchOf: 3 });
  await insertHeld(database, { state: 'returned', from: 6, count: 2 });
  await insertEvents(database, { from: 8, count: 6 });
  await writeTogether([8, 11, 12]);
  await writeTogether([9, 10, 13]);
  expect(await batches()).toEqual(['1 2 3', '4 5', '8 11 12', '9 10 13']);

  const [first] = (await api.get<Page>('/outbox?limit=1')).body.items;
  expect(first).toMatchObject({
    id: '1',
    event_id: eventOf(1),
    source: 'default',
    job_id: 'job_1',
    state: 'pending',
    attempts: 0,
    last_error: null,
    replay_id: null,
    queue: null,
  });
  // Oldest first; of two writes that overlapped, one after the other.
  const inOrder = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 9, 10, 13];
  for (const limit of [1, 2, 3, 5, 200]) {
    const found = await pages('', limit);
    expect(found.map(numbersOf).flat()).toEqual(inOrder);
    expect(found.slice(0, -1).every((page) => page.length === limit)).toBe(true);
  }
  const pending = inOrder.filter((number) => number !== 6 && number !== 7);
  expect(numbersOf((await pages('state=pending', 4)).flat())).toEqual(pending);
  expect(numbersOf((await pages('source=default', 4)).flat())).toEqual(inOrder);
  expect((await pages('source=team-a', 4)).flat()).toEqual([]);
  expect((await pages('reason=timeout', 4)).flat()).toEqual([]);
  expect(numbersOf((await pages('job_id=job_11', 4)).flat())).toEqual([11]);
  expect((await api.get('/outbox')).body).toMatchObject({
    counts: { pending: 11, returned: 2, parked: 0 },
    oldest_pending_at: '2026-01-15T10:30:08.000000Z',
  });
});

test('a job’s entries are in the order of their numbers, whichever of its batches began first', async () => {
  await insertEvents(database, { from: 1, count: 4 });
  await database.query(
    `update events set job_id = 'job_a', status = 'processing', progress_percentage = sequence where sequence in (3, 4)`,
  );
  await writeTogether([1, 4]);
  await writeTogether([2, 3]);

  expect(numbersOf((await pages('job_id=job_a', 1)).flat())).toEqual([3, 4]);
});

test('one event of a batch is parked, by its number or its id, and the others stay where they are', async () => {
  await insertPending(database, { from: 1, count: 3, batchOf: 3 });
  await insertJobs(database, { from: 1, count: 3 });
  await insertHeld(database, { state: 'returned', from: 4 });

  expect(await orderOne(api, 'outbox/park', '2')).toMatchObject({
    id: '2',
    event_id: eventOf(2),
    result: 'parked',
    state: 'pending',
  });
  expect((await pages('state=parked', 1))[0]).toMatchObject([
    { id: '2', state: 'parked', attempts: 1, last_error: 'parked by Ada' },
  ]);
  expect(await batches()).toEqual(['1 3']);
  expect(await orderOne(api, 'outbox/park', eventOf(3))).toMatchObject({ result: 'parked' });
  expect((await orderOne(api, 'outbox/park', '3')).result).toBe('unchanged'); // it stays as it is

  expect((await pages('', 10)).flat().map(({ id, state }) => `${id} ${state}`)).toEqual([
    '1 pending',
    '2 parked',
    '3 parked',
    '4 returned',
  ]);
  const states = await Promise.all(
    [1, 2, 3].map(async (number) => {
      const { body } = await api.get<{ publication: string }>(`/events/${eventOf(number)}`);
      return body.publication;
    }),
  );
  expect(states).toEqual(['pending', 'parked', 'parked']);
  // What tells the intake, and the leader.
  expect(await database.query('select job_id, is_held, hold_version from jobs order by job_id')).toEqual([
    { job_id: 'job_1', is_held: false, hold_version: 0 },
    { job_id: 'job_2', is_held: true, hold_version: 1 },
    { job_id: 'job_3', is_held: true, hold_version: 1 },
  ]);
  expect(await database.query('select version from outbox_version')).toEqual([{ version: '2' }]);
  const all = await operators(service);
  expect((await all.get(`/operator-log?subject=${eventOf(2)}`)).body).toMatchObject({
    items: [{ action: 'outbox.park', detail: { entry: '2', state: 'pending', attempts: 0 } }],
  });
});

test('the last event that leaves a batch takes the batch with it', async () => {
  await insertPending(database, { from: 1, count: 2, batchOf: 2 });
  await orderOne(api, 'outbox/park', '1');
  await orderOne(api, 'outbox/park', '2');
  expect(await batches()).toEqual([]);
  expect((await api.get('/outbox')).body).toMatchObject({ counts: { pending: 0, parked: 2 } });
});

test('an event of a batch cannot be discarded, and a retry leaves it as it is', async () => {
  await insertPending(database, { from: 1, count: 3, batchOf: 3 });

  expect(await orderOne(api, 'outbox/discard', '1')).toMatchObject({
    result: 'wrong_state',
    reason: 'it is pending: a pending event cannot be discarded',
  });
  expect(await orderOne(api, 'outbox/retry', eventOf(1))).toMatchObject({
    result: 'unchanged',
    state: 'pending',
  });
  expect((await api.post('/outbox/retry', { ids: ['1', eventOf(2), '4'] })).body).toMatchObject({
    done: 0,
    items: [{ result: 'unchanged' }, { event_id: eventOf(2), result: 'unchanged' }, { result: 'not_found' }],
  });
  expect((await api.post('/outbox/discard', { ids: ['3'] })).body).toMatchObject({
    done: 0,
    items: [{ id: '3', result: 'wrong_state' }],
  });
  expect(await batches()).toEqual(['1 2 3']);
  const limited = await operators(service, { role: 'operator', sources: ['team-a'] });
  expect((await orderOne(limited, 'outbox/park', '1')).result).toBe('not_found');
});

test('a retry holds the event’s job, and a discard of its last held event ends that', async () => {
  await insertEvents(database, { from: 1, count: 5 });
  await insertHeld(database, { state: 'parked', from: 1, count: 2 });
  await insertHeld(database, { state: 'pending', from: 3 });
  await insertHeld(database, { state: 'returned', from: 4, count: 2 });
  await database.query(`update outbox_held set job_id = 'job_2' where sequence = 3`); // waits behind the second one
  await database.query(
    `insert into jobs (source, job_id, first_seen_at, last_seen_at)
     select source, job_id, now(), now() from outbox_held where state = 'returned'`,
  );
  const held = async () =>
    (
      await database.query<{ job_id: string }>(
        `select job_id from jobs where is_held and job_id <> 'job_3' order by job_id`,
      )
    ).map(({ job_id }) => job_id);
  expect(await held()).toEqual(['job_1', 'job_2']);

  await api.post('/outbox/discard', { filter: { state: 'parked' } });
  expect(await held()).toEqual(['job_2']);
  await orderOne(api, 'outbox/retry', '4');
  expect(await held()).toEqual(['job_2', 'job_4']);
  await orderOne(api, 'outbox/park', '4');
  await orderOne(api, 'outbox/discard', '4');
  await api.post('/outbox/retry', { filter: { state: 'returned' } });
  expect(await held()).toEqual(['job_2', 'job_5']);
});
