// An operator's slow query is his own trouble: deliveries are answered and relayed as before, he gets a clear 503, and
// Postgres itself gives the statement up.

import { describe, expect, test } from 'vitest';
import { sql } from 'kysely';
import { connectDatabase } from '../../../src/ledger/sessions/database.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { createTestDatabase } from '../../support/database.ts';
import { operators } from '../../support/operators.ts';
import { ANSWER_DEADLINE_MS, promisedMs } from '../../support/patience.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { createTestLog, startTestService, type TestService } from '../../support/service.ts';
import { openTransaction } from '../../support/transaction.ts';

const CONNECTIONS = 2;
const TIMEOUT_MS = 1_500;

const env = {
  OPERATOR_DB_CONNECTIONS: String(CONNECTIONS),
  OPERATOR_QUERY_TIMEOUT_MS: String(TIMEOUT_MS),
  ANSWER_DEADLINE_MS,
};

/** What the operators' connections are doing right now. */
function running(relay: TestService) {
  return relay.database.query<{ wait: string | null }>(
    `select wait_event_type as wait from pg_stat_activity
     where application_name = 'tallyhook operators' and state = 'active' and datname = current_database()`,
  );
}

async function deliverSome(relay: TestService, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let sent = 0; sent < count; sent++) {
    const { status, ms } = await deliver(relay.webhooks, completed(newJobId()));
    expect(status).toBe(202);
    times.push(ms);
  }
  return times.toSorted((a, b) => a - b);
}

const deliverAtOnce = (relay: TestService, count: number): Promise<number[][]> =>
  Promise.all(Array.from({ length: count }, () => deliverSome(relay, 1)));

/** From now on every look at the operator log takes a minute, as a list without an index on a huge table would. */
async function makeSlow(relay: TestService): Promise<void> {
  await relay.database.query('alter table operator_log rename to operator_log_itself');
  await relay.database.query(
    // A condition on no row: it is looked at before all rows, whatever the plan.
    `create view operator_log as select log.* from operator_log_itself log where (select pg_sleep(60)) is not null`,
  );
}

describe('an operator’s slow query', () => {
  test('is stopped by Postgres in time and answered with 503', async () => {
    await using relay = await startTestService({ env });
    const admin = await operators(relay);
    await makeSlow(relay);

    const startedMs = performance.now();
    const answer = await admin.get('/operator-log');
    const tookMs = performance.now() - startedMs;

    expect(answer).toMatchObject({
      status: 503,
      body: { error: 'query_timeout', message: expect.stringContaining('narrow the filter') },
    });
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(answer.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/);
    expect(tookMs).toBeGreaterThanOrEqual(TIMEOUT_MS * 0.9);
    expect(tookMs).toBeLessThan(promisedMs(TIMEOUT_MS + 3_000));
    await expect.poll(() => running(relay)).toEqual([]);
  });

  test('slows no delivery, even if it takes all connections of operators', async () => {
    await using relay = await startTestService({ env: { ...env, OPERATOR_QUERY_TIMEOUT_MS: '10000' } });
    const admin = await operators(relay);
    await deliverSome(relay, 5); // what is done once, at the first delivery, is no part of this
    const before = await deliverSome(relay, 30);
    await makeSlow(relay);
    const asking = Promise.all(Array.from({ length: CONNECTIONS * 3 }, () => admin.get('/operator-log')));
    await expect.poll(async () => (await running(relay)).length).toBe(CONNECTIONS);

    const during = await deliverSome(relay, 30);

    // They are still at it: nothing of the measurement was without them.
    expect(await running(relay)).toHaveLength(CONNECTIONS);
    const [usual, now] = [before, during].map((times) => times[Math.floor(times.length / 2)] ?? 0);
    expect(now).toBeLessThan((usual ?? 0) * 5 + 100);
    // A token is still looked up and the relay still empties the outbox, too.
    expect(await admin.get('/openapi.json')).toMatchObject({ status: 200 });
    await expect
      .poll(() => relay.database.query(`select 1 from ${OUTBOX} where state = 'pending'`))
      .toEqual([]);
    // Those that found no connection were told so, long before the others.
    const codes = (await asking).map(({ status, body }) => `${status} ${String(body['error'])}`);
    expect(codes.toSorted()).toEqual([
      ...Array<string>(CONNECTIONS).fill('503 query_timeout'),
      ...Array<string>(CONNECTIONS * 2).fill('503 unavailable'),
    ]);
  });

  test('may take all the processor time it can get, and deliveries are answered all the same', async () => {
    await using relay = await startTestService({ env: { ...env, OPERATOR_QUERY_TIMEOUT_MS: '10000' } });
    const admin = await operators(relay);
    await relay.database.query('alter table operator_log rename to operator_log_itself');
    await relay.database.query(
      `create view operator_log as select log.* from (
         select max(md5(n::text)) as most from (select generate_series(1, 10000000000) as n) as numbers
       ) as work left join operator_log_itself log on true where work.most is not null
       offset 0`, // or the planner would begin with the log, which has no rows
    );
    const asking = Promise.all(Array.from({ length: CONNECTIONS }, () => admin.get('/operator-log')));
    const busy = Array.from({ length: CONNECTIONS }, () => ({ wait: null }));
    await expect.poll(() => running(relay)).toEqual(busy);

    // Each is a 202, and the slowest is in time. Some come at once, some one after another.
    const times = [await deliverSome(relay, 10), ...(await deliverAtOnce(relay, 40))].flat();

    expect(Math.max(...times)).toBeLessThan(Number(ANSWER_DEADLINE_MS));
    expect(await running(relay)).toEqual(busy);
    const codes = (await asking).map(({ status, body }) => `${status} ${String(body['error'])}`);
    expect(codes).toEqual(Array<string>(CONNECTIONS).fill('503 query_timeout'));
  });

  test('that waits for a lock gives up before it piles up', async () => {
    await using relay = await startTestService({ env });
    const admin = await operators(relay);
    await using holder = await openTransaction(relay.database);
    await holder.query('lock table operator_log in access exclusive mode');

    const answers = await Promise.all(Array.from({ length: CONNECTIONS }, () => admin.get('/operator-log')));

    for (const answer of answers)
      expect(answer).toMatchObject({ status: 503, body: { error: 'query_timeout' } });
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
    await holder.rollback();
    expect(await admin.get('/operator-log')).toMatchObject({ status: 200 });
  });

  test('runs on one processor of the database, and as Postgres plans it', async () => {
    await using relay = await startTestService({ env });
    const admin = await operators(relay);
    await relay.database.query('alter table operator_log rename to operator_log_itself');
    await relay.database.query(
      `create view operator_log as
       select 1::bigint as id, now() as at, null::text as token_id, 'a'::text as actor, 'r'::text as role,
         'body.read'::text as action, null::text as source, null::text as subject, null::text as remote_address,
         json_build_object(
           'workers', current_setting('max_parallel_workers_per_gather'),
           'seqscan', current_setting('enable_seqscan'),
           'timeout', current_setting('statement_timeout'),
           'lock', current_setting('lock_timeout'))::text as detail`,
    );

    expect((await admin.get('/operator-log')).body).toMatchObject({
      items: [{ detail: { workers: '0', seqscan: 'on', timeout: '1500ms', lock: '1s' } }],
    });
  });
});

test('a connection whose query the driver gave up on is handed to nobody else', async () => {
  await using database = await createTestDatabase();
  const connection = connectDatabase({
    url: database.url,
    name: 'busy',
    connections: 2, // the first one stays with its statement
    statementTimeoutMs: 20_000,
    lockTimeoutMs: 20_000,
    queryTimeoutMs: 1_000,
    log: createTestLog().log,
  });

  await expect(sql`select pg_sleep(15)`.execute(connection.db)).rejects.toThrow('Query read timeout');

  const { rows } = await sql<{ one: number }>`select 1 as one`.execute(connection.db);
  expect(rows).toEqual([{ one: 1 }]);
  await connection.close();
});
