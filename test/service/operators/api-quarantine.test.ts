import { randomUUID } from 'node:crypto';
import { Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import { expect, test } from 'vitest';
import type { Database } from '../../../src/ledger/tables.ts';
import { RELEASED_OF_A_JOB } from '../../../src/operators/decisions/quarantined.ts';
import { release } from '../../../src/operators/decisions/release.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { completed, deliver, newJobId, progress, type Reply } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

type Release = { delivery_id: string; result: string; event_id: string | null; reason: string | null };
type Page = { done: number; items: Release[]; next_cursor: string | null };

/**
 * A delivery that came when our schemas did not know it: kept aside with a body that is understood today. Returns its id.
 */
async function quarantine(
  { webhooks, database }: TestService,
  body: { job_id: string; status: string },
  { source = '' }: { source?: string } = {},
): Promise<string> {
  await deliver(webhooks, { ...body, job_id: body.job_id, status: 'not-known-yet' });
  const [row] = await database.query<{ id: string }>(
    `update deliveries set body = convert_to($2, 'UTF8'), status = $3, source = coalesce(nullif($4, ''), source)
     where job_id = $1 and status = 'not-known-yet' returning id`,
    [body.job_id, JSON.stringify(body), body.status, source],
  );
  return row?.id ?? '';
}

const deliveryOf = async ({ database }: TestService, id: string) =>
  (
    await database.query<Record<string, unknown>>(
      `select outcome, released_at is not null as released, body is not null as kept,
              event_sequence = (select sequence from events e where e.job_id = d.job_id and e.status = d.status) as linked
       from deliveries d where id = $1`,
      [id],
    )
  )[0];

test('a delivery that is understood by now is tallied and published as if it came now, and its row stays', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const job = newJobId();
  const id = await quarantine(service, completed(job, { extra: 1 }));

  const { body } = await api.post<Page>('/quarantine/release', { ids: [id] });

  expect(body).toEqual({
    done: 1,
    items: [{ delivery_id: id, result: 'accepted', event_id: `default:${job}:completed`, reason: null }],
    next_cursor: null,
  });
  const [message] = await bus.received(1);
  expect(message).toMatchObject({ id: `default:${job}:completed`, event: { data: { extra: 1 } } });
  expect(message?.properties['headers']).toEqual({});
  expect(await deliveryOf(service, id)).toEqual({
    outcome: 'quarantined',
    released: true,
    kept: true,
    linked: true,
  });
  expect(
    await service.database.query('select job_id, last_status, repeats from jobs join events using (job_id)'),
  ).toEqual([{ job_id: job, last_status: 'completed', repeats: 0 }]);
  const all = await operators(service);
  expect((await all.get(`/operator-log?subject=${id}`)).body).toMatchObject({
    items: [
      {
        actor: 'Ada',
        action: 'quarantine.release',
        source: 'default',
        detail: { result: 'accepted', event_id: `default:${job}:completed` },
      },
    ],
  });
});

test('the story says what came of a release', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const job = newJobId();
  const id = await quarantine(service, { job_id: job, status: 'exploded' });
  await orderOne(api, 'quarantine/release', id);

  expect((await api.get(`/jobs/default/${job}`)).body).toMatchObject({
    items: [
      { what: 'delivery' },
      { operator: { action: 'quarantine.release', actor: 'Ada', result: 'still_quarantined' } },
    ],
  });
});

test('what was told since by another delivery is a duplicate or a conflict, and published no second time', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator' });
  const [same, other] = [newJobId(), newJobId()];
  const ids = [await quarantine(service, completed(same)), await quarantine(service, completed(other))];
  await deliver(service.webhooks, completed(same));
  await deliver(service.webhooks, completed(other, { cost_cents: 1 }));

  const results = [];
  for (const id of ids) results.push((await orderOne(api, 'quarantine/release', id)).result);

  expect(results).toEqual(['duplicate', 'conflict']);
  expect(await service.database.query('select repeats from events order by sequence')).toEqual([
    { repeats: 1 },
    { repeats: 1 },
  ]);
});

test('what is still not understood stays as it is, with the reason', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator' });
  const job = newJobId();
  const id = await quarantine(service, { job_id: job, status: 'paused' });

  const { body } = await api.post<Page>('/quarantine/release', { ids: [id] });

  expect(body).toEqual({
    done: 0,
    items: [{ delivery_id: id, result: 'still_quarantined', event_id: null, reason: 'unknown status' }],
    next_cursor: null,
  });
  expect(await deliveryOf(service, id)).toMatchObject({ outcome: 'quarantined', released: false });
  expect(await service.database.query('select from jobs union all select from events')).toEqual([]);
});

test('of releases at once one wins, and the others are told that it was released', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator' });
  const id = await quarantine(service, completed(newJobId()));

  const answers = await Promise.all(Array.from({ length: 4 }, () => orderOne(api, 'quarantine/release', id)));

  const others = answers.filter(({ result }) => result !== 'accepted');
  const reason = 'it is not in quarantine any more: it was released';
  expect(others).toMatchObject(Array.from({ length: 3 }, () => ({ result: 'wrong_state', reason })));
  expect(await service.database.query('select repeats from events')).toEqual([{ repeats: 0 }]);
});

test('what is not in quarantine, not there, or not theirs is told as such', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator' });
  const limited = await operators(service, { role: 'operator', sources: ['team-a'] });
  await deliver(service.webhooks, completed(newJobId()));
  const [accepted] = await service.database.query<{ id: string }>('select id from deliveries');
  const id = await quarantine(service, completed(newJobId()));

  expect((await orderOne(api, 'quarantine/release', accepted?.id ?? '')).result).toBe('wrong_state');
  expect((await orderOne(api, 'quarantine/release', randomUUID())).result).toBe('not_found');
  expect((await orderOne(api, 'quarantine/release', '1')).status).toBe(400);
  expect((await orderOne(limited, 'quarantine/release', id)).result).toBe('not_found');
  expect((await limited.post('/quarantine/release', { filter: { source: 'default' } })).status).toBe(403);
  expect(await limited.post('/quarantine/release', { filter: {} })).toMatchObject({
    status: 200,
    body: { done: 0, items: [], next_cursor: null },
  });
  expect(await deliveryOf(service, id)).toMatchObject({ released: false });
});

/** Calls until all have had their turn. `perCall`: how many each of them released. */
async function releaseAll(api: Operators, order: object): Promise<{ items: Release[]; perCall: number[] }> {
  const items: Release[] = [];
  const perCall: number[] = [];
  let cursor: string | null = null;
  do {
    const { status, body }: { status: number; body: Page } = await api.post<Page>('/quarantine/release', {
      ...order,
      ...(cursor !== null && { cursor }),
    });
    expect(status).toBe(200);
    items.push(...body.items);
    perCall.push(body.items.length);
    cursor = body.next_cursor;
  } while (cursor !== null);
  return { items, perCall };
}

test('many are released in calls of a bounded size, a job’s in the order in which they came', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator' });
  const jobs = Array.from({ length: 6 }, newJobId);
  const stuck = await quarantine(service, { job_id: newJobId(), status: 'paused' });
  const ids: string[] = [];
  for (const percent of [10, 20]) {
    for (const job of jobs) ids.push(await quarantine(service, progress(job, percent)));
  }
  for (const job of jobs.toReversed()) ids.push(await quarantine(service, completed(job)));
  await quarantine(service, completed(newJobId()), { source: 'team-b' });

  const { items } = await releaseAll(api, { filter: { source: 'default' }, limit: 7 });

  expect(items.map(({ delivery_id: id }) => id)).toEqual([stuck, ...ids]);
  expect(items.map(({ result }) => result)).toEqual(['still_quarantined', ...ids.map(() => 'accepted')]);
  await bus.received(18);
  for (const job of jobs) {
    expect(bus.ids().filter((id) => id.includes(job))).toEqual([
      `default:${job}:processing:10`,
      `default:${job}:processing:20`,
      `default:${job}:completed`,
    ]);
  }
  expect(bus.messages.every(({ event }) => event['late'] === undefined)).toBe(true);
});

test('releases while the same jobs are delivered to end without a deadlock, each event once', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator' });
  const jobs = Array.from({ length: 40 }, newJobId);
  await Promise.all(jobs.map((job) => quarantine(service, progress(job, 10))));

  const [released, ...answers] = await Promise.all([
    api.post<Page>('/quarantine/release', { filter: {} }),
    ...jobs.toReversed().map((job) => deliver(service.webhooks, progress(job, 20))),
    ...jobs.map((job) => deliver(service.webhooks, progress(job, 10))),
  ]);

  expect(released).toMatchObject({ status: 200 });
  expect(released.body.items).toHaveLength(40);
  expect(answers.every(({ status }) => status === 202 || status === 200)).toBe(true);
  await bus.received(80);
  expect(new Set(bus.ids()).size).toBe(80);
});

test('many of one job are released in several calls and in their order, while more of it are delivered', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator' });
  const [job, other] = [newJobId(), newJobId()];
  const percents = Array.from({ length: 20 }, (_, index) => index);
  const ids: string[] = [];
  for (const percent of percents) ids.push(await quarantine(service, progress(job, percent)));
  ids.push(await quarantine(service, completed(other)));

  const [{ items, perCall }, ...answers] = await Promise.all([
    releaseAll(api, { filter: {} }),
    ...percents.map((percent) => deliver(service.webhooks, progress(job, 50 + percent))),
    ...percents.map((percent) => deliver(service.webhooks, progress(job, percent))),
  ]);

  expect(perCall).toEqual([RELEASED_OF_A_JOB, RELEASED_OF_A_JOB, 21 - 2 * RELEASED_OF_A_JOB]);
  expect(items.map(({ delivery_id: id }) => id)).toEqual(ids);
  expect(answers.filter(({ status }) => status >= 300)).toEqual([]);
  expect(
    await service.database.query(
      `select count(*)::int from deliveries where outcome = 'quarantined' and released_at is null
       union all select count(*)::int from events`,
    ),
  ).toEqual([{ count: 0 }, { count: 41 }]);
});

/** A connection of a test's own, which tells what it was asked and what came back. */
function watchedConnection({ database }: TestService) {
  const statements: string[] = [];
  const seen = { bodyBytes: 0 };
  const pool = new Pool({ connectionString: database.url, max: 1 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => {
      statements.push(query.sql);
    },
    plugins: [
      {
        transformQuery: ({ node }) => node,
        transformResult: ({ result }) => {
          for (const { body } of result.rows) if (Buffer.isBuffer(body)) seen.bodyBytes += body.length;
          return Promise.resolve(result);
        },
      },
    ],
  });
  return { db, statements, seen, [Symbol.asyncDispose]: () => db.destroy() };
}

const ALL = { which: { filter: {} }, sources: null, after: undefined, limit: 100, by: 'a test' };

test('deliveries whose bodies are too much for one call are neither read nor locked by it', async () => {
  await using service = await startTestService();
  await using watched = watchedConnection(service);
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) ids.push(await quarantine(service, completed(newJobId())));
  await service.database.query(
    `update deliveries set
       body = convert_to(rtrim(convert_from(body, 'UTF8'), '}') || ',"extra":"' || repeat('x', $1) || '"}', 'UTF8'),
       body_bytes = $1`,
    [5 * 1024 * 1024],
  );

  const { released, free } = await watched.db.transaction().execute(async (trx) => ({
    released: await release(trx, ALL),
    free: await service.database.query<{ id: string }>(
      'select id from deliveries order by received_at, id for update skip locked',
    ),
  }));

  expect(released.releases).toMatchObject([{ delivery_id: ids[0], result: 'accepted' }]);
  expect(released.next?.[1]).toBe(ids[0]);
  expect(free.map(({ id }) => id)).toEqual(ids.slice(1));
  expect(watched.seen.bodyBytes).toBeLessThan(8 * 1024 * 1024);
});

test('a release locks jobs for so many statements and no more, and none before bodies are understood', async () => {
  await using service = await startTestService();
  await using watched = watchedConnection(service);
  const api = await operators(service, { role: 'operator' });
  const job = newJobId();
  for (let percent = 0; percent < 12; percent++) await quarantine(service, progress(job, percent));
  await service.database.query(
    `create table appended (at timestamptz);
     create function note() returns trigger language plpgsql as
       $$ begin insert into appended values (clock_timestamp()); return null; end $$;
     create trigger noted after insert on operator_log for each statement execute function note()`,
  );

  await expect(
    watched.db.transaction().execute(async (trx) => {
      await release(trx, ALL);
      throw new Error('enough was seen');
    }),
  ).rejects.toThrow('enough was seen');
  const { body } = await api.post<Page>('/quarantine/release', { filter: {} });

  const waves = watched.statements.filter((text) => text.includes('insert into jobs'));
  expect(waves).toHaveLength(RELEASED_OF_A_JOB);
  // Nothing between them, and only the rollback after them.
  expect(watched.statements.slice(-RELEASED_OF_A_JOB - 1, -1)).toEqual(waves);
  expect(body.items).toHaveLength(RELEASED_OF_A_JOB);
  expect(await service.database.query('select from appended')).toHaveLength(1);
});

test('a replica that freezes in a release loses its jobs before the intake gives up on them', async () => {
  await using service = await startTestService();
  await using watched = watchedConnection(service);
  const job = newJobId();
  const id = await quarantine(service, progress(job, 10));
  let answer: Reply | undefined;

  const frozen = watched.db.transaction().execute(async (trx) => {
    await release(trx, ALL);
    answer = await deliver(service.webhooks, completed(job));
  });

  await expect(frozen).rejects.toThrow(/connection|terminat/i);
  expect(answer).toMatchObject({ status: 202 });
  expect(await deliveryOf(service, id)).toMatchObject({ released: false });
});

test('a released event can be replayed, and found by what its delivery came with', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator' });
  const job = newJobId();
  const id = await quarantine(service, completed(job));
  await deliver(service.webhooks, completed(newJobId()));
  await service.database.query(`update deliveries set remote_address = '10.9.9.9' where id = $1`, [id]);
  await orderOne(api, 'quarantine/release', id);
  await bus.received(2);
  await waitFor(async () => expect(await service.database.query(`select from ${OUTBOX}`)).toEqual([]));

  const { status } = await api.post('/replays', { filter: { remote_address: '10.9.9.9' } });

  expect(status).toBe(202);
  const messages = await bus.received(3);
  expect(messages[2]?.id).toBe(`default:${job}:completed`);
  expect(messages[2]?.text).toBe(messages.find(({ id: known }) => known.includes(job))?.text);
});
