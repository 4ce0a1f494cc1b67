// The watch while replicas are killed or frozen, and while Postgres is away: what happened is one row all the same.

import { expect, test } from 'vitest';
import { amqpUrl, listen, newExchange } from '../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startProxy } from '../support/proxy.ts';
import { QUICK } from '../support/quick-watch.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { readMetric } from '../support/requests.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/waits.ts';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../support/quick-watch.ts', import.meta.url));
const WAIT = { timeout: 30_000 };

/** But for pools that were starved, as they are when a replica wakes, or on a slow machine. */
const incidentsOf = (database: TestDatabase) =>
  database.query<{ id: string; condition: string; ended: boolean }>(
    `select id, condition, ended_at is not null as ended from incidents
     where condition <> 'starved-pool' order by began_at`,
  );

const leaseOf = async (database: TestDatabase) =>
  (
    await database.query<{ holder: string; epoch: string }>(
      `select holder, epoch from relay_lease where name = 'watch' and expires_at > clock_timestamp()`,
    )
  )[0];

const idOf = ({ log }: Replica) => log.find(({ msg }) => msg === 'listening')?.['replica'];

/** Two replicas behind a broker that can be taken away, one of which has the lease of the watch. */
async function startPair(database: TestDatabase) {
  const proxy = await startProxy(amqpUrl(), { defaultPort: 5672 });
  const start = () =>
    startReplica({
      databaseUrl: database.url,
      exchange: newExchange(),
      main: MAIN,
      env: { AMQP_URL: proxy.url },
    });
  const replicas = await Promise.all([start(), start()]);
  const held = await waitFor(async () => {
    const lease = await leaseOf(database);
    expect(replicas.map(idOf)).toContain(lease?.holder);
    return lease;
  }, WAIT);
  const holder = replicas.find((replica) => idOf(replica) === held?.holder) as Replica;
  const other = replicas.find((replica) => replica !== holder) as Replica;
  return {
    proxy,
    holder,
    other,
    untilTakenOver: () =>
      waitFor(async () => expect((await leaseOf(database))?.holder).toBe(idOf(other)), WAIT),
    takeBroker: () => {
      proxy.refuse();
      proxy.cut();
    },
    [Symbol.asyncDispose]: async () => {
      holder.kill('SIGCONT');
      for (const replica of replicas) await replica[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

test('a replica that is killed while it watches leaves the incident to the next one, which ends it', async () => {
  await using database = await createTestDatabase();
  await using pair = await startPair(database);
  pair.takeBroker();
  const [incident] = await waitFor(async () => {
    const found = await incidentsOf(database);
    expect(found).toMatchObject([{ condition: 'broker-away', ended: false }]);
    return found;
  }, WAIT);

  pair.holder.kill('SIGKILL');
  await pair.untilTakenOver();
  pair.proxy.heal();

  await waitFor(
    async () =>
      expect((await incidentsOf(database)).filter(({ condition }) => condition === 'broker-away')).toEqual([
        { ...incident, ended: true },
      ]),
    WAIT,
  );
});

test('a replica that was frozen while it watched writes nothing when it wakes', async () => {
  await using database = await createTestDatabase();
  await using pair = await startPair(database);
  pair.holder.kill('SIGSTOP');
  await pair.untilTakenOver();
  const taken = await leaseOf(database);
  pair.takeBroker();
  await waitFor(
    async () =>
      expect(await incidentsOf(database)).toMatchObject([{ condition: 'broker-away', ended: false }]),
    WAIT,
  );
  const seen = () =>
    database.query<{ seen: boolean }>(
      `select from replicas where id = $1 and seen_at > now() - interval '1 second'`,
      [idOf(pair.holder)],
    );
  expect(await seen()).toEqual([]);

  pair.holder.kill('SIGCONT');
  await waitFor(async () => expect(await seen()).toHaveLength(1), WAIT);

  expect(await incidentsOf(database)).toMatchObject([{ condition: 'broker-away', ended: false }]);
  expect(await leaseOf(database)).toEqual(taken);
});

test('after Postgres was away there is one incident, which began and ended with the outage', async () => {
  await using database = await createTestDatabase();
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  // 3 s are its minute, and 30 s its five: it takes a while until all connections are made again.
  const options = {
    database,
    env: { DATABASE_URL: proxy.url },
    watchTiming: { ...QUICK, scale: 1 / 20 },
  };
  await using first = await startTestService(options);
  await using second = await startTestService(options);
  await waitFor(async () =>
    expect(
      await database.query(`select from relay_lease where name = 'watch' and memory is not null`),
    ).toHaveLength(1),
  );

  proxy.refuse();
  proxy.cut();
  await waitFor(async () =>
    expect(await readMetric(first.operators, 'tallyhook_database_connected')).toBe(0),
  );
  const beganMs = Date.now();
  await waitFor(() => expect(Date.now() - beganMs).toBeGreaterThan(6_000));
  proxy.heal();

  const lasted = await waitFor(
    async () => {
      const rows = await database.query<{ s: number }>(
        `select extract(epoch from ended_at - began_at)::float8 as s from incidents
       where condition = 'postgres-away' and ended_at is not null`,
      );
      expect(rows).toHaveLength(1);
      return rows[0]?.s;
    },
    { timeout: 60_000 },
  );
  expect(lasted).toBeGreaterThan(3);
  expect(await readMetric(second.operators, 'tallyhook_database_connected')).toBe(1);
  expect((await incidentsOf(database)).map(({ condition }) => condition)).not.toContain('no-leader');
});

test('replicas that are all killed while they lead leave an incident to whoever starts next', async () => {
  await using database = await createTestDatabase();
  const exchange = newExchange();
  await using bus = await listen(exchange);
  const start = () => startReplica({ databaseUrl: database.url, exchange, main: MAIN });
  {
    await using replica = await start();
    await deliver(replica.webhooks, completed(newJobId()));
    await bus.received(1);
    await waitFor(async () =>
      expect(await database.query(`select from relay_lease where name = 'outbox'`)).toHaveLength(1),
    );
    replica.kill('SIGKILL');
    await replica.exited;
  }
  // A minute, as they have it, after the lease ran out.
  await waitFor(
    async () =>
      expect(
        await database.query(
          `select from relay_lease where name = 'outbox' and expires_at < now() - interval '1.5 s'`,
        ),
      ).toHaveLength(1),
    WAIT,
  );
  await using next = await start();
  await waitFor(
    async () =>
      expect(await incidentsOf(database)).toContainEqual(expect.objectContaining({ condition: 'no-leader' })),
    WAIT,
  );
  expect(next.hasExited()).toBe(false);
});
