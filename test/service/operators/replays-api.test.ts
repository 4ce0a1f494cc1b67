// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { randomBytes, randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Replay } from '../../../src/operators/replays/queries.ts';
import { type BusMessage, listen, newExchange, receivedOf } from '../../support/bus.ts';
import { altered, copies, untilNonePending } from '../../support/facts.ts';
import { testWithBus as it } from '../../support/fixtures.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { copiesInOutbox, newReplay, seedEvents } from '../../support/replays.ts';
import { completed, deliver, failed, newJobId, newSource, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

type Shown = Omit<Replay, 'sources'> & { skips?: { event_id: string; reason: string }[] };
type Preview = { matched: number; matched_exactly: boolean; sample: { id: string }[] };
type Fault = { error: string; message: string };

// One service for all, and its subscriber. Each test has its jobs or its source, and leaves no replay that goes on.

/** A message of a source, or of one job: `default:job_1`. */
const isOf =
  (of: string) =>
  ({ id }: BusMessage) =>
    id.startsWith(`${of}:`);

function untilFinished(api: Operators, id: string): Promise<Shown> {
  return waitFor(
    async () => {
      const { body } = await api.get<Shown>(`/replays/${id}`);
      expect(body.state).toBe('finished');
      return body;
    },
    { timeout: 15_000, interval: 50 },
  );
}

/** What a dry run, or anything refused, must leave as it was. */
async function everything({ database }: TestService): Promise<unknown> {
  return database.query(
    `select (select count(*) from replays)::int as replays, (select count(*) from replay_copies)::int as copies,
            (select count(*) from operator_log)::int as log, (select last_value from events_sequence_seq) as sequence`,
  );
}

it('copies are the first messages again, byte for byte, marked in their headers alone', async ({
  running,
}) => {
  const { service, bus } = running;
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const job = newJobId();
  await deliver(service.webhooks, progress(job, 45, { extra: { big: 1 } }));
  await deliver(
    service.webhooks,
    `{"job_id":"${job}","status":"completed","job_type":"video","progress_percentage":100,"cost_micros":1,
      "cost_cents":1,"processing_time_seconds":1,"output_size_bytes":9007199254740991,"input_format":"a",
      "output_format":"b","created_at":"2026-01-15T10:30:00+01:00","completed_at":"2026-01-15T10:35:00.1234567Z",
      "unknown":12345678901234567890.10}`,
  );
  await deliver(service.webhooks, progress(job, 30)); // late
  await receivedOf(bus, isOf(`default:${job}`), 3);
  await untilNonePending(service.database);

  const { status, body } = await api.post<Shown>('/replays', { filter: { job_id: job }, note: 'a test' });

  expect(status).toBe(202);
  expect(body).toMatchObject({
    state: 'running',
    created_by: 'Ada',
    note: 'a test',
    event_ids: null,
    filter: { job_id: job },
    queue: null,
    rate_per_second: 100,
    counts: { matched: 3 },
    finished_at: null,
  });
  expect(body).not.toHaveProperty('sources');
  const messages = await receivedOf(bus, isOf(`default:${job}`), 6);
  const ids = messages.map(({ id }) => id);
  expect(ids.slice(3)).toEqual(ids.slice(0, 3));
  expect(altered(messages)).toEqual([]);
  for (const [index, message] of messages.entries()) {
    const { headers, ...properties } = message.properties;
    const { headers: firstHeaders, ...first } = messages[index % 3]?.properties ?? {};
    expect(properties).toEqual(first);
    expect(firstHeaders).toEqual({});
    expect(headers).toEqual(index < 3 ? {} : { replay: body.id, replayed_by: 'Ada' });
  }
  expect((await untilFinished(api, body.id)).counts).toEqual({
    matched: 3,
    queued: 3,
    confirmed: 3,
    returned: 0,
    failed: 0,
    skipped: 0,
  });
});

it('a dry run shows how many there are and the first of them, and changes nothing', async ({ running }) => {
  const { service } = running;
  const source = newSource();
  const api = await operators(service, { role: 'operator' });
  const ids = await seedEvents(service.database, 25, { source });
  const before = await everything(service);

  const { status, body } = await api.post<Preview>('/replays', {
    filter: { source, status: 'completed', secret_fingerprint: 'abcd1234', remote_address: '10.0.0.1' },
    dry_run: true,
  });

  expect(status).toBe(200);
  expect(body).toMatchObject({ matched: 25, matched_exactly: true });
  expect(body.sample.map(({ id }) => id)).toEqual(ids.slice(0, 10));
  expect(body.sample[0]).toMatchObject({
    job_id: 'job_000001',
    kind: 'completed',
    publication: 'done',
    occurred_at: '2026-01-15T10:35:00.000000Z',
  });
  expect(await everything(service)).toEqual(before);
});

it('an order with the time of its dry run publishes what was shown, and nothing that came later', async ({
  running,
}) => {
  const { service } = running;
  const api = await operators(service, { role: 'operator' });
  const prefix = newJobId();
  const [first, second] = [`${prefix}_first`, `${prefix}_second`];
  const wanted = { kind: 'completed', job_id_prefix: prefix };
  const dryRun = async (body: object) =>
    (
      await api.post<{ matched: number; matched_before: string | null }>('/replays', {
        ...body,
        dry_run: true,
      })
    ).body;
  await deliver(service.webhooks, completed(first));
  const found = await dryRun({ filter: wanted });
  await deliver(service.webhooks, completed(second));
  await untilNonePending(service.database);

  const to = found.matched_before ?? '';
  const { body } = await api.post<Shown>('/replays', { filter: { ...wanted, to } });

  expect([found.matched, body.counts.matched]).toEqual([1, 1]);
  expect((await untilFinished(api, body.id)).counts.queued).toBe(1);
  // The end of the filter's own time, if that is earlier; ids have none.
  const past = '2026-01-15T10:30:00.000000Z';
  expect((await dryRun({ filter: { ...wanted, to: past } })).matched_before).toBe(past);
  expect((await dryRun({ event_ids: [`default:${first}:completed`] })).matched_before).toBeNull();
});

test('every filter selects as the list of events does', async () => {
  await using service = await startTestService({
    env: { SIGNING_SECRETS: 'a-test-secret-of-enough-bytes-0001' },
  });
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 3, { source: 'team-a', prefix: 'a_' });
  await seedEvents(service.database, 2, { source: 'team-b', prefix: 'ab_' });
  const job = newJobId();
  await deliver(service.webhooks, failed(job));
  await deliver(service.webhooks, progress(job, 10));
  const [times] = await service.database.query<{ middle: string }>(
    `select to_char(min(recorded_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as middle
     from events where source = 'team-b'`,
  );
  const count = async (filter: object) => {
    const { body } = await api.post<Preview>('/replays', { filter, dry_run: true });
    return body.matched;
  };

  expect({
    source: await count({ source: 'team-a' }),
    status: await count({ status: 'failed' }),
    kind: await count({ kind: 'progress' }),
    jobId: await count({ job_id: job }),
    prefix: await count({ job_id_prefix: 'a' }),
    longer: await count({ job_id_prefix: 'ab' }),
    error: await count({ error_code: 'INVALID_INPUT' }),
    late: await count({ late: true }),
    inTime: await count({ late: false, source: 'default' }),
    from: await count({ from: times?.middle }),
    to: await count({ to: times?.middle }),
    between: await count({ source: 'team-b', from: times?.middle, to: '2100-01-01T00:00:00+02:00' }),
    fingerprint: await count({ secret_fingerprint: 'abcd1234', source: 'team-b' }),
    address: await count({ remote_address: '10.0.0.1' }),
    none: await count({ secret_fingerprint: 'nobody' }),
  }).toEqual({
    source: 3,
    status: 1,
    kind: 1,
    jobId: 2,
    prefix: 5,
    longer: 2,
    error: 1,
    late: 1,
    inTime: 1,
    from: 4,
    to: 3,
    between: 2,
    fingerprint: 2,
    address: 5,
    none: 0,
  });
});

it('a replay that is asked for twice under one Idempotency-Key is one', async ({ running }) => {
  const { service } = running;
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });
  const [id] = await seedEvents(service.database, 1, { source });
  const key = randomUUID();

  const first = await api.post<Shown>('/replays', { event_ids: [id] }, { key });
  const second = await api.post<Shown>('/replays', { event_ids: [id] }, { key });

  expect([first.status, second.status]).toEqual([202, 202]);
  expect(second.body).toEqual(first.body);
  expect(first.body).toMatchObject({ event_ids: [id], filter: null });
  expect((await api.get<{ items: Shown[] }>('/replays')).body.items).toHaveLength(1);
  await untilFinished(api, first.body.id);
});

it('what it did is in the operator log', async ({ running }) => {
  const { service } = running;
  const source = newSource();
  const api = await operators(service, { name: 'Ada' });
  await seedEvents(service.database, 60, { source });
  const { body } = await api.post<Shown>('/replays', {
    filter: { source },
    queue: running.bus.queue,
    rate_per_second: 1,
  });
  for (const change of ['pause', 'resume', 'cancel', 'cancel']) {
    expect(await api.post(`/replays/${body.id}/${change}`)).toMatchObject({ status: 200 });
  }

  const { body: log } = await api.get<{ items: Record<string, unknown>[] }>(
    `/operator-log?subject=${body.id}`,
  );

  expect(log.items.map(({ action }) => action)).toEqual([
    'replay.cancel',
    'replay.resume',
    'replay.pause',
    'replay.create',
  ]);
  expect(log.items.at(-1)).toMatchObject({
    actor: 'Ada',
    source,
    detail: { filter: { source }, matched: 60, queue: running.bus.queue, rate_per_second: 1 },
  });
});

it('a replay is paused, resumed and cancelled, and a state that does not allow it is a 409', async ({
  running,
}) => {
  const { service, bus } = running;
  const [source, live] = [newSource(), newJobId()];
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 500, { source });
  const { body } = await api.post<Shown>('/replays', { filter: { source }, rate_per_second: 200 });
  const change = (to: string) => api.post<Shown>(`/replays/${body.id}/${to}`);
  await receivedOf(bus, isOf(source), 20);

  expect(await change('pause')).toMatchObject({ status: 200, body: { state: 'paused' } });
  expect((await change('pause')).status).toBe(200);
  const paused = await api.get<Shown>(`/replays/${body.id}`);
  expect(paused.body.paused_because).toBe('by an operator');
  // What was on its way comes; then nothing, though live events do.
  await waitFor(async () => {
    const { body: now } = await api.get<Shown>(`/replays/${body.id}`);
    expect(now.counts.confirmed).toBe(bus.messages.filter(isOf(source)).length);
  });
  const seen = bus.messages.filter(isOf(source)).length;
  const seenOfAll = bus.messages.length;
  await deliver(service.webhooks, completed(live));
  await receivedOf(bus, isOf(`default:${live}`), 1);
  expect(bus.messages.slice(seenOfAll).map(({ properties }) => properties['headers'])).toEqual([{}]);

  expect(await change('resume')).toMatchObject({
    status: 200,
    body: { state: 'running', paused_because: null },
  });
  await receivedOf(bus, isOf(source), seen + 20);
  expect(await change('cancel')).toMatchObject({ status: 200, body: { state: 'cancelled' } });
  expect(await change('resume')).toMatchObject({
    status: 409,
    body: { error: 'wrong_state', message: 'it is cancelled: a cancelled replay cannot be resumed' },
  });
  expect(await change('pause')).toMatchObject({ status: 409, body: { error: 'wrong_state' } });
  await waitFor(async () => expect(await copiesInOutbox(service.database)).toEqual([]));
  const counts = copies([
    ...bus.messages.filter(isOf(source)),
    ...bus.messages.filter(isOf(`default:${live}`)),
  ]);
  expect([...counts.values()].every((count) => count === 1)).toBe(true);
  expect(counts.size).toBeLessThan(501);
});

test('a replay goes on where it was after a restart', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using first = await startTestService({ exchange });
  const { database } = first;
  const ids = await seedEvents(database, 300);
  const api = await operators(first, { role: 'operator' });
  const { body } = await api.post<Shown>('/replays', {
    filter: { source: 'default' },
    rate_per_second: 300,
  });
  await bus.received(50);
  await first.service.stop();
  expect(bus.messages.length).toBeLessThan(300);

  await using second = await startTestService({ exchange, database });
  await bus.received(300);

  expect(bus.ids().toSorted()).toEqual(ids);
  expect((await untilFinished(await operators(second), body.id)).counts).toMatchObject({
    queued: 300,
    confirmed: 300,
  });
});

it('a replay of what was skipped says so', async ({ running }) => {
  const { service } = running;
  const source = newSource();
  const api = await operators(service, { role: 'operator' });
  const [id] = await seedEvents(service.database, 1, { source });
  await service.database.query('delete from deliveries where source = $1', [source]);

  const { body } = await api.post<Shown>('/replays', { event_ids: [id] });

  expect(await untilFinished(api, body.id)).toMatchObject({
    counts: { matched: 1, queued: 0, skipped: 1 },
    skips: [{ replay_id: body.id, event_id: id, reason: 'its body is no longer kept' }],
  });
});

it('replays are listed newest first, page by page, and by their state', async ({ running }) => {
  const { service } = running;
  const source = newSource();
  const api = await operators(service, { role: 'operator', sources: [source] });
  await seedEvents(service.database, 60, { source });
  const made: string[] = [];
  for (let count = 0; count < 5; count++) {
    const { body } = await api.post<Shown>('/replays', { filter: { source }, rate_per_second: 1 });
    made.unshift(body.id);
  }
  await api.post(`/replays/${made[1]}/cancel`);
  type Page = { items: Shown[]; next_cursor: string | null };

  const first = await api.get<Page>('/replays?limit=3');
  const second = await api.get<Page>(`/replays?limit=3&cursor=${first.body.next_cursor}`);

  expect([...first.body.items, ...second.body.items].map(({ id }) => id)).toEqual(made);
  expect(second.body.next_cursor).toBeNull();
  expect((await api.get<Page>('/replays?state=cancelled')).body.items.map(({ id }) => id)).toEqual([made[1]]);
  expect((await api.get(`/replays?state=paused&cursor=${first.body.next_cursor}`)).status).toBe(400);
  for (const id of made) await api.post(`/replays/${id}/cancel`);
});

it('a token that is limited to sources replays, sees and changes nothing beyond them', async ({
  running,
}) => {
  const { service } = running;
  const [source, other] = [newSource(), newSource()];
  const limited = await operators(service, { role: 'operator', sources: [source] });
  const all = await operators(service, { role: 'operator' });
  const [own] = await seedEvents(service.database, 3, { source });
  const foreigners = await seedEvents(service.database, 60, { source: other });
  const [foreign] = foreigners;
  const post = (body: object) => limited.post<Fault & Preview & Shown>('/replays', body);

  expect((await post({ filter: { source: other } })).status).toBe(403);
  expect((await post({ event_ids: [own, foreign] })).status).toBe(403);
  const dry = await post({ filter: { status: 'completed' }, dry_run: true });
  expect(dry.body.matched).toBe(3);
  const replay = await post({ filter: { status: 'completed' } });
  expect(replay.body.counts.matched).toBe(3);
  await untilFinished(limited, replay.body.id);
  const slowly = { rate_per_second: 1 };
  const elsewhere = await all.post<Shown>('/replays', { event_ids: foreigners, ...slowly });
  const everywhere = await all.post<Shown>('/replays', { filter: { status: 'completed' }, ...slowly });
  for (const { body } of [elsewhere, everywhere]) {
    expect((await limited.get(`/replays/${body.id}`)).status).toBe(403);
    expect((await limited.post(`/replays/${body.id}/cancel`)).status).toBe(403);
    expect((await all.post(`/replays/${body.id}/cancel`)).status).toBe(200);
  }
  const { body: list } = await limited.get<{ items: Shown[] }>('/replays');
  expect(list.items.map(({ id }) => id)).toEqual([replay.body.id]);
});

const BAD_ORDERS: readonly (readonly [string, object])[] = [
  ['neither ids nor a filter', {}],
  ['both', { event_ids: ['default:a:completed'], filter: { source: 'a' } }],
  ['an empty filter', { filter: {} }],
  ['no ids', { event_ids: [] }],
  ['what is no id', { event_ids: ['; drop table events'] }],
  ['too many ids', { event_ids: Array.from({ length: 1_001 }, () => 'd:a:failed') }],
  ['an unknown filter', { filter: { sauce: 'default' } }],
  ['a filter of another type', { filter: { late: 'true' } }],
  ['a time that is none', { filter: { from: 'yesterday' } }],
  ['no rate', { filter: { source: 'a' }, rate_per_second: 0 }],
  ['too high a rate', { filter: { source: 'a' }, rate_per_second: 1_001 }],
  ['half a copy a second', { filter: { source: 'a' }, rate_per_second: 0.5 }],
  ['a queue without a name', { filter: { source: 'a' }, queue: '' }],
  ['a queue of too many bytes', { filter: { source: 'a' }, queue: 'ü'.repeat(128) }],
  ['a queue of the broker’s own', { filter: { source: 'a' }, queue: 'amq.rabbitmq.reply-to' }],
  ['a queue with a control character', { filter: { source: 'a' }, queue: 'a\nb' }],
  ['a queue with a direction mark', { filter: { source: 'a' }, queue: 'a\u202eb' }],
  ['a queue with a space of no width', { filter: { source: 'a' }, queue: 'billing\u200b' }],
  ['a queue with a line separator', { filter: { source: 'a' }, queue: 'a\u2028b' }],
  ['an unknown wish', { filter: { source: 'a' }, priority: 9 }],
];

it('an invalid order is a 400 and starts nothing', async ({ running }) => {
  const { service } = running;
  const api = await operators(service, { role: 'operator' });
  const before = await everything(service);

  for (const [what, order] of BAD_ORDERS) {
    const { status, body } = await api.post<Fault>('/replays', order);
    expect({ what, status, error: body.error }).toEqual({ what, status: 400, error: 'invalid_request' });
  }

  expect(await everything(service)).toEqual(before);
});

test('an unknown event, an unknown replay and one replay too many each get their own error', async () => {
  await using service = await startTestService();
  await using connection = connectTestDatabase(service.database);
  const api = await operators(service, { role: 'operator' });
  const [id] = await seedEvents(service.database, 1);

  expect(await api.post<Fault>('/replays', { event_ids: [id, 'default:nobody:failed'] })).toMatchObject({
    status: 404,
    body: { error: 'not_found', message: 'there is no event default:nobody:failed' },
  });
  const unknown = randomUUID();
  expect((await api.get(`/replays/${unknown}`)).status).toBe(404);
  expect((await api.post(`/replays/${unknown}/pause`)).status).toBe(404);
  const queue = `nobody.${randomBytes(4).toString('hex')}`;
  for (let count = 0; count < 20; count++) {
    await newReplay(connection, { filter: { source: 'default' }, queue, ratePerSecond: 1 });
  }
  expect(await api.post<Fault>('/replays', { event_ids: [id] })).toMatchObject({
    status: 409,
    body: { error: 'too_many_replays' },
  });
});

it('live events go on while a replay runs as fast as it may', async ({ running }) => {
  const { service, bus } = running;
  const source = newSource();
  const api = await operators(service, { role: 'operator' });
  const queue = `test.queue.${randomBytes(6).toString('hex')}`;
  await bus.channel.assertQueue(queue, { exclusive: true });
  await seedEvents(service.database, 3_000, { source });
  const { body } = await api.post<Shown>('/replays', {
    filter: { source },
    queue,
    rate_per_second: 1_000,
  });

  let sent = 0;
  for (;;) {
    const job = newJobId();
    await deliver(service.webhooks, failed(job));
    sent += 1;
    await receivedOf(bus, isOf(`default:${job}`), 1);
    const { body: now } = await api.get<Shown>(`/replays/${body.id}`);
    if (now.state === 'finished') break;
  }

  expect(sent).toBeGreaterThan(20);
  const { messageCount } = await bus.channel.checkQueue(queue);
  expect(messageCount).toBe(3_000);
});
