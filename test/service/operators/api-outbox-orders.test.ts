// Decisions about many entries of the outbox: exactly those that were shown before, by their ids or by a filter and its bound.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { emptyOutbox, insertEvents, insertHeld } from '../../support/outbox-rows.ts';
import { seedEntries } from '../../support/waiting.ts';

type Item = {
  id: string;
  event_id: string | null;
  result: string;
  state: string | null;
  reason: string | null;
};
type Page = { done: number; items?: Item[]; next_cursor: string | null };
type Preview = { matched: number; matched_exactly: boolean; up_to: string; sample: { id: string }[] };
type Line = { action: string; subject: string | null; source: string; detail: Record<string, unknown> };

let database: TestDatabase;
let service: TestService;
let api: Operators;
beforeAll(async () => {
  database = await createTestDatabase();
  await holdOutbox(database);
  service = await startTestService({ database });
});
/** The entries of each test count from 1, and its token tells its lines in the operator log. */
beforeEach(async () => {
  await emptyOutbox(database);
  api = await operators(service, { role: 'operator', name: 'Ada' });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** `7 returned`, of all entries by their numbers. */
const states = async () =>
  (
    await database.query<{ text: string }>(
      `select sequence || ' ' || state as text from ${OUTBOX} order by sequence`,
    )
  ).map(({ text }) => text);

/** The numbers of the entries in the list. */
const listed = async (query: string) =>
  (await api.get<{ items: { id: string }[] }>(`/outbox?${query}`)).body.items.map(({ id }) => Number(id));

const log = () =>
  database.query<Line>(
    'select action, subject, source, detail::json from operator_log where token_id = $1 order by id',
    [api.token.id],
  );

const eventOf = (number: number, source = 'default') => `${source}:job_${number}:completed`;

const park = async (order: object) => (await api.post<Page & Preview>('/outbox/park', order)).body;

const resultsOf = (items: readonly Item[] | undefined) => items?.map(({ id, result }) => `${id} ${result}`);

test('ids are each answered for themselves, and what cannot be retried keeps back none of the others', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 3 });
  await seedEntries(database, { state: 'parked', from: 4 });
  await seedEntries(database, { state: 'pending', from: 5 });
  await seedEntries(database, { state: 'returned', from: 6, queue: 'billing' });

  const ids = ['2', eventOf(4), '5', '6', '99', '9'.repeat(19), 'nonsense', eventOf(2), '2', '0001'];
  const { status, body } = await api.post<Page>('/outbox/retry', {
    ids,
  });

  expect(status).toBe(200);
  expect(body).toMatchObject({ done: 3, next_cursor: null });
  expect(resultsOf(body.items)).toEqual([
    '2 retried',
    `${eventOf(4)} retried`,
    '5 unchanged',
    '6 wrong_state',
    '99 not_found',
    `${'9'.repeat(19)} not_found`,
    'nonsense not_found',
    `${eventOf(2)} retried`,
    '0001 retried',
  ]);
  expect(body.items?.find(({ id }) => id === '6')).toMatchObject({
    event_id: eventOf(6),
    reason: 'it is a replay’s copy: pause, resume or cancel the replay',
  });
  expect(await states()).toEqual([
    '1 pending',
    '2 pending',
    '3 returned',
    '4 pending',
    '5 pending',
    '6 returned',
  ]);
  expect((await log()).map(({ action, subject, detail }) => [action, subject, detail])).toEqual(
    [
      [1, 'returned'],
      [2, 'returned'],
      [4, 'parked'],
    ].map(([number, state]) => [
      'outbox.retry',
      eventOf(Number(number)),
      { entry: String(number), state, attempts: 1, last_error: '312 NO_ROUTE' },
    ]),
  );
});

test('a discard of ids takes these out of the outbox, and says of the others why not', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 2 });
  await seedEntries(database, { state: 'pending', from: 3 });

  const { body } = await api.post<Page>('/outbox/discard', { ids: ['1', '3'] });

  expect(body).toEqual({
    done: 1,
    items: [
      { id: '1', event_id: eventOf(1), result: 'discarded', state: 'returned', reason: null },
      {
        id: '3',
        event_id: eventOf(3),
        result: 'wrong_state',
        state: 'pending',
        reason: 'it is pending: a pending event cannot be discarded',
      },
    ],
    next_cursor: null,
  });
  expect(await states()).toEqual(['2 returned', '3 pending']);
  expect(await log()).toMatchObject([{ action: 'outbox.discard', subject: eventOf(1) }]);
});

test.each(['retry', 'discard'])(
  'a dry run of a %s changes and records nothing, and counts',
  async (action) => {
    await seedEntries(database, { state: 'returned', from: 1, count: 12 });
    await seedEntries(database, { state: 'parked', from: 13 });
    await seedEntries(database, { state: 'returned', from: 14, queue: 'billing' });

    const { body } = await api.post<Preview>(`/outbox/${action}`, {
      filter: { state: 'returned' },
      dry_run: true,
    });
    const named = await api.post<Preview>(`/outbox/${action}`, { ids: ['3', '13', '14'], dry_run: true });

    expect(body).toMatchObject({ matched: 12, matched_exactly: true, up_to: '14' });
    expect(body.sample.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, index) => `${index + 1}`));
    expect(named.body).toMatchObject({
      matched: 2,
      matched_exactly: true,
      sample: [{ id: '3' }, { id: '13' }],
    });
    expect((await states()).filter((text) => text.endsWith('returned'))).toHaveLength(13);
    expect(await log()).toEqual([]);
  },
);

test.each([
  ['retry', 'retried'],
  ['discard', 'discarded'],
] as const)('a %s with the bound of its dry run leaves alone what came later', async (action, done) => {
  await seedEntries(database, { state: 'returned', from: 1, count: 5 });
  const order = { filter: { state: 'returned', source: 'default' } };
  const { body: found } = await api.post<Preview>(`/outbox/${action}`, { ...order, dry_run: true });
  await seedEntries(database, { state: 'returned', from: 6, count: 3 });

  const bound = { filter: { ...order.filter, up_to: found.up_to }, limit: 2 };
  const pages: Page[] = [];
  for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)?.next_cursor) {
    const { body } = await api.post<Page>(`/outbox/${action}`, { ...bound, cursor });
    pages.push(body);
    await seedEntries(database, { state: 'returned', from: 10 + pages.length });
  }

  expect(pages.map((page) => page.done)).toEqual([2, 2, 1]);
  expect((await states()).filter((text) => text.endsWith('returned'))).toEqual(
    [6, 7, 8, 11, 12, 13].map((number) => `${number} returned`),
  );
  expect((await log()).filter(({ subject }) => subject !== null)).toHaveLength(5);
  expect((await log())[0]).toMatchObject({
    action: `outbox.${action}`,
    source: 'default',
    subject: null,
    detail: { state: 'returned', up_to: '5', [done]: 2 },
  });
  expect((await api.post(`/outbox/${action}`, { ...bound, dry_run: true })).body).toMatchObject({
    matched: 0,
    sample: [],
  });
});

test('an order takes what its filter names: source, job and the whole reason', async () => {
  await seedEntries(database, { state: 'parked', from: 1, count: 2, error: 'too large' });
  await seedEntries(database, { state: 'parked', from: 3, source: 'team-a', error: 'too large' });
  await seedEntries(database, { state: 'parked', from: 4, error: 'too large, by far' });
  const matched = async (filter: object) => {
    const order = { filter: { state: 'parked', ...filter }, dry_run: true };
    return (await api.post<Preview>('/outbox/discard', order)).body.sample.map(({ id }) => Number(id));
  };

  expect(await matched({ reason: 'too large' })).toEqual([1, 2, 3]);
  expect(await listed('reason=too+large')).toEqual([1, 2, 3]);
  expect(await matched({ reason: 'too large', source: 'team-a' })).toEqual([3]);
  expect(await listed('reason=too+large&source=team-a&state=parked')).toEqual([3]);
  expect(await matched({ job_id: 'job_4' })).toEqual([4]);
  expect(await matched({ job_id: 'job_4', reason: 'too large' })).toEqual([]);
  expect(await listed('job_id=job_4&reason=too+large')).toEqual([]);
  const order = { filter: { state: 'parked', reason: 'too large', job_id: 'job_2' } };
  expect((await api.post('/outbox/discard', order)).body).toEqual({ done: 1, next_cursor: null });
  expect(await states()).toEqual(['1 parked', '3 parked', '4 parked']);
});

test('a park takes pending events where they stand, of batches and of held ones, page by page up to its bound', async () => {
  await seedEntries(database, { state: 'pending', from: 1, count: 5, batchOf: 3 });
  await seedEntries(database, { state: 'returned', from: 6 });
  await insertEvents(database, { from: 7 });
  await insertHeld(database, { state: 'pending', from: 7 });
  await seedEntries(database, { state: 'pending', from: 8, source: 'team-a' });
  await seedEntries(database, { state: 'returned', from: 9, queue: 'billing' });
  const order = { filter: { state: 'pending', source: 'default' } };

  const found = await park({ ...order, dry_run: true });
  expect(found).toMatchObject({ matched: 6, matched_exactly: true, up_to: '9' });
  expect(found.sample.map(({ id }) => Number(id))).toEqual([1, 2, 3, 4, 5, 7]);
  await seedEntries(database, { state: 'pending', from: 10 });
  const bound = { filter: { ...order.filter, up_to: found.up_to }, limit: 4 };
  const first = await park(bound);
  const second = await park({ ...bound, cursor: first.next_cursor });

  expect([first.done, second.done, second.next_cursor]).toEqual([4, 2, null]);
  expect(await states()).toEqual([
    ...[1, 2, 3, 4, 5].map((number) => `${number} parked`),
    '6 returned',
    '7 parked',
    '8 pending',
    '9 returned',
    '10 pending',
  ]);
  expect((await log()).filter(({ subject }) => subject === null)).toMatchObject(
    [4, 2].map((parked) => ({
      action: 'outbox.park',
      source: 'default',
      detail: { state: 'pending', up_to: '9', parked },
    })),
  );
  expect((await log()).find(({ subject }) => subject === eventOf(1))?.detail).toEqual({
    entry: '1',
    state: 'pending',
    attempts: 0,
    last_error: null,
  });
  expect(await park({ ids: ['6', '1', '8', '9'] })).toMatchObject({
    done: 2,
    items: [{ result: 'parked', state: 'returned' }, { result: 'unchanged' }, {}, { result: 'wrong_state' }],
  });
});

test('the list has the copies for one queue', async () => {
  await seedEntries(database, { state: 'returned', from: 1 });
  await seedEntries(database, { state: 'returned', from: 2, queue: 'billing' });
  await seedEntries(database, { state: 'pending', from: 3, queue: 'billing' });
  await seedEntries(database, { state: 'returned', from: 4, queue: 'mail' });

  expect(await listed('queue=billing')).toEqual([2, 3]);
  expect(await listed('queue=billing&state=returned')).toEqual([2]);
  expect(await listed('queue=billing&copies=false')).toEqual([]);
  expect(await listed('queue=billing&job_id=job_1')).toEqual([2, 3]); // copies of the event 1
  expect(await listed('queue=Billing')).toEqual([]);
});

test('ids go on behind the last entry, with a limit', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 5 });
  const ids = ['5', '77', '1', '3', '2', '4'];

  const first = (await api.post<Page>('/outbox/discard', { ids, limit: 3 })).body;
  const second = (await api.post<Page>('/outbox/discard', { ids, limit: 3, cursor: first.next_cursor })).body;

  expect(resultsOf(first.items)).toEqual(['77 not_found', '1 discarded', '3 discarded', '2 discarded']);
  expect(resultsOf(second.items)).toEqual(['5 discarded', '4 discarded']);
  expect(second.next_cursor).toBeNull();
  const elsewhere = { ids: ['5'], cursor: first.next_cursor };
  expect(await api.post('/outbox/discard', elsewhere)).toMatchObject({
    status: 400,
    body: { error: 'invalid_cursor' },
  });
});

test('a token that is limited to sources reaches no others: by ids they are not there', async () => {
  await seedEntries(database, { state: 'returned', from: 1 });
  await seedEntries(database, { state: 'returned', from: 2, source: 'team-a' });
  const limited = await operators(service, { role: 'operator', sources: ['team-a'] });
  const ids = ['1', eventOf(1), '2'];

  expect((await limited.post<Preview>('/outbox/retry', { ids, dry_run: true })).body.matched).toBe(1);
  const { body } = await limited.post<Page>('/outbox/retry', { ids });
  expect(resultsOf(body.items)).toEqual(['1 not_found', `${eventOf(1)} not_found`, '2 retried']);
  expect(body.items?.[0]).toEqual({
    id: '1',
    event_id: null,
    result: 'not_found',
    state: null,
    reason: null,
  });
  const filter = { state: 'returned' };
  expect((await limited.post('/outbox/discard', { filter: { ...filter, source: 'default' } })).status).toBe(
    403,
  );
  expect((await limited.post('/outbox/discard', { filter })).body).toMatchObject({ done: 0 });
  expect((await limited.post<Preview>('/outbox/discard', { filter, dry_run: true })).body).toMatchObject({
    matched: 0,
    sample: [],
  });
  expect(await states()).toEqual(['1 returned', '2 pending']);
});

test('an order that is repeated under its key acts once and gets the first answer', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 2 });
  const order = { filter: { state: 'returned' } };
  const discard = () => api.post('/outbox/discard', order, { key: 'once' });

  const first = await discard();
  await seedEntries(database, { state: 'returned', from: 3 });
  const again = await discard();

  expect(first.body).toEqual({ done: 2, next_cursor: null });
  expect(again.body).toEqual(first.body);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect(await states()).toEqual(['3 returned']);
  const dry = await api.post('/outbox/discard', { ...order, dry_run: true }, { key: 'once' });
  expect(dry).toMatchObject({ status: 422, body: { error: 'idempotency_key_reused' } });
});

test('only operators give orders', async () => {
  await seedEntries(database, { state: 'returned', from: 1 });
  for (const role of ['viewer', 'auditor'] as const) {
    const caller = await operators(service, { role });
    for (const action of ['retry', 'discard', 'park']) {
      for (const order of [
        { ids: ['1'] },
        { ids: ['1'], dry_run: true },
        { filter: { state: 'returned' } },
      ]) {
        expect((await caller.post(`/outbox/${action}`, order)).status).toBe(403);
      }
    }
  }
  expect(await states()).toEqual(['1 returned']);
});

test('an order that does not say clearly which entries is refused', async () => {
  const filter = { state: 'returned' };
  for (const [action, order, message] of [
    ['discard', {}, 'exactly one of ids and filter must be given'],
    ['discard', { ids: ['1'], filter }, 'exactly one of ids and filter must be given'],
    ['discard', { state: 'returned' }, 'unknown parameter: state'],
    ['discard', { filter: {} }, 'filter.state: '],
    ['discard', { filter: { state: 'pending' } }, 'filter.state: '],
    ['discard', { filter: { ...filter, queue: 'billing' } }, 'unknown parameter: queue'],
    ['retry', {}, 'exactly one of ids and filter must be given'],
    ['retry', { filter, source: 'default' }, 'unknown parameter: source'],
    ['park', { filter: { state: 'parked' } }, 'filter.state: '],
    ['retry', { filter: { ...filter, up_to: 'x' } }, 'filter.up_to: must be the number of an entry'],
    [
      'retry',
      { filter: { ...filter, up_to: '9'.repeat(19) } },
      'filter.up_to: must be the number of an entry',
    ],
    ['retry', { filter: { ...filter, reason: 'x'.repeat(301) } }, 'filter.reason: must be at most 300'],
    ['retry', { filter, limit: 1_001 }, 'limit: '],
    ['retry', { ids: [] }, 'ids: must not be empty'],
    ['retry', { ids: [1] }, 'ids.0: must be text'],
    [
      'retry',
      { ids: Array.from({ length: 1_001 }, (_, n) => `${n}`) },
      'ids: must be at most 1,000 in one request',
    ],
  ] as const) {
    const answer = await api.post(`/outbox/${action}`, order);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining(message) } });
  }
});

test('a preview counts to 10,000, and an order takes at most 1,000 a call, by ids too', async () => {
  await seedEntries(database, { state: 'returned', from: 1, count: 10_001 });
  const filter = { state: 'returned' };
  const preview = async (more: object = {}) =>
    (await api.post<Preview>('/outbox/retry', { filter: { ...filter, ...more }, dry_run: true })).body;

  expect(await preview()).toMatchObject({ matched: 10_000, matched_exactly: false, up_to: '10001' });
  expect(await preview({ up_to: '10000' })).toMatchObject({
    matched: 10_000,
    matched_exactly: true,
    up_to: '10000',
  });
  const ids = Array.from({ length: 1_000 }, (_, index) => `${index + 1}`);
  expect((await api.post('/outbox/retry', { ids })).body).toMatchObject({
    done: 1_000,
    next_cursor: null,
  });
  expect((await api.post('/outbox/discard', { filter })).body).toEqual({
    done: 1_000,
    next_cursor: expect.any(String) as unknown,
  });
  expect((await log()).filter(({ subject }) => subject !== null)).toHaveLength(2_000);
});
