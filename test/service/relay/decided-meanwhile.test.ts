// What an operator or another leader decides about an event while it is in a relay's memory or on its way.

import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { IS_SHORT_RUN } from '../../only-in-all.ts';
import type { DatabaseConnection } from '../../../src/ledger/index.ts';
import { amqpUrl } from '../../support/bus.ts';
import type { TestDatabase } from '../../support/database.ts';
import { outboxCount } from '../../support/facts.ts';
import { hold } from '../../support/outbox.ts';
import { startProxy } from '../../support/proxy.ts';
import { promisedMs } from '../../support/patience.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { addEntries, addEntry, decideNow } from '../../support/relay.ts';
import {
  allPending,
  createStage,
  type Stage,
  endLease,
  ids,
  idsOf,
  isEmpty,
  isIdle,
  write,
} from '../../support/relay-stage.ts';
import { newJobId, progress } from '../../support/sender.ts';
import { openTransaction } from '../../support/transaction.ts';
import { pause } from '../../support/until.ts';
import { waitFor } from '../../support/waits.ts';

const NACKED = {
  number: 1,
  publication: { result: 'nacked', detail: 'a test', blame: 'event', durationMs: 1 },
  retryInMs: 1_000,
} as const;

async function park({ db }: DatabaseConnection, sequence = ''): Promise<void> {
  const { decided } = await decideNow(db, 'park', { ids: [sequence] });
  if (decided.length !== 1) throw new Error('no such entry');
}

const discardParked = ({ db }: DatabaseConnection) =>
  decideNow(db, 'discard', { filter: { state: 'parked' } });

/** Within this time a decision takes effect (docs/operators.md). */
const PROMISED_MS = promisedMs(1_000);

async function sequenceOf(database: TestDatabase, jobId: string, percent: number): Promise<string> {
  const [row] = await database.query<{ sequence: string }>(
    'select sequence from events where job_id = $1 and progress_percentage = $2',
    [jobId, percent],
  );
  if (row === undefined) throw new Error('no such event');
  return row.sequence;
}

/** How many statements with this text wait for a lock. */
async function waiting(database: TestDatabase, text: string): Promise<number> {
  const rows = await database.query(
    `select from pg_stat_activity
     where wait_event_type = 'Lock' and position($1 in query) > 0 and datname = current_database()`,
    [text],
  );
  return rows.length;
}

test('what is discarded while the relay has no room for more does not go out', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const jobId = newJobId();
  const sequences: string[] = [];
  for (const percent of [1, 2, 3, 4, 5]) sequences.push(await addEntry(database, { jobId, percent }));
  const relay = await stage.addRelay({ limits: { inFlight: 2 } }); // room for 4
  await relay.lease.attempt();
  const letGo = relay.holdPublishes();
  await relay.relay.runOnce();
  expect(idsOf(relay)).toEqual(ids(jobId, 1));

  await park(connection, sequences[2]);
  await discardParked(connection);
  await relay.relay.runOnce();
  letGo();
  await relay.runUntil(isEmpty(database));

  expect(idsOf(relay)).toEqual(ids(jobId, 1, 2, 4, 5));
});

test('what an operator parks does not go out, though the relay has no room to load anything', async () => {
  await using stage = await createStage();
  const { database, connection, bus } = stage;
  const relay = await stage.addLeader({ limits: { inFlight: 1 } });
  const jobId = newJobId();
  const letGo = relay.holdPublishes();
  await write(relay, connection, [progress(jobId, 10)]);
  await write(relay, connection, [progress(jobId, 20)]);
  await hold(database, { state: 'parked' }, 'e.progress_percentage = 20');

  await relay.relay.runOnce();
  letGo();
  await relay.runUntil(async () => (await outboxCount(database)) === 1);
  await relay.relay.runOnce();

  await bus.received(1);
  expect(idsOf(relay)).toEqual(ids(jobId, 10));
});

test.skipIf(IS_SHORT_RUN)(
  'what an operator parks does not go out, though the relay reads its whole outbox again',
  async () => {
    await using stage = await createStage();
    const { database, connection, bus } = stage;
    const relay = await stage.addLeader();
    const jobId = newJobId();
    const letGo = relay.holdPublishes();
    await write(relay, connection, [progress(jobId, 10)]);
    await write(relay, connection, [progress(jobId, 20)]);
    await hold(database, { state: 'parked' }, 'e.progress_percentage = 20');
    // Nobody knows whether this one was committed, so the next load begins anew.
    await expect(relay.handOff.write([], () => Promise.reject(new Error('no answer')))).rejects.toThrow(
      'no answer',
    );

    await relay.relay.runOnce();
    letGo();
    await relay.runUntil(async () => (await outboxCount(database)) === 1);
    await relay.relay.runOnce();

    await bus.received(1);
    expect(idsOf(relay)).toEqual(ids(jobId, 10));
  },
);

test('what an operator parks does not go out a second later, even while the relay waits to write results', async () => {
  await using stage = await createStage();
  const { database, connection, bus } = stage;
  const relay = await stage.addLeader();
  const jobId = newJobId();
  const letGo = relay.holdPublishes();
  await write(relay, connection, [progress(jobId, 10)]);
  await write(relay, connection, [progress(jobId, 20)]);
  relay.holdPublishes()(); // the next ones go at once
  const locked = await openTransaction(database);
  await locked.query('lock table publication_batches in exclusive mode');
  relay.relay.start();
  await write(relay, connection, [progress(newJobId(), 30)]);
  await waitFor(async () => expect(await waiting(database, 'into publication_batches')).toBe(1));

  await park(connection, await sequenceOf(database, jobId, 20));
  await pause(PROMISED_MS);
  letGo();
  await bus.received(2);
  await locked.rollback();
  await waitFor(async () => expect(await outboxCount(database)).toBe(1));

  expect(idsOf(relay)).not.toContain(ids(jobId, 20)[0]);
});

test('a held event that is parked while a load reads does not go out a second later', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const relay = await stage.addLeader({ limits: { inFlight: 1 } });
  const [other, jobId] = [newJobId(), newJobId()];
  const letGo = relay.holdPublishes();
  await write(relay, connection, [progress(other, 10)]);
  await addEntry(database, { jobId, percent: 20 });
  await hold(database, {}, 'e.progress_percentage = 20');
  // The load has read what is held, and waits for the batches. A park waits for these, too: so it is written by hand.
  const locked = await openTransaction(database);
  await locked.query('lock table outbox_batches in access exclusive mode');
  const round = relay.relay.runOnce();
  await waitFor(async () => expect(await waiting(database, 'outbox_batches')).toBe(1));
  await locked.query("update outbox_held set state = 'parked'");
  await locked.query('update outbox_version set version = version + 1');
  await locked.query('commit');
  await round;

  await relay.relay.runOnce(); // the relay reads within a second what was decided
  letGo();
  await relay.runUntil(async () => (await outboxCount(database)) === 1);
  await relay.relay.runOnce();

  expect(idsOf(relay)).toEqual(ids(other, 10));
});

test('nothing goes from memory while the relay cannot read what operators decide', async () => {
  await using stage = await createStage();
  const { database, connection, bus } = stage;
  const relay = await stage.addLeader();
  const jobId = newJobId();
  const letGo = relay.holdPublishes();
  await write(relay, connection, [progress(jobId, 10)]);
  await write(relay, connection, [progress(jobId, 20)]);
  relay.relay.start();
  const locked = await openTransaction(database);
  await locked.query('lock table outbox_version in access exclusive mode');
  await pause(PROMISED_MS);

  letGo();
  await bus.received(1);
  await isIdle(relay);
  expect(idsOf(relay)).toEqual(ids(jobId, 10));
  await locked.rollback();

  await bus.received(2);
  expect(idsOf(relay)).toEqual(ids(jobId, 10, 20));
});

test.skipIf(IS_SHORT_RUN)('events go out while operators decide about others all the time', async () => {
  await using stage = await createStage();
  const { database } = stage;
  const jobIds = Array.from({ length: 1_000 }, newJobId);
  await addEntries(database, jobIds);
  const relay = await stage.addRelay();
  await relay.lease.attempt();
  const decided = new AbortController();
  const deciding = (async () => {
    while (!decided.signal.aborted) {
      await database.query('update outbox_version set version = version + 1');
    }
  })();

  relay.relay.start();
  const published = () => expect(new Set(idsOf(relay)).size).toBe(jobIds.length);
  await waitFor(published).finally(() => decided.abort());
  await deciding;
});

test('what an operator parks while it is on its way is not published again when the broker is back', async () => {
  await using stage = await createStage();
  const { database, connection, bus } = stage;
  await using proxy = await startProxy(amqpUrl(), { defaultPort: 5672, counts: 'bytes' });
  const relay = await stage.addLeader({ amqpUrl: proxy.url });
  const [jobId, other] = [newJobId(), newJobId()];
  proxy.silence();
  await write(relay, connection, [progress(jobId, 10)]);
  await write(relay, connection, [progress(jobId, 20)]);
  await write(relay, connection, [progress(other, 30)]);
  await write(relay, connection, [progress(other, 40)]);
  await hold(database, { state: 'parked' }, 'e.progress_percentage in (10, 40)');
  await relay.relay.runOnce();
  proxy.reset();
  proxy.heal();
  await waitFor(() => expect(relay.publisher.isReady()).toBe(false));
  await waitFor(() => expect(relay.publisher.isReady()).toBe(true));

  await relay.runUntil(async () => (await outboxCount(database)) === 3);
  await relay.relay.runOnce();

  await bus.received(1);
  expect(idsOf(relay)).toEqual([...ids(jobId, 10), ...ids(other, 30, 30)]);
});

test.skipIf(IS_SHORT_RUN)(
  'what an operator parks while the broker is away is not published when it is back',
  async () => {
    await using stage = await createStage();
    const { database, connection, bus } = stage;
    await using proxy = await startProxy(amqpUrl(), { defaultPort: 5672, counts: 'bytes' });
    const relay = await stage.addLeader({ amqpUrl: proxy.url });
    const jobId = newJobId();
    proxy.silence();
    await write(relay, connection, [progress(jobId, 10)]);
    await write(relay, connection, [progress(jobId, 20)]);
    proxy.refuse();
    proxy.reset();
    await waitFor(() => expect(relay.publisher.isReady()).toBe(false));
    await hold(database, { state: 'parked' }, 'e.progress_percentage = 20');
    await write(relay, connection, [progress(newJobId(), 30)]);
    await relay.relay.runOnce();
    proxy.heal();

    await relay.runUntil(async () => (await outboxCount(database)) === 1);
    await relay.relay.runOnce();

    await bus.received(1);
    expect(idsOf(relay)).not.toContain(ids(jobId, 20)[0]);
  },
);

test('an event that is parked on its way and then confirmed has a publication, and its job goes on', async () => {
  for (const rest of [[], [2]]) {
    await using stage = await createStage();
    const { database, connection, bus } = stage;
    const jobId = newJobId();
    const relay = await stage.addRelay();
    await relay.lease.attempt();
    await relay.relay.runOnce();
    const letGo = relay.holdPublishes();
    // Alone in its batch, and with another one.
    const others = rest.map((percent) => progress(newJobId(), percent));
    await write(relay, connection, [progress(jobId, 1), ...others]);
    await park(connection, await sequenceOf(database, jobId, 1));
    letGo();
    await bus.received(1 + rest.length);
    await isIdle(relay);
    await write(relay, connection, [progress(jobId, 50)]);
    await relay.runUntil(isEmpty(database));

    expect(idsOf(relay).filter((id) => id.includes(jobId))).toEqual(ids(jobId, 1, 50));
    expect(await database.query(`select from ${PUBLICATIONS} p`)).toHaveLength(2 + rest.length);
    expect(await database.query('select from jobs where is_held')).toEqual([]);
  }
});

test.skipIf(IS_SHORT_RUN)(
  'an event that is discarded on its way and then confirmed has a publication',
  async () => {
    for (const rest of [[], [2]]) {
      await using stage = await createStage();
      const { database, connection, bus } = stage;
      const jobId = newJobId();
      const relay = await stage.addLeader();
      const letGo = relay.holdPublishes();
      // Alone in its batch, and with another one.
      const others = rest.map((percent) => progress(newJobId(), percent));
      await write(relay, connection, [progress(jobId, 1), ...others]);
      await park(connection, await sequenceOf(database, jobId, 1));
      await discardParked(connection);
      letGo();
      await bus.received(1 + rest.length);
      await isIdle(relay);
      await relay.runUntil(isEmpty(database));
      await relay.relay.runOnce();

      expect(await database.query(`select from ${PUBLICATIONS} p where result = 'confirmed'`)).toHaveLength(
        1 + rest.length,
      );
      expect(await database.query('select from jobs where is_held')).toEqual([]);
    }
  },
);

/** A relay that has loaded a held event, which an operator has parked since. */
async function parkOnItsWay({ database, connection, addRelay }: Stage) {
  const relay = await addRelay();
  const sequence = await addEntry(database, { jobId: newJobId(), percent: 1 });
  await park(connection, sequence);
  await connection.db.updateTable('outbox_held').set({ state: 'pending' }).execute();
  const [entry] = await relay.outbox.loadHeld({ limit: 10, bytes: 1_000_000, except: [] });
  if (entry === undefined) throw new Error('nothing is held');
  await park(connection, sequence);
  return { relay, entry };
}

test('each attempt of a held event is on record, also if the event is discarded meanwhile, and once', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const { relay, entry } = await parkOnItsWay(stage);
  await discardParked(connection);

  const unwritten = { single: [], whole: [], held: [{ entry, next: 'retry', ...NACKED }] } as const;
  await relay.outbox.settle(unwritten);
  await relay.outbox.settle(unwritten); // the first answer was lost

  expect(await database.query(`select result, attempt from ${PUBLICATIONS} p`)).toEqual([
    { result: 'nacked', attempt: entry.attempts + 1 },
  ]);
});

test.skipIf(IS_SHORT_RUN)(
  'a repeated settle of an event that an operator has parked records its publication once',
  async () => {
    await using stage = await createStage();
    const { database } = stage;
    const { relay, entry } = await parkOnItsWay(stage);

    const unwritten = { single: [], whole: [], held: [{ entry, next: 'retry', ...NACKED }] } as const;
    await relay.outbox.settle(unwritten);
    await relay.outbox.settle(unwritten); // the first answer was lost

    expect(await database.query(`select from ${PUBLICATIONS} p`)).toHaveLength(1);
    expect(await database.query('select state, attempts, last_error from outbox_held')).toEqual([
      { state: 'parked', attempts: 2, last_error: 'parked by a test' },
    ]);
  },
);

test('a leader that lost its lease and has it again does not publish what was discarded meanwhile', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const jobId = newJobId();
  for (const percent of [1, 2]) await addEntry(database, { jobId, percent });
  const relay = await stage.addRelay();
  const other = await stage.addRelay();
  await relay.lease.attempt();
  const letGo = relay.holdPublishes();
  await relay.relay.runOnce(); // 1 is on its way, 2 waits

  await endLease(database);
  await other.lease.attempt();
  expect(await relay.lease.attempt()).toBe(false);
  const [, second] = await allPending(other);
  if (second === undefined) throw new Error('not all were loaded');
  await other.outbox.settle({ single: [{ entry: second, next: 'park', ...NACKED }], whole: [], held: [] });
  await discardParked(connection);
  await other.lease.release();
  await endLease(database);
  expect(await relay.lease.attempt()).toBe(true);
  await relay.relay.runOnce();
  letGo();
  await relay.runUntil(isEmpty(database));

  expect(idsOf(relay)).toEqual(ids(jobId, 1));
});

test.skipIf(IS_SHORT_RUN)('nor what waits behind an event that the other leader has held', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const jobId = newJobId();
  const relay = await stage.addLeader();
  const other = await stage.addRelay();
  await write(other, connection, [progress(jobId, 10)]);
  await write(relay, connection, [progress(jobId, 20)]); // behind a gate

  await endLease(database);
  await other.lease.attempt();
  const [first, second] = await allPending(other);
  if (!first || !second) throw new Error('not all were loaded');
  const single = [
    { entry: first, next: 'retry', ...NACKED },
    { entry: second, next: 'hold', retryInMs: 0 },
  ] as const;
  await other.outbox.settle({ single, whole: [], held: [] });
  await other.lease.release();
  await endLease(database);
  await relay.lease.attempt();
  await relay.runUntil(isEmpty(database));

  expect(idsOf(relay)).toEqual(ids(jobId, 10, 20));
});

test('a former leader that writes a failure, and an operator who parks an event of that job, do not lock each other out', async () => {
  await using stage = await createStage();
  const { database, connection } = stage;
  const former = await stage.addRelay();
  const jobId = newJobId();
  await addEntry(database, { jobId, percent: 1 });
  const single = (await allPending(former)).map(
    (entry) => ({ ...NACKED, entry, next: 'retry', retryInMs: 0 }) as const,
  );
  let settled: Promise<void> | undefined;
  // As a park of another event of the job does: first the job, then the version.
  const parked = connection.db.transaction().execute(async (trx) => {
    await sql`select from jobs where job_id = ${jobId} for update`.execute(trx);
    settled = former.outbox.settle({ single, whole: [], held: [] });
    settled.catch(() => {});
    while ((await waiting(database, 'settled as')) === 0) await pause(10);
    await sql`update outbox_version set version = version + 1`.execute(trx);
  });

  await expect(parked).resolves.toBeUndefined();
  await expect(settled).resolves.toBeUndefined();
  expect(await outboxCount(database)).toBe(1);
});
