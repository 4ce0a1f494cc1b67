// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { randomUUID } from 'node:crypto';
import { Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import { expect, test } from 'vitest';
import type { Database } from '../../../src/ledger/schema/tables.ts';
import { RELEASED_OF_A_JOB } from '../../../src/operators/quarantine/picked.queries.ts';
import { release } from '../../../src/operators/quarantine/release.queries.ts';
import { type BusMessage, receivedOf } from '../../support/bus.ts';
import { untilNonePending } from '../../support/facts.ts';
import { testWithBus as it } from '../../support/fixtures.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { completed, deliver, newJobId, newSource, progress, type Reply } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

type Release = { delivery_id: string; result: string; event_id: string | null; reason: string | null };
type Page = { done: number; items: Release[]; next_cursor: string | null };

// One service for all, and its subscriber. Each test has its jobs or its source.

/** A message of one of these jobs. */
const isOf =
  (...jobs: string[]) =>
  ({ event }: BusMessage) =>
    jobs.includes(String(event['subject']));

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

it('a delivery that is understood by now is tallied and published as if it came now, and its row stays', async ({
  running: { service, bus },
}) => {
  const api = await operators(service, { role: 'operator', name: 'Ada' });
  const job = newJobId();
  const id = await quarantine(service, completed(job, { extra: 1 }));

  const { body } = await api.post<Page>('/quarantine/release', { ids: [id] });

  expect(body).toEqual({
    done: 1,
    items: [{ delivery_id: id, result: 'accepted', event_id: `default:${job}:completed`, reason: null }],
    next_cursor: null,
  });
  const [message] = await receivedOf(bus, isOf(job), 1);
  expect(message).toMatchObject({ id: `default:${job}:completed`, event: { data: { extra: 1 } } });
  expect(message?.properties['headers']).toEqual({});
  expect(await deliveryOf(service, id)).toEqual({
    outcome: 'quarantined',
    released: true,
    kept: true,
    linked: true,
  });
  expect(
    await service.database.query(
      'select job_id, last_status, repeats from jobs join events using (job_id) where job_id = $1',
      [job],
    ),
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

it('the story says what came of a release', async ({ running: { service } }) => {
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

it('what was told since by another delivery is a duplicate or a conflict, and published no second time', async ({
  running: { service },
}) => {
  const api = await operators(service, { role: 'operator' });
  const [same, other] = [newJobId(), newJobId()];
  const ids = [await quarantine(service, completed(same)), await quarantine(service, completed(other))];
  await deliver(service.webhooks, completed(same));
  await deliver(service.webhooks, completed(other, { cost_cents: 1 }));

  const results = [];
  for (const id of ids) results.push((await orderOne(api, 'quarantine/release', id)).result);

  expect(results).toEqual(['duplicate', 'conflict']);
  expect(
    await service.database.query('select repeats from events where job_id in ($1, $2)', [same, other]),
  ).toEqual([{ repeats: 1 }, { repeats: 1 }]);
});

it('what is still not understood stays as it is, with the reason', async ({ running: { service } }) => {
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
  expect(
    await service.database.query(
      'select from jobs where job_id = $1 union all select from events where job_id = $1',
      [job],
    ),
  ).toEqual([]);
});

it('of releases at once one wins, and the others are told that it was released', async ({
  running: { service },
}) => {
  const api = await operators(service, { role: 'operator' });
  const job = newJobId();
  const id = await quarantine(service, completed(job));

  const answers = await Promise.all(Array.from({ length: 4 }, () => orderOne(api, 'quarantine/release', id)));

  const others = answers.filter(({ result }) => result !== 'accepted');
  const reason = 'it is not in quarantine any more: it was released';
  expect(others).toMatchObject(Array.from({ length: 3 }, () => ({ result: 'wrong_state', reason })));
  expect(await service.database.query('select repeats from events where job_id = $1', [job])).toEqual([
    { repeats: 0 },
  ]);
});

it('what is not in quarantine, not there, or not theirs is told as such', async ({
  running: { service },
}) => {
  const api = await operators(service, { role: 'operator' });
  const limited = await operators(service, { role: 'operator', sources: [newSource()] });
  const job = newJobId();
  await deliver(service.webhooks, completed(job));
  const [accepted] = await service.database.query<{ id: string }>(
    'select id from deliveries where job_id = $1',
    [job],
  );
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

it('many are released in calls of a bounded size, a job’s in the order in which they came', async ({
  running: { service, bus },
}) => {
  const [source, other] = [newSource(), newSource()];
  const api = await operators(service, { role: 'operator' });
  const jobs = Array.from({ length: 6 }, newJobId);
  const stuck = await quarantine(service, { job_id: newJobId(), status: 'paused' }, { source });
  const ids: string[] = [];
  for (const percent of [10, 20]) {
    for (const job of jobs) ids.push(await quarantine(service, progress(job, percent), { source }));
  }
  for (const job of jobs.toReversed()) ids.push(await quarantine(service, completed(job), { source }));
  await quarantine(service, completed(newJobId()), { source: other });

  const { items } = await releaseAll(api, { filter: { source }, limit: 7 });

  expect(items.map(({ delivery_id: id }) => id)).toEqual([stuck, ...ids]);
  expect(items.map(({ result }) => result)).toEqual(['still_quarantined', ...ids.map(() => 'accepted')]);
  const messages = await receivedOf(bus, isOf(...jobs), 18);
  for (const job of jobs) {
    expect(messages.map(({ id }) => id).filter((id) => id.includes(job))).toEqual([
      `${source}:${job}:processing:10`,
      `${source}:${job}:processing:20`,
      `${source}:${job}:completed`,
    ]);
  }
  expect(messages.every(({ event }) => event['late'] === undefined)).toBe(true);
});

it('releases while the same jobs are delivered to end without a deadlock, each event once', async ({
  running: { service, bus },
}) => {
  const api = await operators(service, { role: 'operator' });
  const prefix = newJobId();
  const jobs = Array.from({ length: 40 }, (_, index) => `${prefix}_${index}`);
  await Promise.all(jobs.map((job) => quarantine(service, progress(job, 10))));

  const [released, ...answers] = await Promise.all([
    api.post<Page>('/quarantine/release', { filter: { job_id_prefix: prefix } }),
    ...jobs.toReversed().map((job) => deliver(service.webhooks, progress(job, 20))),
    ...jobs.map((job) => deliver(service.webhooks, progress(job, 10))),
  ]);

  expect(released).toMatchObject({ status: 200 });
  expect(released.body.items).toHaveLength(40);
  expect(answers.every(({ status }) => status === 202 || status === 200)).toBe(true);
  const messages = await receivedOf(bus, isOf(...jobs), 80);
  expect(new Set(messages.map(({ id }) => id)).size).toBe(80);
});

it('many of one job are released in several calls and in their order, while more of it are delivered', async ({
  running: { service },
}) => {
  const api = await operators(service, { role: 'operator' });
  const job = newJobId();
  const other = `${job}_other`;
  const percents = Array.from({ length: 20 }, (_, index) => index);
  const ids: string[] = [];
  for (const percent of percents) ids.push(await quarantine(service, progress(job, percent)));
  ids.push(await quarantine(service, completed(other)));

  const [{ items, perCall }, ...answers] = await Promise.all([
    releaseAll(api, { filter: { job_id_prefix: job } }),
    ...percents.map((percent) => deliver(service.webhooks, progress(job, 50 + percent))),
    ...percents.map((percent) => deliver(service.webhooks, progress(job, percent))),
  ]);

  expect(perCall).toEqual([RELEASED_OF_A_JOB, RELEASED_OF_A_JOB, 21 - 2 * RELEASED_OF_A_JOB]);
  expect(items.map(({ delivery_id: id }) => id)).toEqual(ids);
  expect(answers.filter(({ status }) => status >= 300)).toEqual([]);
  expect(
    await service.database.query(
      `select count(*)::int from deliveries
         where job_id in ($1, $2) and outcome = 'quarantined' and released_at is null
       union all select count(*)::int from events where job_id in ($1, $2)`,
      [job, other],
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

it('deliveries whose bodies are too much for one call are neither read nor locked by it', async ({
  running: { service },
}) => {
  const source = newSource();
  await using watched = watchedConnection(service);
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    ids.push(await quarantine(service, completed(newJobId()), { source }));
  }
  await service.database.query(
    `update deliveries set
       body = convert_to(rtrim(convert_from(body, 'UTF8'), '}') || ',"extra":"' || repeat('x', $1) || '"}', 'UTF8'),
       body_bytes = $1
     where source = $2`,
    [5 * 1024 * 1024, source],
  );

  const { released, free } = await watched.db.transaction().execute(async (trx) => ({
    released: await release(trx, { ...ALL, sources: [source] }),
    free: await service.database.query<{ id: string }>(
      'select id from deliveries where source = $1 order by received_at, id for update skip locked',
      [source],
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

it('a replica that freezes in a release loses its jobs before the intake gives up on them', async ({
  running: { service },
}) => {
  await using watched = watchedConnection(service);
  const job = newJobId();
  const id = await quarantine(service, progress(job, 10));
  let answer: Reply | undefined;

  const frozen = watched.db.transaction().execute(async (trx) => {
    await release(trx, { ...ALL, which: { ids: [id] } });
    answer = await deliver(service.webhooks, completed(job));
  });

  await expect(frozen).rejects.toThrow(/connection|terminat/i);
  expect(answer).toMatchObject({ status: 202 });
  expect(await deliveryOf(service, id)).toMatchObject({ released: false });
});

it('a released event can be replayed, and found by what its delivery came with', async ({
  running: { service, bus },
}) => {
  const api = await operators(service, { role: 'operator' });
  const [job, other] = [newJobId(), newJobId()];
  const id = await quarantine(service, completed(job));
  await deliver(service.webhooks, completed(other));
  await service.database.query(`update deliveries set remote_address = '10.9.9.9' where id = $1`, [id]);
  await orderOne(api, 'quarantine/release', id);
  await receivedOf(bus, isOf(job, other), 2);
  await untilNonePending(service.database);

  const { status } = await api.post('/replays', { filter: { remote_address: '10.9.9.9' } });

  expect(status).toBe(202);
  const messages = await receivedOf(bus, isOf(job, other), 3);
  expect(messages[2]?.id).toBe(`default:${job}:completed`);
  expect(messages[2]?.text).toBe(messages.find(({ id: known }) => known.includes(job))?.text);
});
