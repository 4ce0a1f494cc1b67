// The statements for replays' copies, without a relay: which copies a load may take, and what their results change.

import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { keepPartitions } from '../../../src/ledger/upkeep/partitions.ts';
import { recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { changeReplay } from '../../../src/operators/replays/changes.queries.ts';
import { createArrivals } from '../../../src/relay/arrivals.ts';
import { loadCopies } from '../../../src/relay/copies.ts';
import { settleCopies } from '../../../src/relay/copy-results.ts';
import { createHandOff } from '../../../src/relay/hand-off.ts';
import { createOutbox } from '../../../src/relay/outbox.ts';
import { createWindow } from '../../../src/relay/window.ts';
import type { NextStep } from '../../../src/relay/next-step.ts';
import type { Attempt, Entry } from '../../../src/relay/entry.ts';
import type { Publication } from '../../../src/relay/publication.ts';
import { createTestDatabase } from '../../support/database.ts';
import { eventRecord } from '../../support/records.ts';
import { createTestDecisions } from '../../support/decisions.ts';
import { addEntry, connectTestDatabase } from '../../support/relay.ts';
import {
  copiesInOutbox,
  countsOf,
  createTestFeeder,
  newReplay,
  seedEvents,
  stateOf,
} from '../../support/replays.ts';
import { progress } from '../../support/sender.ts';

const NO_HORIZON = String(2n ** 63n - 1n);
const THIS_RELAY = randomUUID();
const OTHER_RELAY = randomUUID();

async function newOutbox() {
  const database = await createTestDatabase();
  const connection = connectTestDatabase(database);
  await keepPartitions(connection, { retentionDays: 30 });
  const feeder = createTestFeeder(connection);
  await feeder.after(0);
  const load = (options: { except?: string[]; horizon?: string; limit?: number } = {}) =>
    loadCopies(connection, { limit: 250, bytes: 8_000_000, except: [], horizon: NO_HORIZON, ...options });
  return {
    database,
    connection,
    load,
    /** The copies of a new replay of these events; of all, if none is given. */
    copies: async (options: { ids?: string[]; queue?: string } = {}) => {
      const { ids, queue } = options;
      const which = ids === undefined ? { filter: { source: 'default' } } : { ids };
      const replay = await newReplay(connection, { ...which, ...(queue !== undefined && { queue }) });
      await feeder.after(0);
      await feeder.after(100);
      return { replay, entries: (await load()).filter((entry) => entry.replay?.id === replay.id) };
    },
    settle: (attempts: Attempt[], relay = THIS_RELAY) => settleCopies(connection, attempts, relay),
    publications: () =>
      database.query<{ result: string; attempt: number }>(
        'select result, attempt from publications order by id',
      ),
    [Symbol.asyncDispose]: async () => {
      await connection.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

type TestOutbox = Awaited<ReturnType<typeof newOutbox>>;

const jobsOf = (entries: readonly Entry[]) => entries.map(({ jobId }) => jobId);

const CONFIRMED: Publication = { result: 'confirmed', durationMs: 3 };
const NACKED: Publication = { result: 'nacked', detail: 'full', blame: 'event', durationMs: 4 };
const AWAY: Publication = { result: 'failed', detail: 'channel closed', blame: 'broker', durationMs: 5 };
const RETURNED: Publication = { result: 'returned', detail: '312 NO_ROUTE', blame: 'event', durationMs: 6 };

const attempt = (entry: Entry, publication: Publication, next: NextStep): Attempt => ({
  entry,
  number: publication.durationMs,
  publication,
  next,
  retryInMs: next === 'retry' ? 60_000 : 0,
});

/** An event of the job that is held in this state. Returns its sequence. */
async function addHeld({ database }: TestOutbox, jobId: string, state: string): Promise<string> {
  const [row] = await database.query<{ sequence: string }>(
    `insert into events (source, job_id, status, progress_percentage, late, recorded_at, delivery_id, content_hash, repeats)
     values ('default', $1, 'processing', 10, false, now(), gen_random_uuid(), '', 0) returning sequence`,
    [jobId],
  );
  const { sequence = '' } = row ?? {};
  await database.query(
    `insert into outbox_held (sequence, source, job_id, status, progress_percentage, late, recorded_at, state)
     select sequence, source, job_id, status, progress_percentage, late, recorded_at, $2
     from events where sequence = $1`,
    [sequence, state],
  );
  return sequence;
}

/** As if all copies had been made later than what was accepted meanwhile. */
const moveBehind = ({ database }: TestOutbox) =>
  database.query('update replay_copies set position = position + 100');

test.for([
  ['held for a retry', 'waits', 'pending'],
  ['parked', 'waits', 'parked'],
  ['returned', 'goes', 'returned'],
] as const)('behind an event of its job that is %s, a copy %s', async ([, what, state]) => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 2);
  await outbox.copies();
  const sequence = await addHeld(outbox, 'job_000002', state);
  expect(await outbox.load()).toHaveLength(2); // they were made before it
  await moveBehind(outbox);

  expect(jobsOf(await outbox.load())).toEqual(
    what === 'waits' ? ['job_000001'] : ['job_000001', 'job_000002'],
  );
  // Once the event is in memory, the copy is put behind it there.
  expect(await outbox.load({ except: [sequence] })).toHaveLength(2);
});

test('copies at or behind the horizon wait', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 3);
  const { entries } = await outbox.copies();

  const found = await outbox.load({ horizon: entries[1]?.position ?? '' });

  expect(jobsOf(found)).toEqual(['job_000001']);
});

/** A relay's way from the outbox into its memory. After its `meanwhileAt`th read of the outbox, `meanwhile` comes first. */
function newArrivals({ connection }: TestOutbox, meanwhileAt: number, meanwhile: () => Promise<unknown>) {
  const window = createWindow();
  let reads = 0;
  const paused =
    <Given, Found>(read: (given: Given) => Promise<Found>) =>
    async (given: Given) => {
      const found = await read(given);
      if (++reads === meanwhileAt) await meanwhile();
      return found;
    };
  const outbox = createOutbox(
    { rounds: connection, results: connection, beside: connection },
    { relayId: THIS_RELAY },
  );
  const handOff = createHandOff();
  const room = { entries: 500, bytes: 16_000_000 };
  const arrivals = createArrivals({
    outbox: {
      opened: outbox.opened,
      version: outbox.version,
      loadCopies: paused(outbox.loadCopies),
      loadHeld: paused(outbox.loadHeld),
      loadPending: paused(outbox.loadPending),
    },
    window,
    handOff,
    decisions: createTestDecisions(),
    room: { live: room, copies: room },
    isOpen: () => true,
    isStopped: () => false,
    hold: () => {},
    onArrived: () => {},
    onForgotten: () => {},
    onLoaded: () => {},
  });
  return {
    handOff,
    load: () => arrivals.load({ copies: true }),
    /** Loads until nothing is left to load. Returns the states of the events in the order in which they would be published. */
    publishAll: async () => {
      const published: string[] = [];
      for (let load = 0; load < 4; load++) {
        await arrivals.load({ copies: true });
        for (let lane = window.take(); lane !== undefined; lane = window.take()) {
          published.push(lane.entries[0]?.status ?? '');
          window.advance(lane);
        }
      }
      return published;
    },
  };
}

test.for([1, 2, 3, 4])(
  'an event and a copy behind it that come after read %i of the outbox keep their order',
  async (at) => {
    await using outbox = await newOutbox();
    await seedEvents(outbox.database, 1);
    const { publishAll } = newArrivals(outbox, at, async () => {
      await addEntry(outbox.database, { jobId: 'job_000001', percent: 10 });
      await outbox.copies({ ids: ['default:job_000001:completed'] });
    });

    expect(await publishAll()).toEqual(['processing', 'completed']);
  },
);

test('a copy waits for an event of its job that is in memory and waits for what another writer wrote', async () => {
  await using outbox = await newOutbox();
  const { connection, database } = outbox;
  await seedEvents(database, 1);
  await database.query('update jobs set last_writer = 1');
  const { promise: isAnswered, resolve: answer } = Promise.withResolvers<void>();
  const { promise: isCommitted, resolve: committed } = Promise.withResolvers<void>();
  // Reads 1 to 3 are those of the first load, and 4 that of the copies.
  const { handOff, load, publishAll } = newArrivals(outbox, 4, async () => answer());
  await load();
  const batch = [eventRecord(progress('job_000001', 10))];
  const written = handOff.write(batch, async (mark) => {
    const recorded = await recordDeliveries(connection, batch, mark);
    committed();
    await isAnswered;
    return recorded;
  });
  await isCommitted;
  await outbox.copies({ ids: ['default:job_000001:completed'] });

  expect(await publishAll()).toEqual(['processing', 'completed']);
  expect(await written).toMatchObject([{ writerChanged: true }]);
});

test('a result that is written again changes nothing more', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 3);
  const { replay, entries } = await outbox.copies();
  const [first, second, third] = entries as [Entry, Entry, Entry];
  const results = [
    attempt(first, CONFIRMED, 'delete'),
    attempt(second, NACKED, 'retry'),
    attempt(third, AWAY, 'keep'),
  ];

  for (let repeat = 0; repeat < 3; repeat++) await outbox.settle(results);

  expect(await outbox.publications()).toEqual([
    { result: 'confirmed', attempt: 1 },
    { result: 'nacked', attempt: 1 },
    { result: 'failed', attempt: 1 },
  ]);
  expect(await countsOf(outbox.database, replay.id)).toMatchObject({ queued: 3, confirmed: 1, failed: 0 });
  expect(await outbox.database.query('select attempts from replay_copies order by position')).toEqual([
    { attempts: 1 },
    { attempts: 0 },
  ]);
  // The second one is not due, and the third one can go.
  expect(jobsOf(await outbox.load())).toEqual(['job_000003']);
});

test('a copy without its queue pauses its replay once, however often that is written', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 1);
  const { replay, entries } = await outbox.copies({ queue: 'nobody' });
  const results = entries.map((entry) => attempt(entry, RETURNED, 'return'));
  const resume = () =>
    outbox.connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, 'resume'));

  await outbox.settle(results);
  await outbox.settle(results);

  expect(await stateOf(outbox.database, replay.id)).toEqual({
    state: 'paused',
    paused_because: 'there is no queue nobody',
  });
  expect(await outbox.publications()).toHaveLength(1);
  await resume();
  expect(await outbox.load()).toHaveLength(1);
});

test('a copy that arrived after its replay was cancelled is counted once, however often that is written', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 2);
  const { replay, entries } = await outbox.copies();
  await outbox.connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, 'cancel'));
  const results = entries.map((entry) => attempt(entry, CONFIRMED, 'delete'));

  await outbox.settle(results);
  await outbox.settle(results);

  expect(await countsOf(outbox.database, replay.id)).toMatchObject({ queued: 2, confirmed: 2 });
  expect(await outbox.publications()).toHaveLength(2);
});

test('a copy that the feeder gave up on while it was in flight is not counted, and has its trace', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 1);
  const { replay, entries } = await outbox.copies();
  await outbox.database.query('delete from replay_copies');

  await outbox.settle(entries.map((entry) => attempt(entry, CONFIRMED, 'delete')));

  expect(await countsOf(outbox.database, replay.id)).toMatchObject({ confirmed: 0 });
  expect(await outbox.publications()).toHaveLength(1);
});

test('whether a result is written already is looked up by its event, not by its replay', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 1);
  const { entries } = await outbox.copies();
  const plans: string[] = [];
  const explain: typeof outbox.connection.execute = async ({ name, text }, values) => {
    const lines = await outbox.connection.execute<{ 'QUERY PLAN': string }>(
      { name: `explain-${name}`, text: `explain ${text}` },
      values,
    );
    plans.push(lines.map((line) => line['QUERY PLAN']).join('\n'));
    return [];
  };
  const results = entries.flatMap((entry) => [
    attempt(entry, NACKED, 'delete'),
    attempt(entry, AWAY, 'keep'),
  ]);

  await settleCopies({ execute: explain }, results, THIS_RELAY);

  expect(plans).toHaveLength(2);
  for (const plan of plans) {
    expect(plan).toMatch(/Index Scan using publications_\d+_event_sequence_idx/);
    expect(plan).not.toMatch(/publications_\d+_(replay_id|published_at)/);
  }
});

test('two relays that send the same copies count them once, also when the replay is cancelled in between', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 3);
  const { replay, entries } = await outbox.copies();
  const results = entries.slice(0, 2).map((entry) => attempt(entry, CONFIRMED, 'delete'));

  await Promise.all([outbox.settle(results, THIS_RELAY), outbox.settle(results, OTHER_RELAY)]);
  await outbox.connection.db.transaction().execute((trx) => changeReplay(trx, replay.id, 'cancel'));
  await outbox.settle(results, OTHER_RELAY);

  expect(await countsOf(outbox.database, replay.id)).toMatchObject({ queued: 3, confirmed: 2 });
  // Each was sent twice, and each of that has its trace.
  expect(await outbox.publications()).toHaveLength(4);
});

test('a stale relay moves no copy that another one has moved on', async () => {
  await using outbox = await newOutbox();
  await seedEvents(outbox.database, 2);
  const { entries } = await outbox.copies();
  const [sent, failed] = entries as [Entry, Entry];
  await outbox.settle([attempt(sent, CONFIRMED, 'delete'), attempt(failed, NACKED, 'retry')]);

  await outbox.settle([attempt(sent, NACKED, 'retry'), attempt(failed, NACKED, 'retry')], OTHER_RELAY);

  const rows = await outbox.database.query('select job_id, state, attempts from replay_copies');
  expect(rows).toEqual([{ job_id: 'job_000002', state: 'pending', attempts: 1 }]);
  // Each attempt has its trace.
  expect(await outbox.publications()).toHaveLength(4);
});

test('a confirmed copy deletes the returned entry of its event, and no other', async () => {
  await using outbox = await newOutbox();
  const { database } = outbox;
  await seedEvents(database, 3);
  const { entries } = await outbox.copies();
  await database.query(
    `insert into outbox_held (sequence, source, job_id, status, late, recorded_at, state, attempts)
     select sequence, source, job_id, status, late, recorded_at,
            case job_id when 'job_000002' then 'pending' else 'returned' end, 1 from events`,
  );

  await outbox.settle(entries.slice(0, 2).map((entry) => attempt(entry, CONFIRMED, 'delete')));

  expect(await database.query('select job_id, state from outbox_held order by sequence')).toEqual([
    { job_id: 'job_000002', state: 'pending' },
    { job_id: 'job_000003', state: 'returned' },
  ]);
  expect(await copiesInOutbox(database)).toHaveLength(1);
});
