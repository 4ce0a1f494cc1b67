import { describe, expect, test } from 'vitest';
import { listen, newExchange } from '../../support/bus.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { operators, type Operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { replayToNobody } from '../../support/replays.ts';
import { completed, deliver, failed, newJobId, progress } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

type Step = Record<string, unknown> & { at: string; what: string; after_ms: number | null };
type Story = { job: Record<string, unknown> | null; items: Step[]; next_cursor: string | null };

const storyOf = async (api: Operators, job: string, query = '') =>
  (await api.get<Story>(`/jobs/default/${encodeURIComponent(job)}${query}`)).body;

async function readPages(api: Operators, job: string, limit: number): Promise<Step[]> {
  const steps: Step[] = [];
  let cursor: string | null = null;
  do {
    const next: string = cursor === null ? '' : `&cursor=${cursor}`;
    const page: Story = await storyOf(api, job, `?limit=${limit}${next}`);
    expect(page.items.length).toBeLessThanOrEqual(limit);
    steps.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return steps;
}

const withoutTimes = ({ at: _at, after_ms: _after, ...step }: Step) => step;

/** What happened, in few words. */
function told(step: Step): string {
  const { delivery, event, publication, entry, operator, replay } = step as unknown as Record<
    string,
    Record<string, unknown> | undefined
  >;
  if (delivery) return `delivery ${String(delivery['outcome'])}`;
  if (event) return `event ${String(event['kind'])}`;
  if (publication) return `publication ${String(publication['result'])} ${String(publication['attempt'])}`;
  if (entry) return `waiting ${String(entry['state'])}`;
  if (replay) return `replay ${String(replay['state'])}`;
  return `operator ${String(operator?.['action'])}`;
}

test('one job is followed from its first progress to its replay', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: ['job.progress.#'] });
  await using service = await startTestService({ exchange });
  const api = await operators(service, { name: 'Ada' });
  const job = newJobId();
  const finished = completed(job);
  const published = (result: string, count: number) =>
    expect
      .poll(async () => (await storyOf(api, job)).items.filter((step) => told(step).includes(result)).length)
      .toBe(count);

  await deliver(service.webhooks, progress(job, 40));
  await published('publication confirmed', 1);
  await deliver(service.webhooks, progress(job, 40)); // a redelivery
  await deliver(service.webhooks, progress(job, 40, { estimated_completion: '2027-01-01T00:00:00Z' }));
  await deliver(service.webhooks, { job_id: job, status: 'exploded' });
  await deliver(service.webhooks, finished);
  // Nobody is bound for the end of a job: it comes back, waits, and is sent again when somebody is.
  await published('publication returned', 1);
  await bus.channel.bindQueue(bus.queue, exchange, 'job.completed.#');
  const id = `default:${job}:completed`;
  expect((await orderOne(api, 'outbox/retry', id)).result).toBe('retried');
  await bus.received(2);
  await published('publication confirmed', 2);
  const { status, text } = await api.post('/replays', { event_ids: [id], note: 'a test' });
  expect([status, text]).toEqual([202, text]);
  await bus.received(3);
  await published('publication confirmed', 3);
  await published('replay finished', 1);
  const story = await storyOf(api, job);

  expect(story.items.map(told)).toEqual([
    'delivery accepted',
    'event progress',
    'publication confirmed 1',
    'delivery duplicate',
    'delivery conflict',
    'delivery quarantined',
    'delivery accepted',
    'event completed',
    'publication returned 1',
    'operator outbox.retry',
    'publication confirmed 1',
    'replay finished',
    'publication confirmed 1',
  ]);
  expect(story.job).toMatchObject({
    source: 'default',
    job_id: job,
    state: 'completed',
    highest_progress: 40,
  });
  const times = story.items.map(({ at }) => at);
  expect(times).toEqual(times.toSorted());
  expect(story.items[0]?.after_ms).toBeNull();
  expect(
    story.items.slice(1).every(({ after_ms }) => Number.isInteger(after_ms) && Number(after_ms) >= 0),
  ).toBe(true);
  const { duration_ms, first_seen_at, terminal_at } = story.job ?? {};
  const betweenMs = Date.parse(String(terminal_at)) - Date.parse(String(first_seen_at));
  expect(Math.abs(Number(duration_ms) - betweenMs)).toBeLessThanOrEqual(1); // of microseconds
  const replays = story.items.map(
    ({ publication }) => (publication as Record<string, unknown> | undefined)?.['replay_id'],
  );
  expect(replays.filter(Boolean)).toHaveLength(1);
  const { replay } = story.items.at(-2) as unknown as { replay: Record<string, unknown> };
  expect(replay).toMatchObject({
    id: replays.at(-1),
    created_by: 'Ada',
    note: 'a test',
    queue: null,
  });
  const tookMs = Date.parse(String(replay['finished_at'])) - Date.parse(String(replay['created_at']));
  expect(Math.abs(Number(replay['duration_ms']) - tookMs)).toBeLessThanOrEqual(1);
  expect(story.items.at(-2)?.at).toBe(replay['created_at']);
  expect(story.items.at(-1)).toMatchObject({
    publication: { event_id: id, replay_id: replays.at(-1), queue: null },
  });
});

test('an event that was put back with all others of its state is told of in the story, with who did it', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: ['job.progress.#'] });
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const job = newJobId();
  await deliver(service.webhooks, completed(job));
  const steps = async () => (await storyOf(api, job)).items;
  await expect.poll(async () => (await steps()).map(told)).toContain('waiting returned');
  await bus.channel.bindQueue(bus.queue, exchange, 'job.completed.#');

  expect((await api.post('/outbox/retry', { filter: { state: 'returned' } })).body).toMatchObject({
    done: 1,
  });
  await expect.poll(async () => (await steps()).map(told)).toContain('publication confirmed 1');

  expect((await steps()).filter(({ what }) => what === 'operator')).toMatchObject([
    { operator: { action: 'outbox.retry', actor: 'Ada', subject: `default:${job}:completed` } },
  ]);
});

test('each replay that had to do with a job is in its story, page by page, and no other', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const { database } = service;
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const [job, other] = [newJobId(), newJobId()];
  for (const id of [job, other]) await deliver(service.webhooks, completed(id));
  await bus.received(2);
  await expect.poll(() => database.query(`select from ${OUTBOX}`)).toEqual([]);
  const untilIs = (id: string, state: string) =>
    expect.poll(async () => (await api.get<{ state: string }>(`/replays/${id}`)).body.state).toBe(state);
  const replayed = async (of: string) => {
    const order = { event_ids: [`default:${of}:completed`] };
    const { body } = await api.post<{ id: string }>('/replays', order);
    await untilIs(body.id, 'finished');
    return body.id;
  };
  await replayed(other);
  const made = [await replayed(job), await replayed(job)];
  const lost = await replayToNobody(database, { ids: [`default:${job}:completed`], createdBy: 'Ada' });
  await untilIs(lost.id, 'paused');
  made.push(lost.id);
  await database.query('update deliveries set body = null where job_id = $1', [job]);
  made.push(await replayed(job));
  // Two at the same time: their ids tell them apart.
  await database.query(
    `update replays set created_at = (select created_at from replays where id = $1) where id = $2`,
    made.slice(0, 2),
  );

  const whole = await storyOf(api, job);

  const replays = whole.items.flatMap((step) =>
    step.what === 'replay' ? [step['replay'] as Record<string, unknown>] : [],
  );
  expect(replays.map(({ id }) => id)).toEqual(made);
  expect(replays.map(({ created_by }) => created_by)).toEqual(['Ada', 'Ada', 'Ada', 'Ada']);
  expect(replays[2]).toMatchObject({
    state: 'paused',
    queue: 'nobody',
    finished_at: null,
    duration_ms: null,
  });
  expect(replays[3]).toMatchObject({ state: 'finished', duration_ms: expect.any(Number) as unknown });
  const skipAt = whole.items.findIndex(({ what }) => what === 'replay_skip');
  expect(whole.items[skipAt - 1]).toMatchObject({ what: 'replay', replay: { id: made[3] } });
  for (const limit of [1, 2, 3]) {
    expect((await readPages(api, job, limit)).map(withoutTimes)).toEqual(whole.items.map(withoutTimes));
  }
});

test('a story is told in pages of any size, without a gap or a repeat', async () => {
  await using database = await createTestDatabase();
  await holdOutbox(database);
  await using service = await startTestService({ database });
  const api = await operators(service, { role: 'viewer' });
  const job = newJobId();
  for (let percent = 0; percent < 6; percent += 1) {
    await deliver(service.webhooks, progress(job, percent));
    await deliver(service.webhooks, progress(job, percent));
  }
  // Times that fall together, as in a batch; and what waits is told in the end.
  await service.database.query(
    `update outbox_batches set recorded_at = (select min(recorded_at) from events)`,
  );
  await service.database.query(`update events set recorded_at = (select min(recorded_at) from events)`);
  await service.database.query(`update deliveries set received_at = (select min(recorded_at) from events)`);
  const whole = await storyOf(api, job);
  expect(whole.items.map(({ what }) => what)).toEqual([
    ...Array.from({ length: 12 }, () => 'delivery'),
    ...Array.from({ length: 6 }, () => 'event'),
    ...Array.from({ length: 6 }, () => 'waiting'),
  ]);

  for (const limit of [1, 5, 24]) {
    const steps = await readPages(api, job, limit);
    expect(steps.map(withoutTimes)).toEqual(whole.items.map(withoutTimes));
  }
});

test('a job of which nothing but a quarantined delivery is known has a story, and an unknown one has none', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'viewer' });
  const job = newJobId();
  await deliver(service.webhooks, { job_id: job, status: 'exploded' });

  const story = await storyOf(api, job);

  expect(story.job).toBeNull();
  expect(story.items.map(told)).toEqual(['delivery quarantined']);
  const answer = await api.get('/jobs/default/nobody');
  expect([answer.status, answer.body['error']]).toEqual([404, 'not_found']);
  const [first] = story.items;
  const forged = await api.get(
    `/jobs/default/${job}?cursor=${Buffer.from(JSON.stringify(['x', first?.at, '0', 'x'])).toString('base64url')}`,
  );
  expect(forged.body['error']).toBe('invalid_cursor');
});

test('a job’s story is the same by parameters, which take an id that no address can hold', async () => {
  await using service = await startTestService();
  const api = await operators(service);
  const limited = await operators(service, { sources: ['team-a'] });
  const job = newJobId();
  await deliver(service.webhooks, progress(job, 40));
  await deliver(service.webhooks, completed(job));
  for (const id of ['.', '..']) await deliver(service.webhooks, completed(id));

  type Steps = { job: { job_id: string } | null; next_cursor: string | null };
  const byParameters = (id: string, query = '') =>
    api.get<Steps>(`/story?source=default&job_id=${encodeURIComponent(id)}${query}`);

  await expect
    .poll(() => service.database.query(`select from ${OUTBOX} where state = 'pending'`))
    .toEqual([]);
  const { body: first } = await byParameters(job, '&limit=2');
  expect(first).toEqual(await storyOf(api, job, '?limit=2'));
  expect((await api.get(`/jobs/default/${job}?limit=2&cursor=${first.next_cursor}`)).status).toBe(200);
  for (const id of ['.', '..']) {
    expect(await byParameters(id)).toMatchObject({ status: 200, body: { job: { job_id: id } } });
  }
  expect((await byParameters('nothing')).status).toBe(404);
  expect(await api.get('/story?source=default')).toMatchObject({
    status: 400,
    body: { message: 'job_id: must be given' },
  });
  expect((await limited.get('/story?source=default&job_id=.')).status).toBe(403);
});

const failureIn = ({ items }: Story) =>
  items.find(({ what }) => what === 'event')?.['event'] as Record<string, unknown>;
const looksAtBodies = (database: TestDatabase) =>
  database.query(`select actor, subject, source, detail from operator_log where action = 'body.read'`);

describe('the error message of a failed job', () => {
  test('is in the story for roles that may read bodies, and each story that has it is in the operator log once', async () => {
    await using service = await startTestService();
    const { database } = service;
    const auditor = await operators(service, { role: 'auditor', name: 'Ada' });
    const job = newJobId();
    await deliver(service.webhooks, failed(job, { error_message: 'the input file cannot be read' }));
    await deliver(service.webhooks, failed(job, { error_message: 'the input file cannot be read' }));
    await expect.poll(() => database.query(`select from ${OUTBOX} where state = 'pending'`)).toEqual([]);

    const story = await storyOf(auditor, job);

    expect(failureIn(story)).toMatchObject({
      kind: 'failed',
      error_code: 'INVALID_INPUT',
      error_message: 'the input file cannot be read',
    });
    const { delivery_id: id } = failureIn(story);
    const line = { actor: 'Ada', subject: id, source: 'default', detail: '{"field":"error_message"}' };
    expect(await looksAtBodies(database)).toEqual([line]);
    // Nor does a look make the story longer, or a page without the failure a line.
    expect((await storyOf(auditor, job)).items.map(({ what }) => what)).toEqual(
      story.items.map(({ what }) => what),
    );
    expect(await looksAtBodies(database)).toEqual([line, line]);
    await storyOf(auditor, job, '?limit=1');
    expect(await looksAtBodies(database)).toHaveLength(2);
    expect(
      (await auditor.get<Story>(`/story?source=default&job_id=${job}`)).body.items.map(
        (item) => item['event'],
      ),
    ).toContainEqual(expect.objectContaining({ error_message: 'the input file cannot be read' }));
  });

  test('is not for a viewer, who is not in the operator log', async () => {
    await using service = await startTestService();
    const viewer = await operators(service, { role: 'viewer' });
    const job = newJobId();
    await deliver(service.webhooks, failed(job, { error_message: 'planted' }));

    const { text } = await viewer.get(`/jobs/default/${job}`);

    expect(text).toContain('INVALID_INPUT');
    expect(text).not.toContain('planted');
    expect(text).not.toContain('error_message');
    expect(await looksAtBodies(service.database)).toEqual([]);
  });

  test('is of bounded length and shows nothing that would steer a terminal; without a body there is none', async () => {
    await using service = await startTestService();
    const auditor = await operators(service, { role: 'auditor' });
    const [long, odd] = [newJobId(), newJobId()];
    await deliver(service.webhooks, failed(long, { error_message: '🎬'.repeat(5_000) }));
    await deliver(service.webhooks, failed(odd, { error_message: 'a\u001b[2J\n\n b\u202e\0' }));
    const messageOf = async (job: string) => failureIn(await storyOf(auditor, job))['error_message'];

    expect(await messageOf(long)).toBe(`${'🎬'.repeat(999)}…`);
    expect(await messageOf(odd)).toBe('a�[2J b��');
    await service.database.query('update deliveries set body = null where job_id = $1', [odd]);
    expect(failureIn(await storyOf(auditor, odd))).not.toHaveProperty('error_message');
    expect(await looksAtBodies(service.database)).toHaveLength(2);
  });
});
