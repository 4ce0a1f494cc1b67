import { randomUUID } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { connectDatabase } from '../../src/ledger/sessions/database.ts';
import { createLease, leaseTimeouts } from '../../src/ledger/upkeep/lease.ts';
import { createTestDatabase } from '../support/database.ts';
import { listenOnFreePort } from '../support/origin.ts';
import { readMetric } from '../support/requests.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { createTestLog, startTestService } from '../support/service.ts';
import { openTransaction } from '../support/transaction.ts';
import { waitFor } from '../support/waits.ts';

const TALLIES = ['rollups', 'drift', 'secret matches'];

test('a connection that is not made is given up before the lease could end, and then tried again', async () => {
  await using silent = await listenSilently();
  const { log, lines } = createTestLog();
  const options = { url: `postgres://a:b@127.0.0.1:${silent.port}/c`, name: 'test', connections: 1, log };
  const timeouts = { statementTimeoutMs: 200, lockTimeoutMs: 200, queryTimeoutMs: 200 };
  const usual = connectDatabase({ ...options, ...timeouts });
  const connection = connectDatabase({ ...options, ...leaseTimeouts(300) });
  const lease = createLease({
    name: 'outbox',
    connection,
    holder: randomUUID(),
    leaseMs: 300,
    now: () => performance.now(),
    log,
    mayLead: () => true,
    onTaken: () => {},
  });
  const failed = usual.execute({ name: 'health', text: 'select 1' }, []).catch(() => lines.length);

  lease.start();

  expect(await failed).toBeGreaterThan(2);
  expect(new Set(lines.map(({ msg }) => msg))).toEqual(new Set(['the relay lease could not be renewed']));
  await lease.release().catch(() => {});
  await Promise.all([usual.close(), connection.close()]);
});

/** Accepts connections and never answers. */
async function listenSilently(): Promise<AsyncDisposable & { port: number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  return {
    port: await listenOnFreePort(server),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

test('counts whose turn comes behind one that fails are written when the service stops', async () => {
  await using database = await createTestDatabase();
  await using relay = await startTestService({ database, env: { ANSWER_DEADLINE_MS: '9500' } });
  {
    await using lock = await openTransaction(database);
    await lock.query('lock table rollups in access exclusive mode'); // the write waits for it longer than for a connection
    expect(await deliver(relay.webhooks, completed(newJobId(), { unheard_of: 1 }))).toMatchObject({
      status: 202,
    });

    await relay.service.stop();
  }

  expect(await database.query('select name from drift')).toEqual([{ name: 'unheard_of' }]);
  expect(await database.query('select source from secret_matches')).toEqual([{ source: 'default' }]);
  const lost = relay.log.filter(({ msg }) => msg === 'the last counts are lost');
  expect(lost).toMatchObject([{ tally: 'rollups' }]);
});

test('the lease is renewed while all else beside deliveries waits for Postgres', async () => {
  await using database = await createTestDatabase();
  // Statements wait for a lock for 0.4 of the deadline, which is longer than a lease.
  await using relay = await startTestService({
    database,
    env: { ANSWER_DEADLINE_MS: '9500', REFUSED_ROWS_PER_MINUTE: '0' },
  });
  const said = (msg: string) => relay.log.filter((line) => line['msg'] === msg);
  await waitFor(() => expect(said('this replica leads the relay')).toHaveLength(1));
  await using lock = await openTransaction(database);
  // Before there is anything to count, since counts that are written have nothing to wait for.
  await lock.query('lock table rollups, drift, secret_matches, refusals in access exclusive mode');
  expect(await deliver(relay.webhooks, completed(newJobId(), { unheard_of: 1 }))).toMatchObject({
    status: 202,
  });
  expect(await deliver(relay.webhooks, completed(newJobId()), { secret: 'another' })).toMatchObject({
    status: 401,
  });
  await lock.query('lock table replays, outbox_batches in access exclusive mode');

  // Each has waited until its time-out, and tries again: rounds of the relay, replays, counts, and the gauges.
  await waitFor(
    async () => {
      await readMetric(relay.operators, 'tallyhook_outbox_pending');
      const gaveUp = said('counts stay in memory for now').map(({ tally }) => tally);
      expect(gaveUp).toEqual(expect.arrayContaining(TALLIES)); // another one may have waited for their connection
      expect(said('refusal counts stay in memory for now')).not.toEqual([]);
      expect(said('the relay could not reach its outbox')).not.toEqual([]);
    },
    { timeout: 25_000, interval: 100 },
  );

  expect(said('the relay lease could not be renewed')).toEqual([]);
  expect(said('the relay lease was lost')).toEqual([]);
  expect(said('this replica leads the relay')).toHaveLength(1);
  expect(await readMetric(relay.operators, 'tallyhook_relay_lease_held')).toBe(1);
  const [lease] = await database.query<{ valid: boolean }>(
    `select expires_at > now() as valid from relay_lease where name = 'outbox'`,
  );
  expect(lease).toEqual({ valid: true });
});
