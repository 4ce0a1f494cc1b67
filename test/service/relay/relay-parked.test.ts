import { expect, test } from 'vitest';
import { LOAD_HELD } from '../../../src/relay/held.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { outboxCount, outOfOrder } from '../../support/facts.ts';
import { addEntry, connectTestDatabase, createTestRelay, retry } from '../../support/relay.ts';
import { hold } from '../../support/outbox.ts';
import { newJobId } from '../../support/sender.ts';

test('guarantee 5: events that waited behind a parked one follow it when an operator sends it again', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  await using bus = await listen(exchange);
  const jobId = newJobId();
  const parked = await addEntry(database, { jobId, percent: 1 });
  await addEntry(database, { jobId: newJobId() });
  await addEntry(database, { jobId, percent: 2 });
  await hold(database, { state: 'parked', attempts: 20 }, `e.sequence = ${parked}`);
  await using relay = await createTestRelay({ database, exchange });
  await relay.lease.attempt();
  await relay.relay.runOnce();
  expect(relay.published).toHaveLength(1);
  expect(await retry(connection.db, 'parked')).toBe(1);
  await relay.runUntil(async () => (await outboxCount(database)) === 0);
  await bus.received(3);
  expect(outOfOrder(bus.messages)).toEqual([]);
});

test('what an operator parks or discards does not go out, though the relay had read it before', async () => {
  const exchange = newExchange();
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  const jobId = newJobId();
  const sequences: string[] = [];
  for (const percent of [1, 2, 3]) sequences.push(await addEntry(database, { jobId, percent }));
  const others = Array.from({ length: 20 }, () => newJobId());
  for (const job of others) await addEntry(database, { jobId: job });
  let aheadMs = 0;
  await using relay = await createTestRelay({
    database,
    exchange,
    limits: { inFlight: 15 },
    now: () => performance.now() + aheadMs,
  });
  await relay.lease.attempt();
  const letGo = relay.holdPublishes();
  await relay.relay.runOnce();
  expect(relay.published).toHaveLength(15);

  // In memory, behind the first of its job and not on its way; and one that waits for its turn.
  await hold(database, { state: 'parked' }, `e.sequence = ${sequences[1]}`);
  await database.query(
    'delete from outbox_batches where sequences = array(select sequence from events where job_id = $1)',
    [others.at(-1)],
  );
  aheadMs = 10_000;
  await relay.relay.runOnce();
  letGo();

  await relay.runUntil(async () => (await outboxCount(database)) === 2);
  await bus.received(20);
  expect(bus.ids()).not.toContain(`default:${others.at(-1)}:completed`);
  expect(bus.ids().filter((id) => id.includes(jobId))).toEqual([`default:${jobId}:processing:1`]);
});

/** For each job a parked event, and nine pending ones behind it. */
async function parkJobs(database: TestDatabase, jobs: number): Promise<void> {
  await database.query(
    `with job as (
       insert into jobs (source, job_id, first_seen_at, last_seen_at, is_held)
       select 'default', 'job_' || gen_random_uuid(), now(), now(), true from generate_series(1, $1::int) returning job_id
     ),
     event as (
       insert into events (source, job_id, status, progress_percentage, late, recorded_at, delivery_id, content_hash, repeats)
       select 'default', job_id, 'processing', percent, false, now(), gen_random_uuid(), '', 0
       from job cross join generate_series(0, 9) as percent order by percent returning *
     )
     insert into outbox_held (sequence, source, job_id, status, progress_percentage, late, recorded_at, state)
     select sequence, source, job_id, status, progress_percentage, late, recorded_at,
            case progress_percentage when 0 then 'parked' else 'pending' end
     from event`,
    [jobs],
  );
  await database.query('vacuum analyze outbox_held');
}

test('a load reads a bounded number of those that wait behind parked ones', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const blocksOf = async () => {
    const values = { $1: `'{}'::bigint[]`, $2: '1000', $3: '16000000', $4: '0' };
    const text = Object.entries(values).reduce(
      (sum, [name, value]) => sum.replaceAll(name, value),
      LOAD_HELD.text,
    );
    const [row] = await connection.execute<{ 'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number } }] }>(
      { name: '', text: `explain (analyze, buffers, format json) ${text}` },
      [],
    );
    return row?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'] ?? 0;
  };
  await parkJobs(database, 600);
  const few = await blocksOf();
  await parkJobs(database, 3_000);

  expect(await blocksOf()).toBeLessThan(2 * few);
});

test('what is due is found behind any number of those that wait, and in the order of its job', async () => {
  await using database = await createTestDatabase();
  const exchange = newExchange();
  await using relay = await createTestRelay({ database, exchange });
  const [jobId, other] = [newJobId(), newJobId()];
  const first = await addEntry(database, { jobId, percent: 1 });
  await hold(database, {});
  await database.query(`update outbox_held set due_at = now() + interval '1 hour'`);
  await parkJobs(database, 700);
  const second = await addEntry(database, { jobId, percent: 2 });
  const third = await addEntry(database, { jobId: other, percent: 3 });
  await hold(database, {});
  const load = async (except: string[] = []) => {
    const found = await relay.outbox.loadHeld({ limit: 100, bytes: 1_000_000, except });
    return found.map(({ sequence }) => sequence);
  };

  expect(await load()).toEqual([]);
  await database.query('update outbox_held set due_at = now() where sequence = $1', [first]);
  // The job's first event is due, and stands before what is looked at now.
  expect(await load()).toEqual([third]);
  expect(await load([third])).toEqual([]);
  expect(await load([third])).toEqual([first]);
  expect(await load([third, first])).toEqual([]);
  expect(await load([third, first])).toEqual([second]);
});
