import { expect, test, vi } from 'vitest';
import { listen, newExchange } from '../support/bus.ts';
import { operators } from '../support/operators.ts';
import { addEntry, connectTestDatabase } from '../support/relay.ts';
import { newReplay, seedEvents } from '../support/replays.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';

type Entry = { id: string; event_id: string; state: string; attempts: number; last_error: string | null };

/** An event whose entry stands in the outbox as the relay, or an operator, left it. A pending one is not due. */
async function addWaiting(
  { database }: TestService,
  state: 'pending' | 'returned' | 'parked',
  { job = newJobId(), source = 'default' }: { job?: string; source?: string } = {},
): Promise<{ position: string; id: string; job: string }> {
  const [row] = await database.query<{ sequence: string }>(
    `with event as (
       insert into events (source, job_id, status, late, recorded_at, delivery_id, content_hash, repeats)
       values ($3, $1, 'completed', false, now(), gen_random_uuid(), '', 0) returning *
     )
     insert into outbox (sequence, source, job_id, status, late, recorded_at, data, state, attempts, last_error,
                         due_at)
     select sequence, source, job_id, status, late, recorded_at, '{}', $2, 20, 'a test',
            case $2 when 'pending' then now() + interval '1 hour' else now() end
     from event returning sequence`,
    [job, state, source],
  );
  return { position: row?.sequence ?? '', id: `${source}:${job}:completed`, job };
}

test('a parked event is sent by its id or its number, with what waited behind it, and the log says who did it', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const first = await addWaiting(service, 'parked');
  const second = await addWaiting(service, 'parked');
  await addEntry(service.database, { jobId: first.job, percent: 50 });

  const byId = await api.post<Entry>(`/outbox/${first.id}/retry`);
  const byNumber = await api.post<Entry>(`/outbox/${second.position}/retry`);

  expect(byId).toMatchObject({
    status: 200,
    body: { id: first.position, event_id: first.id, state: 'pending', attempts: 0, replay_id: null },
  });
  expect(byNumber).toMatchObject({ status: 200, body: { event_id: second.id } });
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

test('a discarded event is never sent, and the later ones of its job go on', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator' });
  const parked = await addWaiting(service, 'parked');
  await addEntry(service.database, { jobId: parked.job, percent: 50 });

  expect(await api.post<Entry>(`/outbox/${parked.id}/discard`)).toMatchObject({
    status: 200,
    body: { id: parked.position, state: 'parked', attempts: 20, last_error: 'a test' },
  });

  await bus.received(1);
  await vi.waitFor(async () => expect(await service.database.query('select from outbox')).toEqual([]));
  expect(bus.ids()).toEqual([`default:${parked.job}:processing:50`]);
  expect((await api.post(`/outbox/${parked.id}/discard`)).status).toBe(404);
});

test('an event that is parked by an operator waits, and the later ones of its job with it', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const { position, id, job } = await addWaiting(service, 'pending'); // not due, so the relay leaves it to us

  expect(await api.post<Entry>(`/outbox/${id}/park`)).toMatchObject({
    status: 200,
    body: { state: 'parked', last_error: 'parked by Ada' },
  });
  await service.database.query('update outbox set due_at = now(), attempts = 1'); // parked all the same
  await addEntry(service.database, { jobId: job, percent: 2 });
  await deliver(service.webhooks, completed(newJobId()));
  await bus.received(1);
  expect(bus.ids().filter((known) => known.includes(job))).toEqual([]);

  await api.post(`/outbox/${position}/retry`);
  await bus.received(3);
  expect(bus.ids().slice(1)).toEqual([id, `default:${job}:processing:2`]);
});

test('a decision that the state does not allow is a 409, and of two at once one is made', async () => {
  await using service = await startTestService();
  await using connection = connectTestDatabase(service.database);
  const api = await operators(service, { role: 'operator' });
  const returned = await addWaiting(service, 'returned');
  await seedEvents(service.database, 1);
  await newReplay(connection, { filter: { job_id_prefix: 'job_0' }, queue: 'nobody.is.there' });
  const copy = await vi.waitFor(async () => {
    const [row] = await service.database.query<{ sequence: string }>(
      `select sequence from outbox where replay_id is not null and state = 'returned'`,
    );
    if (row === undefined) throw new Error('it was not returned yet');
    return row.sequence;
  });

  const answers = await Promise.all(
    Array.from({ length: 3 }, () => api.post(`/outbox/${returned.position}/discard`)),
  );
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 404, 404]);
  const parked = await addWaiting(service, 'parked');
  expect(await api.post(`/outbox/${parked.id}/park`)).toMatchObject({
    status: 409,
    body: { error: 'wrong_state', message: 'it is parked: that does not allow to park it' },
  });
  for (const decision of ['retry', 'discard', 'park']) {
    expect(await api.post(`/outbox/${copy}/${decision}`)).toMatchObject({ status: 409 });
  }
});

test('entries that are not there or not theirs are told as such', async () => {
  await using service = await startTestService();
  const limited = await operators(service, { role: 'operator', sources: ['team-a'] });
  const foreign = await addWaiting(service, 'parked');

  for (const id of [
    '123456',
    '99999999999999999999',
    '9223372036854775808',
    'default:nobody:completed',
    "';--",
  ]) {
    expect({ id, status: (await limited.post(`/outbox/${encodeURIComponent(id)}/retry`)).status }).toEqual({
      id,
      status: 404,
    });
  }
  expect((await limited.post(`/outbox/${foreign.id}/discard`)).status).toBe(403);
  expect((await limited.post('/outbox/retry', { state: 'parked', source: 'default' })).status).toBe(403);
  expect(await limited.post('/outbox/retry', { state: 'parked' })).toMatchObject({
    status: 200,
    body: { retried: 0, remaining: false },
  });
  expect(await limited.post('/outbox/retry', { state: 'pending' })).toMatchObject({ status: 400 });
});

test('all of a state are sent at most 1,000 a call, of one source where that is asked', async () => {
  await using service = await startTestService({ env: { RELAY_POLL_MS: '60000' } });
  const api = await operators(service, { role: 'operator' });
  await service.database.query(
    `insert into outbox (sequence, source, job_id, status, late, recorded_at, data, state, attempts)
     select 1000000 + n, case when n <= 1200 then 'team-a' else 'team-b' end, 'job_' || n, 'completed', false, now(),
            '{}', 'returned', 1
     from generate_series(1, 1210) as n`,
  );
  const retry = (body: object) => api.post<{ retried: number; remaining: boolean }>('/outbox/retry', body);

  expect((await retry({ state: 'returned', source: 'team-a' })).body).toEqual({
    retried: 1_000,
    remaining: true,
  });
  expect((await retry({ state: 'returned', source: 'team-a' })).body).toMatchObject({ remaining: false });
  expect((await retry({ state: 'parked' })).body).toEqual({ retried: 0, remaining: false });
  expect(
    (await service.database.query(`select from outbox where source = 'team-b' and attempts = 1`)).length,
  ).toBe(10);
});
