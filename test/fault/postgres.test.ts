import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Bus, listen, newExchange, UNHEARD } from '../support/bus.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventIds, outOfOrder, sessionsOf, untilOutboxEmpty } from '../support/facts.ts';
import { type Load, post, startLoad } from '../support/load.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/own-servers.ts';
import { type Replica, startReplica, untilReady } from '../support/replica.ts';
import { completed, isAcknowledged, newJobId } from '../support/sender.ts';
import { waitFor } from '../support/waits.ts';
import { promisedMs } from '../support/patience.ts';
import { cases, IS_SHORT_RUN } from '../only-in-all.ts';

let postgres: OwnPostgres;

beforeAll(async () => {
  postgres = await startOwnPostgres();
});

afterAll(() => postgres[Symbol.asyncDispose]());

function startOn(database: TestDatabase, exchange: string, env: Record<string, string> = {}) {
  return startReplica({
    databaseUrl: database.url,
    exchange,
    env: { MIGRATE_ON_START: 'true', ...env },
  });
}

function unacknowledged(load: Load) {
  return load.answers.filter((answer) => !isAcknowledged(answer));
}

/** What is promised whatever happens to Postgres. */
async function expectPromisesKept(options: {
  load: Load;
  replica: Replica;
  database: TestDatabase;
  bus: Bus;
}): Promise<void> {
  const { load, replica, database, bus } = options;
  expect(
    unacknowledged(load).filter(({ status, retryAfter }) => status !== 503 || !Number(retryAfter)),
  ).toEqual([]);
  expect(Math.max(...load.answers.map(({ ms }) => ms))).toBeLessThan(promisedMs(10_000));
  await untilOutboxEmpty(database);
  const tallied = new Set(await eventIds(database));
  expect([...load.acknowledged()].filter((id) => !tallied.has(id))).toEqual([]);
  await waitFor(() => expect(new Set(bus.ids())).toEqual(tallied));
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(replica.hasExited()).toBe(false);
  expect(replica.log.filter(({ level }) => level === 'fatal')).toEqual([]);
}

/** What is done to Postgres, and how a test's name says it. */
type Ending = readonly [string, () => Promise<void>];
const KILLED: Ending = ['killed with SIGKILL', () => postgres.server.kill('SIGKILL')];
const STOPPED: Ending = ['stopped', () => postgres.server.stop()];

test.for(cases([KILLED], [STOPPED]))(
  'guarantee 7: with Postgres %s under load there are only 2xx and 503 with Retry-After, and no 2xx is false',
  async ([, end]) => {
    const exchange = newExchange();
    await using database = await postgres.createDatabase();
    await using bus = await listen(exchange);
    await using replica = await startOn(database, exchange);
    await using load = startLoad(() => [replica.webhooks], { senders: 8, pauseMs: 5 });
    await load.reached(150);

    await end();
    await waitFor(() => expect(unacknowledged(load).length).toBeGreaterThan(10));
    await waitFor(async () =>
      expect(await replica.readiness()).toMatchObject({ status: 503, body: { postgres: 'down' } }),
    );
    await postgres.server.start();
    await untilReady(replica);
    await load.reached(load.acknowledged().size + 100);
    await load.stop();

    await expectPromisesKept({ load, replica, database, bus });
  },
);

test.skipIf(IS_SHORT_RUN)(
  'guarantee 2: with every connection of ours ended again and again, no 2xx is false and the process lives',
  async () => {
    const exchange = newExchange();
    await using database = await postgres.createDatabase();
    await using bus = await listen(exchange);
    await using replica = await startOn(database, exchange);
    await using load = startLoad(() => [replica.webhooks], { senders: 8 });
    await load.reached(100);

    for (let round = 0; round < 12; round++) {
      const ended = await database.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = $1 and application_name like 'tallyhook%'`,
        [database.name],
      );
      expect(ended.length).toBeGreaterThan(0);
      await load.reached(load.acknowledged().size + 20);
    }
    await load.stop();

    await expectPromisesKept({ load, replica, database, bus });
  },
);

test('guarantee 7: a Postgres that hangs means 503 within the deadline, and no restart nor further sessions once it goes on', async () => {
  const exchange = newExchange();
  await using database = await postgres.createDatabase();
  await using bus = await listen(exchange);
  await using replica = await startOn(database, exchange, { ANSWER_DEADLINE_MS: '1500' });
  await using load = startLoad(() => [replica.webhooks], { senders: 8, pauseMs: 5 });
  await load.reached(100);
  const max = await replica.metric('tallyhook_database_sessions_max');
  const sessions: number[] = [];

  try {
    await postgres.server.kill('SIGSTOP');
    await waitFor(() => expect(unacknowledged(load).length).toBeGreaterThan(8));
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post(replica.webhooks, completed(newJobId()))),
    );
    for (const { status, retryAfter } of answers) {
      expect(status).toBe(503);
      expect(Number(retryAfter)).toBeGreaterThan(0);
    }
    // The deadline, with time for a busy machine.
    expect(Math.max(...[...answers, ...load.answers].map(({ ms }) => ms))).toBeLessThan(promisedMs(3_000));
    expect((await replica.readiness()).body).toMatchObject({ ready: false, postgres: 'down' });
    expect((await fetch(`${replica.intake}/livez`)).status).toBe(200);
    expect(await replica.metric('tallyhook_build_info{version="0.1.0",node="' + process.version + '"}')).toBe(
      1,
    );
  } finally {
    await postgres.server.kill('SIGCONT');
  }
  await waitFor(async () => {
    sessions.push(await sessionsOf(database));
    expect((await replica.readiness()).status).toBe(200);
  });
  await load.reached(load.acknowledged().size + 100);
  sessions.push(await sessionsOf(database));
  await load.stop();

  // One more for moments, which asks after overdue statements.
  expect(Math.max(...sessions)).toBeLessThanOrEqual(max + 1);
  await expectPromisesKept({ load, replica, database, bus });
});

test.skipIf(IS_SHORT_RUN)('a Postgres that hangs does not keep us from ending', async () => {
  await using database = await postgres.createDatabase();
  await using replica = await startOn(database, UNHEARD, {
    SHUTDOWN_GRACE_MS: '1000',
    ANSWER_DEADLINE_MS: '1000',
  });
  try {
    await postgres.server.kill('SIGSTOP');
    const signalledMs = performance.now();
    replica.kill('SIGTERM');
    expect(await replica.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - signalledMs).toBeLessThan(promisedMs(8_000));
  } finally {
    await postgres.server.kill('SIGCONT');
  }
});

test.skipIf(IS_SHORT_RUN)(
  'a service that starts while Postgres is away begins to receive when it is there',
  async () => {
    const exchange = newExchange();
    await using database = await postgres.createDatabase();
    await using bus = await listen(exchange);
    await postgres.server.stop();
    const starting = startOn(database, exchange);
    await postgres.server.start();

    await using replica = await starting;

    const job = newJobId();
    expect((await post(replica.webhooks, completed(job))).status).toBe(202);
    await bus.received(1);
  },
);

test.skipIf(IS_SHORT_RUN)(
  'the relay goes on by itself after Postgres was away, without a new event to wake it',
  async () => {
    const exchange = newExchange();
    await using database = await postgres.createDatabase();
    await using bus = await listen(exchange);
    await using replica = await startOn(database, exchange, { AMQP_URL: 'amqp://127.0.0.1:1' });
    const jobs = Array.from({ length: 20 }, newJobId);
    for (const job of jobs) await post(replica.webhooks, completed(job));
    await using leader = await startOn(database, exchange);
    await postgres.server.kill('SIGKILL');
    await postgres.server.start();
    replica.kill('SIGKILL');

    await bus.received(jobs.length);

    expect(leader.hasExited()).toBe(false);
    expect(new Set(bus.ids())).toEqual(new Set(jobs.map((job) => `default:${job}:completed`)));
  },
);
