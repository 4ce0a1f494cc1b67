import { expect, test } from 'vitest';
import { listen, newExchange } from '../../support/bus.ts';
import { operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { createTestDatabase } from '../../support/database.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { addWaiting, insertCopies, insertHeld } from '../../support/outbox-rows.ts';
import { addEntry, connectTestDatabase, decideNow } from '../../support/relay.ts';
import { newReplay, seedEvents } from '../../support/replays.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

type Entry = {
  id: string;
  event_id: string;
  state: string;
  attempts: number;
  last_error: string | null;
  replay_id: string | null;
  recorded_at: string;
};

type Retried = { done: number; next_cursor: string | null };

test('a parked event is sent by its id or its number, with what waited behind it, and the log says who did it', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const first = await addWaiting(service, 'parked');
  const second = await addWaiting(service, 'parked');
  await addEntry(service.database, { jobId: first.job, percent: 50 });

  const byId = await orderOne(api, 'outbox/retry', first.id);
  const byNumber = await orderOne(api, 'outbox/retry', second.position);

  expect(byId).toMatchObject({
    status: 200,
    body: { done: 1 },
    event_id: first.id,
    result: 'retried',
    state: 'parked',
  });
  expect(byNumber).toMatchObject({ status: 200, result: 'retried', event_id: second.id });
  await bus.received(3);
  expect(bus.ids().filter((id) => id.includes(first.job))).toEqual([
    first.id,
    `default:${first.job}:processing:50`,
  ]);
  const all = await operators(service);
  expect((await all.get(`/operator-log?subject=${first.id}`)).body).toMatchObject({
    items: [
      {
        actor: 'Ada',
        action: 'outbox.retry',
        detail: { entry: first.position, state: 'parked', attempts: 20 },
      },
    ],
  });
});

test('a pending event behind another one of its job says which, and what holds that one back', async () => {
  await using service = await startTestService();
  const api = await operators(service);
  const parked = await addWaiting(service, 'parked');
  await addEntry(service.database, { jobId: parked.job, percent: 50 });
  const alone = await addWaiting(service, 'pending');

  const { items } = (await api.get<{ items: { event_id: string; waits_behind: object | null }[] }>('/outbox'))
    .body;

  expect(items.map(({ event_id, waits_behind }) => ({ event_id, waits_behind }))).toEqual([
    { event_id: parked.id, waits_behind: null },
    {
      event_id: `default:${parked.job}:processing:50`,
      waits_behind: { id: parked.position, event_id: parked.id, state: 'parked' },
    },
    { event_id: alone.id, waits_behind: null },
  ]);
});

test('a discarded event is never sent, and the later ones of its job go on', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator' });
  const parked = await addWaiting(service, 'parked');
  await addEntry(service.database, { jobId: parked.job, percent: 50 });

  expect(await orderOne(api, 'outbox/discard', parked.id)).toMatchObject({
    result: 'discarded',
    state: 'parked',
  });

  await bus.received(1);
  await waitFor(async () => expect(await service.database.query('select from outbox_held')).toEqual([]));
  expect(bus.ids()).toEqual([`default:${parked.job}:processing:50`]);
  expect(await orderOne(api, 'outbox/discard', parked.id)).toMatchObject({ result: 'not_found' });
});

test('an event that is parked by an operator waits, and the later ones of its job with it', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const { position, id, job } = await addWaiting(service, 'pending'); // not due, so the relay leaves it to us

  expect(await orderOne(api, 'outbox/park', id)).toMatchObject({
    result: 'parked',
    state: 'pending',
  });
  expect(await service.database.query('select state, last_error from outbox_held')).toEqual([
    { state: 'parked', last_error: 'parked by Ada; a test' },
  ]);
  await service.database.query('update outbox_held set due_at = now(), attempts = 1'); // parked all the same
  await addEntry(service.database, { jobId: job, percent: 2 });
  await deliver(service.webhooks, completed(newJobId()));
  await bus.received(1);
  expect(bus.ids().filter((known) => known.includes(job))).toEqual([]);

  await orderOne(api, 'outbox/retry', position);
  await bus.received(3);
  expect(bus.ids().slice(1)).toEqual([id, `default:${job}:processing:2`]);
});

test('if several make the same decision at once, one counts, and each gets the state of the entry', async () => {
  await using database = await createTestDatabase();
  await holdOutbox(database);
  await using service = await startTestService({ database });
  const api = await operators(service, { role: 'operator' });
  const all = await operators(service);
  const { id } = await addWaiting(service, 'returned');
  const log = async () =>
    (await all.get<{ items: { action: string }[] }>(`/operator-log?subject=${id}`)).body.items.map(
      ({ action }) => action,
    );

  for (const [decision, before, after] of [
    ['park', 'returned', 'parked'],
    ['retry', 'parked', 'pending'],
  ] as const) {
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => orderOne(api, `outbox/${decision}`, id)),
    );
    expect(answers.map(({ state }) => String(state)).toSorted()).toEqual([before, after, after].toSorted());
    expect(answers.filter(({ result }) => result === 'unchanged')).toHaveLength(2);
  }

  expect(await log()).toEqual(['outbox.retry', 'outbox.park']);
  const [before] = await service.database.query<{ due_at: Date }>('select * from outbox_held');
  expect((await orderOne(api, 'outbox/retry', id)).result).toBe('unchanged');
  expect(await service.database.query('select * from outbox_held')).toEqual([before]);
});

test('a decision that the state does not allow is told as such, and an event is discarded only once', async () => {
  await using service = await startTestService();
  await using connection = connectTestDatabase(service.database);
  const api = await operators(service, { role: 'operator' });
  const returned = await addWaiting(service, 'returned');
  await seedEvents(service.database, 1);
  await newReplay(connection, { filter: { job_id_prefix: 'job_0' }, queue: 'nobody.is.there' });
  const copy = await waitFor(async () => {
    const [row] = await service.database.query<{ position: string }>(
      `select position from replay_copies where state = 'returned'`,
    );
    if (row === undefined) throw new Error('it was not returned yet');
    return row.position;
  });

  const answers = await Promise.all(
    Array.from({ length: 3 }, () => orderOne(api, 'outbox/discard', returned.position)),
  );
  expect(answers.map(({ result }) => String(result)).toSorted()).toEqual([
    'discarded',
    'not_found',
    'not_found',
  ]);
  const pending = await addWaiting(service, 'pending');
  expect(await orderOne(api, 'outbox/discard', pending.id)).toMatchObject({
    result: 'wrong_state',
    reason: 'it is pending: a pending event cannot be discarded',
  });
  for (const decision of ['retry', 'discard', 'park'] as const) {
    expect(await orderOne(api, `outbox/${decision}`, copy)).toMatchObject({ result: 'wrong_state' });
  }
});

test('an entry of another source is not found, like one that does not exist', async () => {
  await using service = await startTestService();
  const limited = await operators(service, { role: 'operator', sources: ['team-a'] });
  const foreign = await addWaiting(service, 'parked');
  const own = await addWaiting(service, 'parked', { source: 'team-a' });

  for (const decision of ['retry', 'discard', 'park'] as const) {
    const none = { result: 'not_found', event_id: null, state: null, reason: null };
    for (const id of [
      foreign.position,
      '123456',
      '99999999999999999999',
      '9223372036854775808',
      'team-a:nobody:completed',
      "';--",
      foreign.id,
      'default:nobody:completed',
      'default:nobody:processing:5',
    ]) {
      expect(await orderOne(limited, `outbox/${decision}`, id)).toMatchObject({ id, ...none });
    }
  }
  expect(await orderOne(limited, 'outbox/discard', own.position)).toMatchObject({ result: 'discarded' });
  expect(await service.database.query('select state from outbox_held')).toEqual([{ state: 'parked' }]);
  expect(
    (await limited.post('/outbox/retry', { filter: { state: 'parked', source: 'default' } })).status,
  ).toBe(403);
  expect(await limited.post('/outbox/retry', { filter: { state: 'parked' } })).toMatchObject({
    status: 200,
    body: { done: 0, next_cursor: null },
  });
  expect(await limited.post('/outbox/retry', { filter: { state: 'pending' } })).toMatchObject({
    status: 400,
  });
});

test('all of a state are sent at most 1,000 a call, of one source where that is asked', async () => {
  await using service = await startTestService({ env: { RELAY_POLL_MS: '60000' } });
  const api = await operators(service, { role: 'operator' });
  await insertHeld(service.database, { state: 'returned', from: 1, count: 1_200, source: 'team-a' });
  await insertHeld(service.database, { state: 'returned', from: 1_201, count: 10, source: 'team-b' });
  const retry = (filter: object) => api.post<Retried>('/outbox/retry', { filter });

  expect((await retry({ state: 'returned', source: 'team-a' })).body).toEqual({
    done: 1_000,
    next_cursor: expect.any(String) as unknown,
  });
  const none = { next_cursor: null };
  expect((await retry({ state: 'returned', source: 'team-a' })).body).toMatchObject(none);
  expect((await retry({ state: 'parked' })).body).toEqual({ done: 0, ...none });
  const ofCalls = await service.database.query(
    'select action, source, detail::json from operator_log where subject is null order by id',
  );
  expect(ofCalls).toEqual(
    [
      { source: 'team-a', detail: { state: 'returned', retried: 1_000 } },
      { source: 'team-a', detail: { state: 'returned', retried: 200 } },
      { source: null, detail: { state: 'parked', retried: 0 } },
    ].map((line) => ({ action: 'outbox.retry', ...line })),
  );
  const ofEvents = await service.database.query<{ subject: string }>(
    `select subject from operator_log
     where subject is not null and action = 'outbox.retry' and source = 'team-a' order by id`,
  );
  expect(ofEvents.map(({ subject }) => subject)).toEqual(
    Array.from({ length: 1_200 }, (_, index) => `team-a:job_${index + 1}:completed`),
  );
  expect(
    (await service.database.query(`select from outbox_held where source = 'team-b' and attempts = 1`)).length,
  ).toBe(10);
});

test('calls that follow the cursor retry each entry once, though it is returned again and others are meanwhile', async () => {
  await using database = await createTestDatabase();
  await holdOutbox(database);
  await using service = await startTestService({ database });
  const api = await operators(service, { role: 'operator' });
  const seed = (from: number, to: number) =>
    insertHeld(database, { state: 'returned', from, count: to - from + 1, source: 'team-a' });
  await seed(1, 1_200);
  const retry = (filter: object, cursor?: string | null) =>
    api.post<Retried>('/outbox/retry', { filter, ...(cursor && { cursor }) });

  const first = (await retry({ state: 'returned' })).body;
  expect(first.done).toBe(1_000);
  await database.query(`update outbox_held set state = 'returned', attempts = 2`);
  await seed(1_201, 1_300);
  const second = (await retry({ state: 'returned' }, first.next_cursor)).body;

  expect(second).toEqual({ done: 200, next_cursor: null });
  expect(
    await database.query(
      `select min(sequence)::int as first, max(sequence)::int as last from outbox_held where state = 'pending'`,
    ),
  ).toEqual([{ first: 1_001, last: 1_200 }]);
  for (const [filter, cursor] of [
    [{ state: 'parked' }, first.next_cursor],
    [{ state: 'returned', source: 'team-a' }, first.next_cursor],
    [{ state: 'returned' }, 'AAAA'],
  ] as const) {
    expect(await retry(filter, cursor)).toMatchObject({ status: 400, body: { error: 'invalid_cursor' } });
  }
});

test('no more are retried at once than the limit, however Postgres goes about it', async () => {
  await using database = await createTestDatabase();
  for (const way of ['hashjoin', 'mergejoin', 'hashagg', 'sort', 'material']) {
    await database.query(`alter database ${database.name} set enable_${way} = off`);
  }
  await insertHeld(database, { state: 'returned', from: 1, count: 1_010, source: 'team-a' });
  await using connection = connectTestDatabase(database);

  const { decided } = await decideNow(connection.db, 'retry', { filter: { state: 'returned' } });

  expect(decided.map(({ id }) => Number(id))).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
  expect(await database.query(`select from outbox_held where state = 'pending'`)).toHaveLength(1_000);
});

test('copies of replays are no backlog: they are counted apart, and can be asked for or left out', async () => {
  await using database = await createTestDatabase();
  await holdOutbox(database);
  await using service = await startTestService({ database });
  const api = await operators(service, { role: 'operator' });
  let drawn = 0; // far below the numbers that the ledger draws
  const addCopy = (state: 'pending' | 'returned', source: string) =>
    insertCopies(database, { state, source, from: (drawn += 1) });
  for (const state of ['pending', 'returned', 'returned'] as const) await addCopy(state, 'default');
  await addCopy('pending', 'team-a');
  const nothing = { pending: 0, returned: 0, parked: 0 };
  expect((await api.get('/outbox')).body).toMatchObject({
    counts: nothing,
    copies: 4,
    oldest_pending_at: null,
  });

  const [pending, returned] = [await addWaiting(service, 'pending'), await addWaiting(service, 'returned')];
  await addCopy('returned', 'default');
  const { body } = await api.get<{ items: Entry[]; oldest_pending_at: string }>('/outbox');
  expect(body).toMatchObject({ counts: { pending: 1, returned: 1, parked: 0 }, copies: 5 });
  expect(body.items).toHaveLength(7);
  expect(body.oldest_pending_at).toBe(body.items.find(({ id }) => id === pending.position)?.recorded_at);
  const listed = async (query: string) => {
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const address: string = `/outbox?limit=1&${query}${cursor && `&cursor=${cursor}`}`;
      const page: { items: Entry[]; next_cursor: string | null } = (await api.get<typeof page>(address)).body;
      found.push(...page.items.map(({ id }) => id));
      cursor = page.next_cursor;
    }
    return found;
  };
  const copies = body.items.filter(({ replay_id }) => replay_id !== null);
  const idsOf = (of: string) => copies.filter(({ state }) => state === of).map(({ id }) => id);
  expect(await listed('copies=true')).toEqual(copies.map(({ id }) => id));
  expect(await listed('copies=true&state=returned')).toEqual(idsOf('returned'));
  expect(await listed('copies=true&source=default&state=pending')).toEqual(idsOf('pending').slice(0, 1));
  expect(await listed('copies=false')).toEqual([pending.position, returned.position]);
  expect(await listed('copies=false&state=pending')).toEqual([pending.position]);
  expect(await listed('copies=false&state=returned&source=default')).toEqual([returned.position]);
  expect(await listed(`copies=false&job_id=${returned.job}`)).toEqual([returned.position]);
  expect(await listed(`copies=true&job_id=${returned.job}`)).toEqual([]);
  const limited = await operators(service, { role: 'viewer', sources: ['team-a'] });
  expect((await limited.get('/outbox')).body).toMatchObject({ counts: nothing, copies: 1 });
  expect((await limited.get('/outbox?copies=maybe')).status).toBe(400);
});
