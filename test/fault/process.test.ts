import { Agent } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen, newExchange } from '../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventIds, outOfOrder, untilOutboxEmpty } from '../support/facts.ts';
import { lockWaits } from '../support/ledger.ts';
import { type Answer, post, startLoad } from '../support/load.ts';
import { type Replica, runProcess, startProcess, startReplica } from '../support/replica.ts';
import { completed, deliver, isAcknowledged, newJobId, SECRET, sign } from '../support/sender.ts';
import { openTransaction } from '../support/transaction.ts';
import { waitFor } from '../support/waits.ts';
import { promisedMs } from '../support/patience.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';

/** Blocks the writes of deliveries until the function that it returns is called, or the test is over. */
async function lockLedger(database: TestDatabase): Promise<() => Promise<void>> {
  const { query, rollback } = await openTransaction(database);
  onTestFinished(rollback);
  await query('lock table jobs in exclusive mode');
  return rollback;
}

/** Waits until a statement waits for a lock. */
function untilBlocked(database: TestDatabase): Promise<void> {
  return waitFor(async () => expect(await lockWaits(database)).not.toEqual([]), {
    timeout: 5_000,
    interval: 10,
  });
}

function untilDraining(replica: Replica): Promise<void> {
  return waitFor(() => expect(replica.log.map(({ msg }) => msg)).toContain('draining'));
}

test('SIGTERM under load: exit 0 within the grace time, and every 2xx is in the ledger and on the bus', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using replica = await startReplica({ databaseUrl: database.url, exchange });
  await using load = startLoad(() => [replica.webhooks], { senders: 16, pauseMs: 1 });
  await load.reached(200);

  const signalledMs = performance.now();
  replica.kill('SIGTERM');

  expect(await replica.exited).toEqual({ code: 0, signal: null });
  expect(performance.now() - signalledMs).toBeLessThan(promisedMs(20_000));
  await load.stop();
  expect(load.answers.filter(({ status }) => status !== undefined && status !== 202)).toEqual([]);
  const tallied = new Set(await eventIds(database));
  expect([...load.acknowledged()].filter((id) => !tallied.has(id))).toEqual([]);

  // The next replica publishes what is left: nothing is lost.
  await using next = await startReplica({ databaseUrl: database.url, exchange });
  await untilOutboxEmpty(database);
  await bus.received(tallied.size);
  expect(next.hasExited()).toBe(false);
  expect(new Set(bus.ids())).toEqual(tallied);
  expect(outOfOrder(bus.messages)).toEqual([]);
});

test('requests that were accepted before SIGTERM are all answered, and no connection is reset', async () => {
  await using database = await createTestDatabase();
  await using replica = await startReplica({ databaseUrl: database.url });
  const jobs = Array.from({ length: 50 }, newJobId);
  const unlock = await lockLedger(database);
  const answers = jobs.map((job) => post(replica.webhooks, completed(job)));
  await untilBlocked(database);
  await expect.poll(() => replica.metric('tallyhook_write_queue_deliveries')).toBe(jobs.length);
  replica.kill('SIGTERM');
  await untilDraining(replica);
  await unlock();

  const settled = await Promise.all(answers);

  expect(settled.filter((answer) => !isAcknowledged(answer))).toEqual([]);
  expect(await replica.exited).toEqual({ code: 0, signal: null });
  expect(await eventIds(database)).toHaveLength(jobs.length);
});

test.skipIf(IS_SHORT_RUN)(
  'a kept-alive sender is told to close while we drain, and none of its requests is cut off',
  async () => {
    await using database = await createTestDatabase();
    await using replica = await startReplica({
      databaseUrl: database.url,
      env: { SHUTDOWN_DELAY_MS: '1000' },
    });
    const cutOff: Answer[] = [];
    let sent = 0;
    // Each sends on one connection until an answer closes it.
    const senders = Array.from({ length: 8 }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (;;) {
        const answer = await post(replica.webhooks, completed(newJobId()), { agent });
        sent += 1;
        if (!isAcknowledged(answer)) cutOff.push(answer);
        if (answer.closes || !isAcknowledged(answer)) break;
      }
      agent.destroy();
    });
    await waitFor(() => expect(sent).toBeGreaterThan(100));

    replica.kill('SIGTERM');
    await Promise.all(senders);

    expect(cutOff).toEqual([]);
    // The port was still open after all of this.
    expect(await post(replica.webhooks, completed(newJobId()))).toMatchObject({ status: 202, closes: true });
    expect(await replica.exited).toEqual({ code: 0, signal: null });
  },
);

test('a request that is under way when we begin to drain is told to close its connection', async () => {
  await using database = await createTestDatabase();
  await using replica = await startReplica({ databaseUrl: database.url });
  const agent = new Agent({ keepAlive: true });
  const unlock = await lockLedger(database);
  const answer = post(replica.webhooks, completed(newJobId()), { agent });
  await untilBlocked(database);
  replica.kill('SIGTERM');
  await untilDraining(replica);
  await unlock();

  expect(await answer).toMatchObject({ status: 202, closes: true });
  expect(await replica.exited).toEqual({ code: 0, signal: null });
  agent.destroy();
});

test.skipIf(IS_SHORT_RUN)('while it drains it is unready, and live', async () => {
  await using database = await createTestDatabase();
  await using replica = await startReplica({
    databaseUrl: database.url,
    env: { SHUTDOWN_DELAY_MS: '1500' },
  });

  replica.kill('SIGTERM');

  await waitFor(async () => {
    const { status, body } = await replica.readiness();
    expect(status).toBe(503);
    expect(body).toMatchObject({ ready: false, draining: true, postgres: 'up' });
  });
  expect((await fetch(`${replica.intake}/livez`)).status).toBe(200);
  expect(isAcknowledged(await post(replica.webhooks, completed(newJobId())))).toBe(true);
  expect(await replica.exited).toEqual({ code: 0, signal: null });
});

test('the lease is given up on SIGTERM', async () => {
  await using database = await createTestDatabase();
  await using replica = await startReplica({
    databaseUrl: database.url,
    env: { RELAY_LEASE_MS: '60000' },
  });
  await expect.poll(() => replica.metric('tallyhook_relay_lease_held')).toBe(1);

  replica.kill('SIGTERM');
  await replica.exited;

  expect(
    await database.query(
      'select name, expires_at <= clock_timestamp() as free from relay_lease order by name',
    ),
  ).toEqual([
    { name: 'outbox', free: true },
    { name: 'watch', free: true },
  ]);
});

test.skipIf(IS_SHORT_RUN).for(['SIGTERM', 'SIGINT'] as const)(
  'a second %s ends it at once',
  async (signal) => {
    await using database = await createTestDatabase();
    await using replica = await startReplica({ databaseUrl: database.url });
    await lockLedger(database);
    const answer = post(replica.webhooks, completed(newJobId()));
    await untilBlocked(database);
    replica.kill(signal);
    await untilDraining(replica);

    // A second signal counts after half a second. Without it the lock would delay the exit for longer than this time-out.
    await waitFor(
      () => {
        replica.kill(signal);
        expect(replica.log.map(({ msg }) => msg)).toContain('asked to stop a second time');
      },
      { timeout: 1_800, interval: 50 },
    );

    expect(await replica.exited).toEqual({ code: 1, signal: null });
    expect((await answer).status).toBeUndefined();
  },
);

test.skipIf(IS_SHORT_RUN)(
  'a connection that never finishes its request does not keep it from ending',
  async () => {
    await using database = await createTestDatabase();
    await using replica = await startReplica({
      databaseUrl: database.url,
      env: { SHUTDOWN_GRACE_MS: '1000' },
    });
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(replica.intake).port) });
    socket.on('error', () => {});
    await new Promise<void>((resolve) => {
      socket.write(
        `POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nX-Service-Signature: ${sign('')}\r\n\r\n{`,
        () => resolve(),
      );
    });

    const signalledMs = performance.now();
    replica.kill('SIGTERM');

    expect(await replica.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - signalledMs).toBeLessThan(promisedMs(6_000));
    socket.destroy();
  },
);

test('guarantee 7: while Postgres is away at the start it lives, is unready, answers 503, and ends on SIGTERM with 0', async () => {
  await using database = await createTestDatabase();
  await using command = startWithoutServers(database);
  await waitFor(() => expect(command.stdout()).toContain('Postgres is not ready, trying again'));
  const listening = command
    .stdout()
    .split('\n')
    .find((line) => line.includes('"listening"'));
  const { port, operatorPort } = JSON.parse(listening ?? '{}') as { port: number; operatorPort: number };
  expect((await fetch(`http://127.0.0.1:${operatorPort}/livez`)).status).toBe(200);
  expect((await fetch(`http://127.0.0.1:${operatorPort}/readyz`)).status).toBe(503);
  const reply = await deliver(`http://127.0.0.1:${port}/webhooks`, completed(newJobId()));
  expect(reply).toMatchObject({ status: 503, body: { error: 'unavailable' } });
  expect(reply.headers.get('retry-after')).toMatch(/^\d+$/);

  command.child.kill('SIGTERM');

  expect(await command.exited).toEqual({ code: 0, signal: null });
  expect(command.stdout()).not.toContain(SECRET);
});

test.skipIf(IS_SHORT_RUN)('a port that is taken is said so, with exit code 1', async () => {
  await using database = await createTestDatabase();
  await using replica = await startReplica({ databaseUrl: database.url });

  const { code, stderr } = await runProcess(['serve'], {
    env: {
      DATABASE_URL: database.url,
      AMQP_URL: 'amqp://127.0.0.1:1',
      SIGNING_SECRETS: SECRET,
      PORT: new URL(replica.intake).port,
      HOST: '127.0.0.1',
      OPERATOR_PORT: '0',
    },
  });

  expect(code).toBe(1);
  expect(stderr).toContain('EADDRINUSE');
});

test.skipIf(IS_SHORT_RUN)('SIGHUP ends it at no time: not while it starts, not while it runs', async () => {
  await using database = await createTestDatabase();
  await using starting = startWithoutServers(database);
  await waitFor(() => expect(starting.stdout()).toContain('trying again'));
  const linesBefore = starting.stdout().split('trying again').length;
  starting.child.kill('SIGHUP');
  await waitFor(() =>
    expect(starting.stdout().split('trying again').length).toBeGreaterThan(linesBefore + 1),
  );
  expect(starting.child.signalCode).toBeNull();

  await using replica = await startReplica({ databaseUrl: database.url });
  replica.kill('SIGHUP');
  expect((await post(replica.webhooks, completed(newJobId()))).status).toBe(202);
  expect(replica.hasExited()).toBe(false);
});

/** `serve` with the addresses of a Postgres and a RabbitMQ that do not answer. */
function startWithoutServers(database: TestDatabase) {
  const nowhere = new URL(database.url);
  nowhere.port = '1';
  return startProcess(['serve'], {
    env: {
      DATABASE_URL: nowhere.href,
      AMQP_URL: 'amqp://127.0.0.1:1',
      SIGNING_SECRETS: SECRET,
      PORT: '0',
      OPERATOR_PORT: '0',
    },
  });
}
