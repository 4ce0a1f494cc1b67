// What operators and balancers are told.

import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { connectDatabase } from '../../../src/ledger/sessions/database.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase } from '../../support/database.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { hold } from '../../support/outbox.ts';
import { promisedMs } from '../../support/patience.ts';
import { startProxy } from '../../support/proxy.ts';
import { readMetrics } from '../../support/requests.ts';
import { completed, deliver, newJobId, progress } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { openTransaction } from '../../support/transaction.ts';
import { shareTestService } from '../../support/shared-service.ts';

const shared = shareTestService();

describe('health', () => {
  test('/livez and /readyz are on both ports, /metrics on the operators’ alone', async () => {
    const relay = shared();

    for (const port of [relay.intake, relay.operators]) {
      await request(port).get('/livez').expect(200, { live: true });
      await request(port)
        .get('/readyz')
        .expect(200)
        .expect(({ body }) =>
          expect(body).toMatchObject({ ready: true, postgres: 'up', queue: 'room', draining: false }),
        );
    }
    await request(relay.operators)
      .get('/metrics')
      .expect(200)
      .expect('Content-Type', /^text\/plain/);
    await request(relay.intake).get('/metrics').expect(404);
    await request(relay.operators).post('/webhooks').expect(404);
  });

  test('the state of RabbitMQ is shown', async () => {
    const relay = shared();

    await expect
      .poll(async () => (await request(relay.operators).get('/readyz')).body)
      .toMatchObject({ ready: true, rabbitmq: 'connected' });
  });

  test('without RabbitMQ we are ready all the same', async () => {
    await using relay = await startTestService({ env: { AMQP_URL: 'amqp://127.0.0.1:1' } });

    await request(relay.operators)
      .get('/readyz')
      .expect(200)
      .expect(({ body }) => expect(body).toMatchObject({ ready: true, rabbitmq: 'disconnected' }));
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  });

  test('without Postgres we are live and not ready, and before it was ever there, too', async () => {
    await using database = await createTestDatabase();
    await using proxy = await startProxy(database.url, { defaultPort: 5432 });
    await using relay = await startTestService({ database, env: { DATABASE_URL: proxy.url } });

    proxy.refuse();
    proxy.cut();

    await expect
      .poll(async () => (await request(relay.intake).get('/readyz')).body)
      .toMatchObject({ ready: false, postgres: 'down' });
    await request(relay.intake).get('/readyz').expect(503);
    await request(relay.intake).get('/livez').expect(200);
  });

  test('while we drain we are not ready, and still take what comes', async () => {
    await using relay = await startTestService({ env: { SHUTDOWN_DELAY_MS: '1500' } });

    const stopped = relay.service.stop();
    await request(relay.intake)
      .get('/readyz')
      .expect(503)
      .expect(({ body }) => expect(body).toMatchObject({ ready: false, draining: true, postgres: 'up' }));
    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });

    await stopped;
  });
});

describe('metrics', () => {
  test('hold everything that operators were promised', async () => {
    const exchange = newExchange();
    await using bus = await listen(exchange);
    await using relay = await startTestService({ exchange });
    const jobId = newJobId();
    await deliver(relay.webhooks, completed(jobId));
    await deliver(relay.webhooks, completed(jobId));
    await deliver(relay.webhooks, 'x', { headers: { 'x-service-signature': undefined } });
    await deliver(`${relay.webhooks}/nobody-1`, 'x');
    await deliver(`${relay.webhooks}/nobody-2`, 'x');
    await bus.received(1);
    // Refusals are traced after their answers, and confirms counted after the message came.
    await expect
      .poll(async () => {
        const samples = await readMetrics(relay.operators);
        return ['tallyhook_batch_deliveries_sum', 'tallyhook_publication_seconds_count'].map((name) =>
          samples.get(name),
        );
      })
      .toEqual([5, 1]);

    const samples = await readMetrics(relay.operators);

    expect(Object.fromEntries(samples)).toMatchObject({
      'tallyhook_deliveries_total{source="default",outcome="accepted"}': 1,
      'tallyhook_deliveries_total{source="default",outcome="duplicate"}': 1,
      'tallyhook_deliveries_total{source="default",outcome="unauthorized"}': 1,
      'tallyhook_deliveries_total{source="unknown",outcome="unauthorized"}': 2,
      'tallyhook_answer_seconds_count{outcome="accepted"}': 1,
      'tallyhook_answer_seconds_bucket{le="10",outcome="accepted"}': 1,
      'tallyhook_batch_seconds_count{result="committed"}': expect.any(Number),
      tallyhook_batch_deliveries_count: expect.any(Number),
      tallyhook_batch_deliveries_sum: 5,
      tallyhook_write_queue_deliveries: 0,
      tallyhook_write_queue_bytes: 0,
      tallyhook_outbox_pending: expect.any(Number),
      tallyhook_outbox_returned: 0,
      tallyhook_outbox_parked: 0,
      tallyhook_outbox_oldest_seconds: expect.any(Number),
      'tallyhook_publications_total{result="confirmed"}': 1,
      tallyhook_publication_seconds_count: 1,
      tallyhook_relay_lag_seconds_count: 1,
      tallyhook_relay_in_flight: 0,
      tallyhook_relay_lease_held: 1,
      tallyhook_broker_connected: 1,
      tallyhook_broker_blocked: 0,
      [`tallyhook_build_info{version="0.1.0",node="${process.version}"}`]: 1,
      process_cpu_user_seconds_total: expect.any(Number),
    });
    expect([...samples.keys()].filter((name) => name.includes('nobody'))).toEqual([]);
  });

  test('the depth and age of the outbox are those of what waits', async () => {
    await using database = await createTestDatabase();
    await holdOutbox(database);
    await using relay = await startTestService({ database });
    const jobId = newJobId();
    for (const percent of [1, 2, 3]) await deliver(relay.webhooks, progress(jobId, percent));
    await hold(database, { state: 'parked' }, 'progress_percentage = 3');
    await database.query(
      `update outbox_batches set recorded_at = now() - interval '100 seconds'
       where first = (select sequence from events where progress_percentage = 1)`,
    );

    const samples = await readMetrics(relay.operators);

    expect(samples.get('tallyhook_outbox_pending')).toBe(2);
    expect(samples.get('tallyhook_outbox_parked')).toBe(1);
    expect(samples.get('tallyhook_outbox_oldest_seconds')).toBeGreaterThanOrEqual(100);
    expect(samples.get('tallyhook_relay_lease_held')).toBe(0);
  });

  test('a delivery that got 503 is counted as unavailable', async () => {
    await using database = await createTestDatabase();
    await using proxy = await startProxy(database.url, { defaultPort: 5432 });
    await using relay = await startTestService({ database, env: { DATABASE_URL: proxy.url } });
    proxy.refuse();
    proxy.cut();

    expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 503 });

    const samples = await readMetrics(relay.operators);
    expect(samples.get('tallyhook_deliveries_total{source="default",outcome="unavailable"}')).toBe(1);
    expect(samples.get('tallyhook_batch_seconds_count{result="failed"}')).toBe(1);
    for (const name of [
      'tallyhook_outbox_pending',
      'tallyhook_stuck_jobs',
      'tallyhook_table_bytes{table="deliveries"}',
      'tallyhook_partitions_ahead{table="deliveries"}',
      'tallyhook_source_last_verified_seconds{source="default"}',
    ])
      expect([name, samples.get(name)]).toEqual([name, NaN]);
    expect(samples.get('tallyhook_database_connected')).toBe(0);
  });
});

describe('the write queue', () => {
  test.for([
    ['deliveries', { WRITE_QUEUE_DELIVERIES: '4' }, 4, 0, 'full'],
    ['bytes', { WRITE_QUEUE_BYTES: String(1024 * 1024), BODY_LIMIT_BYTES: '300000' }, 4, 250_000, 'room'],
  ] as const)('when it is full in %s, the answer is 503 at once', async ([, env, fits, pad, queue]) => {
    // A slow machine needs a while until all of them wait; a share of the deadline is how long they may.
    await using relay = await startTestService({ env: { ...env, ANSWER_DEADLINE_MS: '9500' } });
    await using holder = await openTransaction(relay.database);
    await holder.query('lock table jobs in access exclusive mode');
    const content = () => completed(newJobId(), { pad: 'x'.repeat(pad) });

    const waiting = Array.from({ length: fits }, () => deliver(relay.webhooks, content()));
    await expect
      .poll(async () => (await readMetrics(relay.operators)).get('tallyhook_write_queue_deliveries'))
      .toBe(fits);
    const refused = await deliver(relay.webhooks, content());
    const ready = await request(relay.intake).get('/readyz');
    await holder.rollback();

    expect(refused).toMatchObject({
      status: 503,
      body: { error: 'unavailable', message: expect.any(String) },
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.ms).toBeLessThan(promisedMs(1_000));
    expect(relay.log.filter(({ status }) => status === 503)).toMatchObject([{ err: { code: 'full' } }]);
    // Not ready, unless something smaller would still find room.
    expect(ready.body).toMatchObject({ ready: queue === 'room', queue });
    // Those that found room are none the worse for it.
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 202));
    expect(await deliver(relay.webhooks, content())).toMatchObject({ status: 202 });
  });
});

describe('the log', () => {
  test('has one line for each delivery, without body, header or signature', async () => {
    const relay = shared();
    const jobId = newJobId();

    await deliver(relay.webhooks, completed(jobId));
    await deliver(relay.webhooks, { job_id: jobId, status: 'odd' });
    await deliver(`${relay.webhooks}/nobody`, 'x');

    const delivered = () => relay.log.filter(({ msg }) => msg === 'delivery');
    await expect.poll(delivered).toHaveLength(3); // a refusal is explained and traced after its answer
    const lines = delivered();
    expect(lines).toEqual([
      {
        level: 30,
        time: expect.any(Number),
        pid: expect.any(Number),
        hostname: expect.any(String),
        msg: 'delivery',
        delivery: expect.stringMatching(/^[0-9a-f-]{36}$/),
        source: 'default',
        outcome: 'accepted',
        status: 202,
        ms: expect.any(Number),
        bytes: expect.any(Number),
        event: `default:${jobId}:completed`,
        job: jobId,
        fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/),
        remote: '127.0.0.1',
      },
      expect.objectContaining({ outcome: 'quarantined', job: jobId, reason: 'unknown status' }),
      expect.objectContaining({
        outcome: 'unauthorized',
        source: 'unknown',
        status: 401,
        reason: 'no source of this name is set up',
      }),
    ]);
    const rows = await relay.database.query<{ id: string }>('select id from deliveries order by id');
    expect(rows.map(({ id }) => id)).toContain(lines[0]?.['delivery']);
  });
});

test('a client that is killed while it is in use costs one error, and not the process or the next query', async () => {
  await using database = await createTestDatabase();
  const { log, lines } = createTestLog();
  const connection = connectDatabase({
    url: database.url,
    name: 'killed',
    connections: 1,
    statementTimeoutMs: 5_000,
    lockTimeoutMs: 4_000,
    queryTimeoutMs: 6_000,
    log,
  });

  const sleeping = connection
    .execute({ name: 'nap', text: 'select pg_sleep(60)' }, [])
    .catch((error: unknown) => error);
  await expect
    .poll(() =>
      database.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'tallyhook killed' and state = 'active' and datname = current_database()`,
      ),
    )
    .toHaveLength(1);

  expect(await sleeping).toBeInstanceOf(Error);
  expect(await connection.execute({ name: 'one', text: 'select 1 as one' }, [])).toEqual([{ one: 1 }]);
  expect(JSON.stringify(lines)).not.toMatch(/secretKey|password|"client"/);
  await connection.close();
});
