import { expect, test } from 'vitest';
import { type Bus, listen, newExchange } from '../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { copies, eventIds, outboxCount, outOfOrder, untilOutboxEmpty } from '../support/facts.ts';
import { type Load, post, startLoad } from '../support/load.ts';
import { PUBLICATIONS } from '../support/publications.ts';
import { addEntries } from '../support/relay.ts';
import { startReplica, untilLeading } from '../support/replica.ts';
import { completed, isAcknowledged, newJobId } from '../support/sender.ts';
import { openTransaction } from '../support/transaction.ts';
import { waitFor } from '../support/waits.ts';
import { patience, promisedMs } from '../support/patience.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';

test.skipIf(IS_SHORT_RUN)(
  'SIGKILL between publish and mark: nothing is lost, and there is at most one more copy, under the same id',
  async () => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    await using bus = await listen(exchange);
    const jobs = Array.from({ length: 100 }, newJobId);
    const env = { RELAY_LEASE_MS: String(patience(1_000)) };
    await using leader = await startReplica({ databaseUrl: database.url, exchange, env });
    await untilLeading(leader);
    {
      // Only marking an event as published writes to these tables. So the leader publishes but cannot mark.
      await using lock = await openTransaction(database);
      await lock.query('lock table publications, publication_batches in exclusive mode');
      // All in one commit, so that the leader loads them together, before the first mark blocks.
      await addEntries(database, jobs);
      await bus.received(jobs.length);
      expect(await outboxCount(database)).toBe(jobs.length);

      leader.kill('SIGKILL');
      await leader.exited;
      // Its last mark must not be committed after its death.
      await database.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = $1 and application_name like 'tallyhook%'`,
        [database.name],
      );
    }
    await using next = await startReplica({ databaseUrl: database.url, exchange, env });

    await untilOutboxEmpty(database);

    await bus.received(2 * jobs.length);
    expect(next.hasExited()).toBe(false);
    const counts = copies(bus.messages);
    expect([...counts.keys()].toSorted()).toEqual(jobs.map((job) => `default:${job}:completed`).toSorted());
    expect([...counts.values()].filter((count) => count > 2)).toEqual([]);
  },
);

test('SIGKILL of the leader under load: another takes over within 5 s, and every 2xx arrives, in order', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using leader = await startReplica({ databaseUrl: database.url, exchange });
  await untilLeading(leader);
  await using other = await startReplica({ databaseUrl: database.url, exchange });
  await using load = startLoad(
    () => (leader.hasExited() ? [other.webhooks] : [leader.webhooks, other.webhooks]),
    {
      senders: 8,
      pauseMs: 2,
    },
  );
  await load.reached(200);

  leader.kill('SIGKILL');
  await leader.exited;
  const killedMs = performance.now();
  const marker = await post(other.webhooks, completed(newJobId()));
  await waitFor(() => expect(bus.ids()).toContain(marker.eventId), { timeout: 5_000, interval: 20 });

  expect(performance.now() - killedMs).toBeLessThan(promisedMs(5_000));
  await load.reached(load.acknowledged().size + 100);
  await load.stop();
  await untilOutboxEmpty(database);
  await expectAllArrived(load, database, bus);
  expect([...copies(bus.messages).values()].filter((count) => count > 2)).toEqual([]);
});

test.skipIf(IS_SHORT_RUN)(
  'a leader frozen beyond its lease is replaced within 5 s, and publishes nothing as leader when it thaws',
  async () => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    await using bus = await listen(exchange);
    await using leader = await startReplica({ databaseUrl: database.url, exchange });
    await untilLeading(leader);
    await using other = await startReplica({ databaseUrl: database.url, exchange });
    await using load = startLoad(() => [other.webhooks], { senders: 8, pauseMs: 2 });
    await load.reached(150);

    leader.kill('SIGSTOP');
    const frozenMs = performance.now();
    const marker = await post(other.webhooks, completed(newJobId()));
    await waitFor(() => expect(bus.ids()).toContain(marker.eventId), { timeout: 5_000, interval: 20 });
    expect(performance.now() - frozenMs).toBeLessThan(promisedMs(5_000));
    await untilLeading(other);
    const [before] = await database.query<{ sequence: string }>(
      'select max(sequence) as sequence from events',
    );
    await load.reached(load.acknowledged().size + 100);

    leader.kill('SIGCONT');
    await waitFor(async () => expect(await leader.metric('tallyhook_relay_lease_held')).toBe(0));
    await load.reached(load.acknowledged().size + 100);
    await load.stop();
    await untilOutboxEmpty(database);

    await expectAllArrived(load, database, bus);
    // Everything after the takeover was published by one replica.
    const relays = await database.query(
      `select distinct relay_id from ${PUBLICATIONS} p where event_sequence > $1`,
      [before?.sequence],
    );
    expect(relays).toHaveLength(1);
  },
);

test.skipIf(IS_SHORT_RUN)(
  'a rolling restart of two replicas under load: every 2xx arrives, in order, and answers are only 2xx',
  async () => {
    const exchange = newExchange();
    await using database = await createTestDatabase();
    await using bus = await listen(exchange);
    // For requests that the balancer has already sent.
    const env = { SHUTDOWN_DELAY_MS: '500' };
    await using first = await startReplica({ databaseUrl: database.url, exchange, env });
    await using second = await startReplica({ databaseUrl: database.url, exchange, env });
    let addresses = [first.webhooks, second.webhooks];
    await using load = startLoad(() => addresses, { senders: 8, pauseMs: 2 });
    await load.reached(150);

    // As a balancer does: a replica is removed before it ends, and its successor added when it is ready.
    addresses = [second.webhooks];
    first.kill('SIGTERM');
    expect(await first.exited).toEqual({ code: 0, signal: null });
    await using third = await startReplica({ databaseUrl: database.url, exchange });
    addresses = [second.webhooks, third.webhooks];
    await load.reached(load.acknowledged().size + 100);
    addresses = [third.webhooks];
    second.kill('SIGTERM');
    expect(await second.exited).toEqual({ code: 0, signal: null });
    await using fourth = await startReplica({ databaseUrl: database.url, exchange });
    addresses = [third.webhooks, fourth.webhooks];
    await load.reached(load.acknowledged().size + 100);
    await load.stop();
    await untilOutboxEmpty(database);

    expect(load.answers.filter((answer) => !isAcknowledged(answer))).toEqual([]);
    await expectAllArrived(load, database, bus);
    // There was no fault: a clean hand-over makes no second copy.
    expect([...copies(bus.messages).values()].filter((count) => count !== 1)).toEqual([]);
  },
);

/** Everything acknowledged is in the ledger, and every event of the ledger is on the bus, in order. */
async function expectAllArrived(load: Load, database: TestDatabase, bus: Bus): Promise<void> {
  const tallied = new Set(await eventIds(database));
  await waitFor(() => expect(new Set(bus.ids())).toEqual(tallied));
  expect([...load.acknowledged()].filter((id) => !tallied.has(id))).toEqual([]);
  expect(outOfOrder(bus.messages)).toEqual([]);
}
