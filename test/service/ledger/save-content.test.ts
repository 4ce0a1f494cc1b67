// A day of deliveries is dropped while events of it are still to be published: their content is saved before, and they are
// published later as if nothing had happened.

import { expect, test } from 'vitest';
import { connectDatabase, type DatabaseConnection } from '../../../src/ledger/sessions/database.ts';
import { migrate } from '../../../src/ledger/schema/migrate.ts';
import { keepPartitions, makePartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { saveContent } from '../../../src/ledger/recording/save-content.ts';
import { type Bus, listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { altered, copies, outboxCount, outOfOrder } from '../../support/facts.ts';
import { holdOutbox, lockWaits, partitionsOf } from '../../support/ledger.ts';
import { operators } from '../../support/operators.ts';
import { orderOne } from '../../support/orders.ts';
import { hold, OUTBOX } from '../../support/outbox.ts';
import { eventRecord } from '../../support/records.ts';
import { createTestRelay, type TestRelay } from '../../support/relay.ts';
import { createRoles } from '../../support/roles.ts';
import { patience } from '../../support/patience.ts';
import { completed, newJobId, type Notification, progress } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { openTransaction } from '../../support/transaction.ts';

/** Days ago. */
const OLD = 20;
const YOUNGER = 15;
const retentionDays = 17;

/** With the time-outs and the settings of the service's own. */
function connect({ url }: { url: string }): DatabaseConnection & AsyncDisposable {
  const timeouts = {
    statementTimeoutMs: patience(1_800),
    lockTimeoutMs: patience(1_500),
    queryTimeoutMs: patience(2_000),
  };
  const { log } = createTestLog();
  const connection = connectDatabase({ url, name: 'test', connections: 2, ...timeouts, log });
  return { ...connection, [Symbol.asyncDispose]: connection.close };
}

async function addOldDays(database: TestDatabase): Promise<void> {
  for (const daysAgo of [OLD, OLD - YOUNGER, YOUNGER]) {
    await database.query(`
      do $$ declare day date := (now() at time zone 'UTC')::date - ${daysAgo}; begin
        execute format('create table deliveries_%s partition of deliveries for values from (%L) to (%L)',
          to_char(day, 'YYYYMMDD'), day || ' 00:00:00+00', (day + 1) || ' 00:00:00+00');
      end $$`);
  }
}

/** Everything becomes older by so many days. */
async function age(database: TestDatabase, days: number): Promise<void> {
  const older = (column: string) => `${column} = ${column} - make_interval(hours => ${days * 24})`;
  await database.query(`update deliveries set ${older('received_at')}`);
  await database.query(`update events set ${older('recorded_at')}`);
  await database.query(`update outbox_batches set ${older('recorded_at')}`);
  await database.query(`update outbox_held set ${older('recorded_at')}`);
}

/** One write. The texts keep their spaces and digits. */
const record = (connection: DatabaseConnection, ...contents: readonly (Notification | string)[]) =>
  recordDeliveries(
    connection,
    contents.map((content) => eventRecord(content)),
  );

/** Records something of a job, and dates it back to the day that is dropped. Its release came later. */
async function recordReleased(
  database: TestDatabase,
  connection: DatabaseConnection,
  content: Notification,
): Promise<void> {
  await record(connection, content);
  await database.query(
    `update deliveries set received_at = received_at - make_interval(hours => $2), outcome = 'quarantined',
       released_at = received_at
     where job_id = $1 and status = $3`,
    [content.job_id, (OLD - YOUNGER) * 24, content.status],
  );
}

const dropOldDay = (connection: DatabaseConnection) =>
  keepPartitions(connection, { retentionDays, beforeDrop: saveContent });

const sequenceOf = (jobId: string) => `e.job_id = '${jobId}'`;

type Shown = { job_id: string; status: string; state: string; attempts: number; last_error: string | null };
const entries = (database: TestDatabase): Promise<Shown[]> =>
  database.query<Shown>(
    `select job_id, status, state, attempts, last_error from ${OUTBOX} order by sequence`,
  );

const heldJobs = async (database: TestDatabase): Promise<string[]> =>
  (await database.query<{ id: string }>('select job_id as id from jobs where is_held order by 1')).map(
    ({ id }) => id,
  );

async function publishAll(database: TestDatabase, relay: TestRelay): Promise<void> {
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
}

const textsOf = (bus: Bus) => new Map(bus.messages.map(({ id, text }) => [id, text]));

test('events of a dropped day are published with the bytes that they would have had before', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addOldDays(database);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  const [first, exact, returned] = [newJobId(), newJobId(), newJobId()];
  const [parked, retried] = [newJobId(), newJobId()];
  const [released, waiting] = [newJobId(), newJobId()];
  const oddly = JSON.stringify(completed(exact)).replace(
    '{',
    '{ "\\u0061": "\\ud800 \\u0000 é", "big": 12345678901234567890.10, "e": 1.0E+2,\n ',
  );
  await record(connection, progress(first, 10), oddly, completed(returned), completed(parked));
  await record(connection, completed(first), completed(retried));
  await hold(database, { state: 'returned' }, sequenceOf(returned));
  await hold(database, { state: 'parked', attempts: 20 }, sequenceOf(parked));
  await hold(database, { attempts: 3 }, sequenceOf(retried));
  await age(database, OLD - YOUNGER);
  await record(connection, progress(released, 10));
  await recordReleased(database, connection, completed(released));
  await recordReleased(database, connection, completed(waiting));
  await hold(database, { attempts: 2 }, sequenceOf(waiting));
  await age(database, YOUNGER);
  await record(connection, completed(newJobId()));

  // What they look like if they are published at once. Then all is as before.
  for (const table of ['jobs', 'outbox_batches', 'outbox_held'])
    await database.query(`create table before_${table} as table ${table}`);
  await using reference = await listen(exchange);
  await database.query(`update outbox_held set state = 'pending', due_at = now()`);
  await publishAll(database, relay);
  const expected = textsOf({ ...reference, messages: await reference.received(10) });
  await database.query('insert into outbox_batches table before_outbox_batches');
  await database.query('insert into outbox_held table before_outbox_held');
  await database.query(
    'update jobs j set is_held = b.is_held from before_jobs b where (j.source, j.job_id) = (b.source, b.job_id)',
  );
  const before = await entries(database);

  expect((await dropOldDay(connection)).dropped).toHaveLength(1);

  expect(
    await database.query(`select from deliveries where received_at < now() - interval '19 days'`),
  ).toEqual([]);
  expect(await entries(database)).toEqual(before);
  expect(await heldJobs(database)).toEqual([first, exact, parked, retried, released, waiting].toSorted());
  await database.query(`update outbox_held set state = 'pending', due_at = now()`);
  await using bus = await listen(exchange);
  await publishAll(database, relay);
  await bus.received(10);
  expect(textsOf(bus)).toEqual(expected);
  expect([...copies(bus.messages).values()].every((count) => count === 1)).toBe(true);
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(await heldJobs(database)).toEqual([]);
  const [exactText = ''] = [...expected.values()].filter((text) => text.includes(exact));
  expect(exactText).toContain('12345678901234567890.10');
});

test('a leader that has events of the day in memory publishes all of them, in order', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addOldDays(database);
  await using bus = await listen(exchange);
  await using relay = await createTestRelay({ database, exchange, limits: { inFlight: 8 } });
  await relay.lease.attempt();
  const jobs = Array.from({ length: 6 }, newJobId);
  for (const percent of [10, 20, 30]) await record(connection, ...jobs.map((job) => progress(job, percent)));
  await age(database, OLD - YOUNGER);
  await record(connection, ...jobs.map((job) => completed(job)));
  await age(database, YOUNGER);
  const letGo = relay.holdPublishes();
  await relay.relay.runOnce();
  expect(relay.published).toHaveLength(6);

  expect((await dropOldDay(connection)).dropped).toHaveLength(1);

  letGo();
  await publishAll(database, relay);
  expect(copies(await bus.received(24)).size).toBe(24);
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(altered(bus.messages)).toEqual([]);
  expect(await heldJobs(database)).toEqual([]);
});

test('an event that is not understood any more is parked with its body, and keeps no day', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addOldDays(database);
  await using bus = await listen(exchange);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  const [batched, held] = [newJobId(), newJobId()];
  const [returned, other] = [newJobId(), newJobId()];
  await record(connection, ...[batched, held, returned, other].map((job) => completed(job)));
  await hold(database, { attempts: 2 }, sequenceOf(held));
  await hold(database, { state: 'returned', attempts: 1 }, sequenceOf(returned));
  await age(database, OLD);
  const [{ body: original } = { body: Buffer.of() }] = await database.query<{ body: Buffer }>(
    'select body from deliveries where job_id = $1',
    [batched],
  );
  // As if a later program no longer knew them. One is not even text.
  await database.query(`
    update deliveries set body = case job_id when '${batched}' then '\\xff00'::bytea
      else convert_to('{"job_id":"' || job_id || '","status":"paused"}', 'UTF8') end
    where job_id <> '${other}'`);
  await record(connection, progress(batched, 20));

  expect((await dropOldDay(connection)).dropped).toHaveLength(1);

  const reason = 'it is not understood any more: unknown status';
  expect(await entries(database)).toEqual([
    expect.objectContaining({
      job_id: batched,
      state: 'parked',
      last_error: 'it is not understood any more: the body is not UTF-8',
    }),
    expect.objectContaining({ job_id: held, state: 'parked', attempts: 2, last_error: reason }),
    expect.objectContaining({ job_id: returned, state: 'returned', attempts: 1, last_error: reason }),
    expect.objectContaining({ job_id: other, state: 'pending', last_error: null }),
    expect.objectContaining({ job_id: batched, status: 'processing', state: 'pending' }),
  ]);
  const saved = await database.query<{ job_id: string; body: Buffer }>(
    'select job_id, body from outbox_held where body is not null order by sequence',
  );
  expect(saved.map(({ job_id, body }) => [job_id, body.toString('latin1')])).toEqual([
    [batched, '\u00ff\u0000'],
    [held, `{"job_id":"${held}","status":"paused"}`],
    [returned, `{"job_id":"${returned}","status":"paused"}`],
  ]);

  // The others go on. A program that understands the body again publishes it, and what waits behind it.
  await relay.runUntil(async () => (await outboxCount(database)) === 4);
  expect((await bus.received(1)).map(({ id }) => id)).toEqual([`default:${other}:completed`]);
  await database.query(
    'update outbox_held set body = $2, state = $3 where job_id = $1 and body is not null',
    [batched, original, 'pending'],
  );
  await relay.runUntil(async () => (await outboxCount(database)) === 2);
  expect((await bus.received(3)).map(({ id }) => id).slice(1)).toEqual([
    `default:${batched}:completed`,
    `default:${batched}:processing:20`,
  ]);
});

test('a day is saved in slices that are bounded in events and in bytes', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addOldDays(database);
  const [large, small] = [3, 1_200];
  for (let n = 0; n < large; n++)
    await record(connection, completed(newJobId(), { padding: 'x'.repeat(2_200_000) }));
  await record(connection, ...Array.from({ length: small }, () => completed(newJobId())));
  await age(database, OLD);
  const slices: number[] = [];

  const { dropped } = await keepPartitions(connection, {
    retentionDays,
    beforeDrop: async (trx, day) => {
      const count = await saveContent(trx, day);
      slices.push(count);
      return count;
    },
  });

  expect(dropped).toHaveLength(1);
  expect(slices).toEqual([2, 500, 500, 201, 0, 0]);
  const [{ count } = {}] = await database.query<{ count: number }>(
    'select count(*)::int as count from outbox_held where data is not null',
  );
  expect(count).toBe(large + small);
  expect(await database.query('select from outbox_batches')).toEqual([]);
});

test('an event that becomes pending while its day is being dropped is waited for, and saved', async () => {
  await using database = await createTestDatabase();
  await using connection = connect(database);
  await addOldDays(database);
  const jobId = newJobId();
  await record(connection, completed(jobId));
  await age(database, OLD);
  await database.query('create table released as table outbox_batches');
  await database.query('delete from outbox_batches');
  await using release = await openTransaction(database);
  await release.query('select pg_advisory_xact_lock_shared(7461193)');
  await release.query('insert into outbox_batches table released');

  const dropping = dropOldDay(connection);
  await expect.poll(() => lockWaits(database)).toEqual([{ kind: 'advisory' }]);
  await release.query('commit');

  expect((await dropping).dropped).toHaveLength(1);
  expect(await database.query('select job_id, data is not null as saved from outbox_held')).toEqual([
    { job_id: jobId, saved: true },
  ]);
});

test('a release from quarantine waits while a day is being dropped', async () => {
  await using service = await startTestService();
  const { database } = service;
  const api = await operators(service, { role: 'operator' });
  await using dropping = await openTransaction(database);
  await dropping.query('select pg_advisory_xact_lock(7461193)');

  const answers = Promise.all([
    orderOne(api, 'quarantine/release', crypto.randomUUID()),
    api.post('/quarantine/release', { filter: {} }),
  ]);
  await expect.poll(() => lockWaits(database)).toEqual([{ kind: 'advisory' }, { kind: 'advisory' }]);
  await dropping.rollback();

  expect((await answers).map(({ status }) => status)).toEqual([200, 200]);
});

test('the service saves what a day has, also as a role that owns nothing', async () => {
  const exchange = newExchange();
  await using roles = await createRoles();
  const { database, migrating, running } = roles;
  await migrate(running.url, migrating.url);
  await using connection = connect(running);
  await makePartitions(connection);
  await addOldDays(database);
  for (const name of await partitionsOf(database, 'deliveries'))
    await database.query(`alter table ${name} owner to ${migrating.name}`);
  const [jobId, strange] = [newJobId(), newJobId()];
  await record(connection, progress(jobId, 10), completed(strange));
  await record(connection, completed(jobId));
  await hold(database, { attempts: 1 }, `${sequenceOf(jobId)} and e.status = 'completed'`);
  await age(database, OLD);
  await database.query(`update deliveries set body = '{}' where job_id = $1`, [strange]);
  const { letGo } = await holdOutbox(database);
  await using bus = await listen(exchange);

  await using service = await startTestService({
    database: { ...database, url: running.url },
    exchange,
    env: { RETENTION_DAYS: String(retentionDays) },
  });
  await expect
    .poll(() => database.query(`select from deliveries where received_at < now() - interval '19 days'`))
    .toEqual([]);
  await letGo();

  await bus.received(2);
  expect(bus.ids()).toEqual([`default:${jobId}:processing:10`, `default:${jobId}:completed`]);
  await expect
    .poll(() => entries(database))
    .toEqual([expect.objectContaining({ job_id: strange, state: 'parked' })]);
  expect(service.log.filter(({ part }) => part === 'partitions')).toEqual([]);
});
