// The rows by which replicas say that they run: written beside everything else, taken away at a stop, and bounded.

import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { composeHeartbeat, createHeartbeat } from '../../../src/ledger/upkeep/heartbeat.ts';
import { createIdentity } from '../../../src/ledger/sessions/identity.ts';
import { createSessions } from '../../../src/ledger/sessions/sessions.ts';
import { loadConfig } from '../../../src/config.ts';
import { keepUp } from '../../../src/ledger/upkeep/upkeep.ts';
import { version } from '../../../src/base/version.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { operators } from '../../support/operators.ts';
import { promisedMs } from '../../support/patience.ts';
import { startProxy } from '../../support/proxy.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { completed, deliver, newJobId, SECRET } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { openSession } from '../../support/transaction.ts';
import { waitFor } from '../../support/waits.ts';

type Item = {
  id: string;
  version: string;
  leads: boolean;
  is_late: boolean;
  started_at: string;
  seen_at: string;
};

const idsOf = async (database: TestDatabase) =>
  (await database.query<{ id: string }>('select id from replicas')).map(({ id }) => id);

/** Rows of replicas that ended without a word. */
const addKilled = (database: TestDatabase, count: number, seenAgo: string) =>
  database.query(
    `insert into replicas select gen_random_uuid(), '0.0.1', 'gone', now() - interval '2 days', now() - $2::interval
     from generate_series(1, $1)`,
    [count, seenAgo],
  );

test('each running replica has a row with its version, one of them leads, and a stop takes the row away', async () => {
  await using first = await startTestService();
  const [idOfFirst] = await waitFor(async () => {
    const ids = await idsOf(first.database);
    expect(ids).toHaveLength(1);
    return ids;
  });
  const second = await startTestService({ database: first.database, exchange: first.exchange });
  const api = await operators(first, { role: 'viewer', sources: ['default'] });
  const list = async () => (await api.get<{ items: Item[] }>('/replicas')).body.items;

  await waitFor(async () => {
    const found = await list();
    expect(found.map((item) => [item.version, item.is_late])).toEqual([
      [version, false],
      [version, false],
    ]);
    expect(found.filter(({ leads }) => leads)).toHaveLength(1);
  });
  await second.service.stop();
  expect(await idsOf(first.database)).toEqual([idOfFirst]);
});

test('a replica that was killed is late, and no longer leads', async () => {
  await using relay = await startTestService();
  await addKilled(relay.database, 1, '31 seconds');
  const api = await operators(relay, { role: 'viewer' });
  const { body } = await api.get<{ items: Item[] }>('/replicas');
  expect(body.items.filter(({ is_late }) => is_late)).toMatchObject([{ version: '0.0.1', leads: false }]);
});

test('a heartbeat moves the time of the last one, and leaves the start as it is', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const { log } = createTestLog();
  let nowMs = 5_000;
  const heartbeat = createHeartbeat(connection, {
    replicaId: randomUUID(),
    log,
    now: () => nowMs,
    signs: () => ({ 'log-dropped': 2.5 }),
  });
  const read = () =>
    database.query<{ started: number; seen: number }>(
      'select extract(epoch from started_at)::float8 as started, extract(epoch from seen_at)::float8 as seen from replicas',
    );

  heartbeat.start();
  await heartbeat.end();
  const [first] = await read();
  nowMs += 60_000;
  heartbeat.start();
  await heartbeat.end();
  const [second] = await read();

  expect(second?.started).toBe(first?.started);
  expect(second?.seen).toBeGreaterThan(first?.seen ?? 0);
  await heartbeat.leave();
  expect(await read()).toEqual([]);
});

test('upkeep deletes replicas that are gone for an hour, and all but the 200 that were seen last', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const { log } = createTestLog();
  await addKilled(database, 3, '61 minutes');
  await addKilled(database, 2, '59 minutes');
  await keepUp(connection, { retentionDays: 30, log });
  expect(await idsOf(database)).toHaveLength(2);

  await addKilled(database, 300, '1 minute');
  await keepUp(connection, { retentionDays: 30, log });
  const left = await database.query(`select from replicas where seen_at > now() - interval '2 minutes'`);
  expect([(await idsOf(database)).length, left.length]).toEqual([200, 200]);
});

test('a heartbeat that finds its table locked is a line of the log: deliveries and a stop go on', async () => {
  await using relay = await startTestService();
  await waitFor(async () => expect(await idsOf(relay.database)).toHaveLength(1));
  await using session = await openSession(relay.database);
  await session.query('begin');
  await session.query('lock table replicas in access exclusive mode');

  expect(await deliver(relay.webhooks, completed(newJobId()))).toMatchObject({ status: 202 });
  await relay.service.stop();

  const lines = relay.log.filter(({ msg }) => String(msg).includes('until upkeep deletes it'));
  expect(lines).toMatchObject([{ err: { code: '55P03' } }]);
  await session.query('commit');
  expect(await idsOf(relay.database)).toHaveLength(1);
});

test('a database that says nothing keeps no stop waiting for longer than a heartbeat may take', async () => {
  await using database = await createTestDatabase();
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  const { log, lines } = createTestLog();
  const started = new AsyncDisposableStack();
  const config = loadConfig({
    DATABASE_URL: proxy.url,
    AMQP_URL: 'amqp://127.0.0.1',
    SIGNING_SECRETS: SECRET,
  });
  const heartbeat = composeHeartbeat(config, {
    replicaId: randomUUID(),
    identity: createIdentity(createTestLog()),
    log,
    sessions: createSessions({ url: proxy.url, log }),
    now: () => performance.now(),
    started,
    graceMs: () => 10_000,
    signs: () => ({}),
  });
  heartbeat.start();
  await waitFor(async () => expect(await idsOf(database)).toHaveLength(1));
  proxy.stall();

  const beganMs = performance.now();
  await started.disposeAsync();

  expect(performance.now() - beganMs).toBeLessThan(promisedMs(4_000));
  const told = lines.filter(({ msg }) => !String(msg).startsWith('fsync is off')); // as it is of the tests' server
  expect(told).toMatchObject([{ msg: expect.stringContaining('until upkeep deletes it') }]);
});
