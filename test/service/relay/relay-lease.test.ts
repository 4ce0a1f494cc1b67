import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createLease } from '../../../src/ledger/upkeep/lease.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { outboxCount, outOfOrder, untilOutboxEmpty } from '../../support/facts.ts';
import { promisedMs } from '../../support/patience.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { addEntry, connectTestDatabase, createTestRelay } from '../../support/relay.ts';
import { readMetric } from '../../support/requests.ts';
import { completed, deliver, newJobId, progress } from '../../support/sender.ts';
import { createTestLog, startTestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

type Connection = ReturnType<typeof connectTestDatabase>;

function leaseOn(
  connection: Connection,
  options: { name?: 'watch'; leaseMs?: number; now?: () => number; mayLead?: () => boolean } = {},
) {
  return createLease({
    name: options.name ?? 'outbox',
    connection,
    holder: randomUUID(),
    leaseMs: options.leaseMs ?? 60_000,
    now: options.now ?? (() => performance.now()),
    log: createTestLog().log,
    mayLead: options.mayLead ?? (() => true),
    onTaken: () => {},
  });
}

/** `lapse`: by its holder's own clock it has run out. */
async function takeLease(connection: Connection) {
  let clockMs = 0;
  const lease = leaseOn(connection, { now: () => clockMs });
  await lease.attempt();
  return { lease, before: lease.epoch(), lapse: () => (clockMs = 60_000) };
}

/** The database's clock moves on, as far as the lease is concerned. */
function expire(database: TestDatabase): Promise<unknown> {
  return database.query(`update relay_lease set expires_at = clock_timestamp() - interval '1 ms'`);
}

/** As a session finds it that begins on another server; or on the same one after a start. */
async function startAnew(
  database: TestDatabase,
  { timeline }: { timeline: 'new' | 'the same' },
): Promise<void> {
  const was = timeline === 'new' ? `timeline = '00000000'` : `started_at = started_at - interval '1 s'`;
  await database.query(`alter table database_identity disable trigger user`);
  await database.query(`update database_identity set ${was}`);
  await database.query(`alter table database_identity enable trigger user`);
  await database.query('select from verify_identity()');
}

test('of many that ask at once, one holds the lease', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const leases = Array.from({ length: 12 }, () => leaseOn(connection));

  const held = await Promise.all(leases.map((lease) => lease.attempt()));

  expect(held.filter(Boolean)).toHaveLength(1);
  expect(leases.map((lease) => lease.isLeading())).toEqual(held);
});

test('a lease that is held is not taken, one that ran out is, and the one who lost it learns so', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const [first, second] = [leaseOn(connection), leaseOn(connection)];
  expect(await first.attempt()).toBe(true);
  expect(await second.attempt()).toBe(false);
  expect(await first.attempt()).toBe(true); // renewed

  await expire(database);

  expect(await second.attempt()).toBe(true);
  expect(await first.attempt()).toBe(false);
  expect(first.isLeading()).toBe(false);
  const rows = await database.query('select holder, epoch from relay_lease');
  expect(rows).toEqual([{ holder: second.holder, epoch: '2' }]);
});

test('R47: on a server that was promoted, a lease that has run out is nobody’s until it might have run out on the former one', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const [first, second] = [leaseOn(connection), leaseOn(connection)];
  await first.attempt();
  await startAnew(database, { timeline: 'new' });
  expect(await second.attempt()).toBe(false);
  expect(await first.attempt()).toBe(true); // it has not run out, so nobody else has taken it

  await expire(database);
  expect([await first.attempt(), await second.attempt()]).toEqual([false, false]);
  await database.query(`update relay_lease set promoted_at = promoted_at - interval '60 s'`);
  expect(await second.attempt()).toBe(true);

  await startAnew(database, { timeline: 'the same' });
  await expire(database);
  expect(await first.attempt()).toBe(true); // the same server was only started anew
});

test('R47: whoever held it when the server was promoted, and has not led since, waits as all others do and has another epoch', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const { lease, before, lapse } = await takeLease(connection);
  await startAnew(database, { timeline: 'new' });

  lapse();
  expect(await lease.attempt()).toBe(false);
  // A minute later. The lease was given out before the promotion.
  await database.query(
    `update relay_lease set promoted_at = promoted_at - interval '60 s', expires_at = expires_at - interval '60 s'`,
  );
  expect(await lease.attempt()).toBe(true);
  expect(lease.epoch()).not.toBe(before);
});

test('a holder whose lease ran out, and that nobody took, has it again with its epoch', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const { lease, before, lapse } = await takeLease(connection);

  lapse();
  await expire(database);
  expect(await lease.attempt()).toBe(true);
  expect(lease.epoch()).toBe(before);
});

test('a holder whose own clock says that the lease may have run out does not trust it, without asking anyone', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  let clockMs = 1_000;
  const lease = leaseOn(connection, { leaseMs: 3_000, now: () => clockMs });
  await lease.attempt();

  clockMs = 3_999;
  expect(lease.isLeading()).toBe(true);
  clockMs = 4_000;
  expect(lease.isLeading()).toBe(false);
});

test('a leader that may lead no longer gives the lease up, and another takes it at once', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  let reachesBroker = true;
  const first = leaseOn(connection, { leaseMs: 300, mayLead: () => reachesBroker });
  const second = leaseOn(connection);
  first.start();
  await waitFor(() => expect(first.isLeading()).toBe(true));
  expect(await second.attempt()).toBe(false);

  reachesBroker = false;

  await waitFor(async () => expect(await second.attempt()).toBe(true));
  expect(first.isLeading()).toBe(false);
  reachesBroker = true;
  await second.release();
  await waitFor(() => expect(first.isLeading()).toBe(true));
  await first.release();
});

test('the time that it took to ask counts against the lease', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  // Frozen for longer than the lease between the question and the answer.
  let readings = 0;
  const lease = leaseOn(connection, { leaseMs: 3_000, now: () => (readings++ === 0 ? 0 : 3_500) });

  expect(await lease.attempt()).toBe(false);
});

test('a lease that is released can be taken at once, and a second release takes nothing from the new holder', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const [first, second, third] = [leaseOn(connection), leaseOn(connection), leaseOn(connection)];
  await first.release(); // before anything
  expect(await second.attempt()).toBe(true);
  await second.release();
  expect(second.isLeading()).toBe(false);
  expect(await third.attempt()).toBe(true);

  await second.release();

  expect(await leaseOn(connection).attempt()).toBe(false);
  expect(third.isLeading()).toBe(true);
});

test('a lease that ran out leaves since when nobody led, and one that was given up does not', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const read = async () =>
    (
      await database.query(`
        select since is null as free, lapsed_at < since as lapsed, since > now() - interval '1 minute' as fresh
        from relay_lease`)
    )[0];
  const [first, second, third] = [leaseOn(connection), leaseOn(connection), leaseOn(connection)];
  await first.attempt();
  await database.query(`update relay_lease set since = since - interval '1 hour'`);
  await first.attempt();
  expect(await read()).toEqual({ free: false, lapsed: null, fresh: false });

  await expire(database);
  await second.attempt();
  expect(await read()).toEqual({ free: false, lapsed: true, fresh: true });
  await second.attempt();
  expect(await read()).toMatchObject({ lapsed: true });

  await second.release();
  expect(await read()).toMatchObject({ free: true });
  await expire(database);
  await third.attempt();
  expect(await read()).toEqual({ free: false, lapsed: null, fresh: true });
});

test('the leases of the relay and of the watch are held apart', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const [ofRelay, ofWatch] = [leaseOn(connection), leaseOn(connection, { name: 'watch' })];
  expect(await ofRelay.attempt()).toBe(true);
  expect(await ofWatch.attempt()).toBe(true);
  await ofWatch.release();
  expect(await ofRelay.attempt()).toBe(true);
  expect(await leaseOn(connection).attempt()).toBe(false);
});

test('a lease that was released is not taken again by an attempt that was under way', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const lease = leaseOn(connection);
  lease.start();

  await lease.release();

  expect(lease.isLeading()).toBe(false);
  expect(await leaseOn(connection).attempt()).toBe(true);
});

test('the second replica publishes nothing while the first leads, and leads at once when that stops cleanly', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  // So long that only a lease given up can be taken within this test.
  const env = { RELAY_LEASE_MS: '6000' };
  await using first = await startTestService({ exchange, database, env });
  await waitFor(async () => expect(await readMetric(first.operators, 'tallyhook_relay_lease_held')).toBe(1));
  await using second = await startTestService({ exchange, database, env });
  const job = newJobId();
  for (const percent of [0, 25, 50]) await deliver(second.webhooks, progress(job, percent));
  await bus.received(3);
  await untilOutboxEmpty(database);
  const relays = () =>
    database.query<{ relay_id: string }>(`select distinct relay_id from ${PUBLICATIONS} p order by 1`);
  expect(await relays()).toHaveLength(1);
  expect(await readMetric(second.operators, 'tallyhook_relay_lease_held')).toBe(0);
  expect(
    await readMetric(second.operators, 'tallyhook_publications_total{result="confirmed"}').catch(() => 0),
  ).toBe(0);

  await first.service.stop();
  const stoppedMs = performance.now();
  await deliver(second.webhooks, completed(job));
  await bus.received(4);

  // A third of the lease until it asks again, and not the whole of it.
  expect(performance.now() - stoppedMs).toBeLessThan(promisedMs(4_000));
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(bus.messages).toHaveLength(4);
  await waitFor(async () => expect(await relays()).toHaveLength(2));
});

test('a leader that loses the lease publishes no more, forgets what it had loaded, and the next one sends it once', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const job = newJobId();
  for (let percent = 1; percent <= 20; percent++) await addEntry(database, { jobId: job, percent });
  await using first = await createTestRelay({ database, exchange });
  await using second = await createTestRelay({ database, exchange });
  await first.lease.attempt();
  const letGo = first.holdPublishes(); // frozen between its decision and the wire
  await first.relay.runOnce();
  expect(first.published).toHaveLength(1);

  await expire(database);
  expect(await second.lease.attempt()).toBe(true);
  await second.runUntil(async () => (await outboxCount(database)) === 0);
  expect(await first.lease.attempt()).toBe(false);
  letGo();
  // The one that was on its way comes as a copy; the nineteen behind it stay where they are.
  await waitFor(() => expect(first.relay.inFlight()).toBe(0));
  expect(first.published).toHaveLength(1);

  // And are forgotten: when it leads again it asks the outbox, where nothing is left.
  await first.relay.runOnce();
  await second.lease.release();
  expect(await first.lease.attempt()).toBe(true);
  await first.relay.runOnce();
  await addEntry(database, { jobId: job, percent: 90 });
  await first.runUntil(async () => (await outboxCount(database)) === 0);
  expect(first.published).toHaveLength(2);
  await bus.received(22);
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(new Set(bus.ids()).size).toBe(21);
});

test('a leader that got its lease back without noticing the loss breaks no order and loses nothing', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const job = newJobId();
  for (let percent = 1; percent <= 10; percent++) await addEntry(database, { jobId: job, percent });
  await using first = await createTestRelay({ database, exchange });
  await using second = await createTestRelay({ database, exchange });
  await first.lease.attempt();
  const letGo = first.holdPublishes();
  await first.relay.runOnce();

  await expire(database);
  await second.lease.attempt();
  await second.runUntil(async () => (await outboxCount(database)) === 0);
  await addEntry(database, { jobId: job, percent: 90 });
  await second.lease.release();
  expect(await first.lease.attempt()).toBe(true);
  letGo();
  await first.runUntil(async () => first.relay.inFlight() === 0 && (await outboxCount(database)) === 0);

  await waitFor(() => expect(bus.ids()).toContain(`default:${job}:processing:90`));
  expect(outOfOrder(bus.messages)).toEqual([]);
  expect(new Set(bus.ids()).size).toBe(11);
});
