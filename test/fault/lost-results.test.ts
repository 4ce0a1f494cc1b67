import { expect, test } from 'vitest';
import { migrate } from '../../src/ledger/schema/migrate.ts';
import { listen, newExchange } from '../support/bus.ts';
import { outboxCount } from '../support/facts.ts';
import { startOwnPostgres } from '../support/own-servers.ts';
import { connectTestDatabase, createTestRelay } from '../support/relay.ts';
import { idsOf, write } from '../support/relay-stage.ts';
import { completed, newJobId } from '../support/sender.ts';
import { waitFor } from '../support/waits.ts';

/** A crash loses nothing if something durable was committed just before it. */
const ROUNDS = 10;

test('results that a crash of Postgres has lost are written again, after a second copy', async () => {
  await using postgres = await startOwnPostgres({ wal_writer_delay: '10s' });
  await using database = await postgres.createDatabase();
  await migrate(database.url);
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using connection = connectTestDatabase(database);
  await using leader = await createTestRelay({ database, exchange });
  await leader.lease.attempt();
  await leader.runUntil(() => true);

  let lost = 0;
  for (let round = 0; round < ROUNDS && lost === 0; round++) {
    await write(leader, connection, [completed(newJobId())]);
    await leader.runUntil(async () => (await outboxCount(database)) === 0);
    await postgres.server.kill('SIGKILL');
    await postgres.server.start();
    lost = await outboxCount(database);
  }
  expect(lost).toBe(1);
  // Others have taken the numbers of the lost transactions before the relay looks again.
  for (let number = 0; number < 10; number++) await database.query('select pg_current_xact_id()');
  const id = idsOf(leader).at(-1);

  await leader.runUntil(async () => (await outboxCount(database)) === 0);

  expect(idsOf(leader).slice(-2)).toEqual([id, id]);
  await waitFor(() => expect(bus.ids().slice(-2)).toEqual([id, id]));
});
