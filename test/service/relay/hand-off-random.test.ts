// Random writes by several replicas, with all that may go wrong at once. Whatever happens, each event is confirmed once at
// least, and the first copies of a job go out in the order of its sequences. A failure names its seed: set SEED to repeat it.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { recordDeliveries } from '../../../src/ledger/index.ts';
import { listen, newExchange } from '../../support/bus.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { outboxCount } from '../../support/facts.ts';
import { patience } from '../../support/patience.ts';
import { eventRecord } from '../../support/records.ts';
import { connectTestDatabase, createTestRelay, type TestRelay } from '../../support/relay.ts';
import { newJobId, progress } from '../../support/sender.ts';
import { waitFor } from '../../support/waits.ts';

const JOBS = 3;
const STEPS = 400;

/** mulberry32: the same numbers for the same seed. 0 ≤ number < 1. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** An operator parks one event that waits, wherever it is. */
const PARK = `
with picked as (
  select b.first, s.sequence from outbox_batches b cross join unnest(b.sequences) as s (sequence)
  order by random() limit 1
),
locked as materialized (
  select b.first, picked.sequence from outbox_batches b join picked using (first)
  where picked.sequence = any(b.sequences) for update of b
),
shrunk as (
  update outbox_batches b set sequences = array_remove(sequences, sequence) from locked
  where b.first = locked.first and cardinality(sequences) > 1
),
emptied as (
  delete from outbox_batches b using locked where b.first = locked.first and cardinality(sequences) = 1
),
moved as (
  insert into outbox_held (sequence, source, job_id, status, progress_percentage, late, recorded_at, state, attempts)
  select sequence, source, job_id, status, progress_percentage, late, recorded_at, 'parked', 1
  from locked join events using (sequence) returning source, job_id
),
also as (
  update outbox_held set state = 'parked' where sequence in (
    select sequence from outbox_held where state = 'pending' and not exists (select from moved)
    order by random() limit 1 for update
  ) returning source, job_id
),
version as (update outbox_version set version = version + 1)
update jobs j set is_held = true, hold_version = hold_version + 1 from (select * from moved union all select * from also) t
where j.source = t.source and j.job_id = t.job_id`;

const RETRY = `
with retried as (
  update outbox_held set state = 'pending', attempts = 0, due_at = now() where state = 'parked' returning source, job_id
)
update jobs j set is_held = true, hold_version = hold_version + 1 from (select distinct source, job_id from retried) r
where j.source = r.source and j.job_id = r.job_id`;

test('no event is lost or passes an earlier one of its job, whatever goes wrong at once', async () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  const random = randomOf(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const exchange = newExchange();
  const confirmed: string[] = [];
  await using database = await createTestDatabase();
  await using bus = await listen(exchange);
  await using connection = connectTestDatabase(database);
  await using stack = new AsyncDisposableStack();
  const addReplica = async () => {
    // Little room, so that it is used up often.
    const limits = { inFlight: 4, pollMs: 20, maxAttempts: 1_000 };
    const replica = stack.use(await createTestRelay({ database, exchange, limits, confirmed }));
    replica.relay.start();
    return replica;
  };
  const replicas = [await addReplica(), await addReplica()];
  let leader = replicas[0] as TestRelay;
  await leader.lease.attempt();

  const jobs = Array.from({ length: JOBS }, () => ({ id: newJobId(), next: 0, busy: new Set<TestRelay>() }));
  const pending = new Set<Promise<unknown>>();
  const begin = (work: Promise<unknown>) => {
    const ended: Promise<unknown> = work.catch(() => {}).finally(() => pending.delete(ended));
    pending.add(ended);
  };

  /** As an intake does: at most one event of a job in a write, and none of a job that it is writing. */
  function write(): void {
    const replica = replicas[below(replicas.length)] as TestRelay;
    const taken = jobs.filter(({ busy }) => !busy.has(replica) && random() < 0.4);
    const batch = taken.map((job) => {
      const isCopy = job.next > 0 && random() < 0.15;
      return eventRecord(progress(job.id, isCopy ? below(job.next) : job.next++ % 101, {}), {
        source: job.next > 101 ? 'second' : 'default',
      });
    });
    for (const { busy } of taken) busy.add(replica);
    const [fate, delayMs] = [random(), below(15)];
    const written = replica.handOff.write(batch, async (mark) => {
      const recording = recordDeliveries(connection, batch, mark);
      begin(recording);
      if (fate < 0.03) throw new Error('nobody waited for the answer');
      const recorded = await recording;
      await sleep(delayMs);
      if (fate < 0.08) throw new Error('the answer was lost');
      return recorded;
    });
    begin(
      written.finally(() => {
        for (const { busy } of taken) busy.delete(replica);
      }),
    );
  }

  let full: string | undefined;
  async function toggleRefusals(): Promise<void> {
    if (full !== undefined) {
      await bus.channel.deleteQueue(full);
      full = undefined;
      return;
    }
    const limits = { 'x-max-length': 1, 'x-overflow': 'reject-publish' };
    ({ queue: full } = await bus.channel.assertQueue('', { exclusive: true, arguments: limits }));
    bus.channel.sendToQueue(full, Buffer.from('a filler'));
    await bus.channel.bindQueue(full, exchange, '#');
  }

  /** The former leader goes on as a replica that writes; what it published is written late, or never if it crashes. */
  async function changeLeader(): Promise<void> {
    const former = leader;
    if (random() < 0.5) {
      begin(former.relay.stop(0));
      replicas.splice(replicas.indexOf(former), 1);
    }
    // Their connections may have been cut.
    await untilDone(() => former.lease.release());
    leader = await addReplica();
    replicas.push(leader);
    await untilDone(leader.lease.attempt);
  }

  const cutConnections = () =>
    database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'tallyhook test'`,
    );

  for (let step = 0; step < STEPS; step++) {
    const dice = random();
    if (dice < 0.8) write();
    else if (dice < 0.92) await toggleRefusals();
    else if (dice < 0.96) await database.query(PARK).catch(() => {});
    else if (dice < 0.98) await database.query(RETRY).catch(() => {});
    else if (dice < 0.99) await changeLeader();
    else await cutConnections();
    if (random() < 0.5) await sleep(below(8));
  }
  while (pending.size > 0) await Promise.all(pending);
  if (full !== undefined) await toggleRefusals();
  await expect
    .poll(() => database.query(RETRY).then(() => outboxCount(database)), {
      timeout: patience(40_000),
      interval: 200,
      message: `SEED=${seed}`,
    })
    .toBe(0);

  const accepted = await inOrder(database);
  const first = [...new Set(confirmed)];
  for (const [job, ids] of accepted) {
    expect(
      first.filter((id) => jobOf(id) === job),
      `SEED=${seed}`,
    ).toEqual(ids);
  }
});

/** Again after each error. */
const untilDone = (work: () => Promise<unknown>) => waitFor(work, { timeout: 10_000, interval: 10 });

const jobOf = (id: string) => id.split(':').slice(0, 2).join(':');

/** The ids of each job's events, in the order of their sequences. */
async function inOrder(database: TestDatabase): Promise<Map<string, string[]>> {
  const rows = await database.query<{ id: string }>(
    `select concat_ws(':', source, job_id, status, progress_percentage) as id from events order by sequence`,
  );
  return Map.groupBy(
    rows.map(({ id }) => id),
    jobOf,
  );
}
