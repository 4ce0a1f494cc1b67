import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { TalliedDelivery } from '../../../src/ledger/index.ts';
import { createArrivals } from '../../../src/relay/arrivals.ts';
import { createBatch } from '../../../src/relay/batch.ts';
import type { Entry } from '../../../src/relay/entry.ts';
import { createHandOff } from '../../../src/relay/hand-off.ts';
import type { Loaded, PendingLoad } from '../../../src/relay/pending.ts';
import { createWindow } from '../../../src/relay/window.ts';
import { createTestDecisions } from '../../support/decisions.ts';
import { eventRecord } from '../../support/records.ts';
import { progress } from '../../support/sender.ts';
import { waitFor } from '../../support/waits.ts';

type Answer = Partial<Pick<TalliedDelivery, 'outcome' | 'writerChanged' | 'held'>> & { sequence?: number };

const NOTHING: Loaded = { found: [], bound: undefined, xid: '100', version: '0' };

/** The window of a leader, with an outbox that gives what the test says. */
function leaderOf({ entries = 10 } = {}) {
  const window = createWindow();
  const handOff = createHandOff();
  const held: Entry[] = [];
  const asked: PendingLoad[] = [];
  let open = true;
  let answer: Promise<Loaded> = Promise.resolve(NOTHING);
  let heldRows: Entry[] = [];
  let version = '0';
  let opened = 0;
  const decisions = createTestDecisions();
  const arrivals = createArrivals({
    outbox: {
      opened: () => opened,
      loadPending: (options) => {
        asked.push(options);
        return answer.then((loaded) => ({ ...loaded, version }));
      },
      version: async () => version,
      loadHeld: async () => heldRows,
      loadCopies: async () => [],
    },
    window,
    handOff,
    decisions,
    room: { live: { entries, bytes: 1_000_000 }, copies: { entries, bytes: 1_000_000 } },
    isOpen: () => open,
    isStopped: () => false,
    hold: (each) => held.push(each),
    onArrived: () => {},
    onForgotten: () => {},
    onLoaded: () => {},
  });
  return {
    window,
    handOff,
    arrivals,
    held,
    asked,
    /** A load has begun to read. */
    isAsked: () => waitFor(() => expect(asked).toHaveLength(1)),
    setOpen: (is: boolean) => {
      open = is;
    },
    /** The next load opens a connection. */
    reconnect: () => {
      opened += 1;
    },
    load: (loaded: Partial<Loaded> | Promise<Loaded> = {}, rows: Entry[] = []) => {
      answer = loaded instanceof Promise ? loaded : Promise.resolve({ ...NOTHING, ...loaded });
      heldRows = rows;
      return arrivals.load({ copies: false });
    },
    /** From now on a load reads that an operator has decided. */
    decide: () => {
      version = '1';
    },
    /** What an operator has decided is read beside a round. */
    look: () => decisions.note(version, decisions.ask()),
    /** Of one event. */
    write: async (jobId: string, { sequence, ...rest }: Answer = {}, answered?: Promise<unknown>) => {
      const percent = sequence ?? 0;
      await handOff.write([eventRecord(progress(jobId, percent))], async () => {
        await answered;
        const pending =
          sequence === undefined ? null : { sequence: String(sequence), recordedAt: new Date(0) };
        return [{ outcome: 'accepted', late: false, writerChanged: false, held: false, pending, ...rest }];
      });
    },
    /** Takes all that may be published now, as if it were confirmed at once. */
    publish: () => {
      const positions: number[] = [];
      for (let lane = window.take(); lane !== undefined; lane = window.take()) {
        positions.push(Number(lane.entries[0]?.position));
        window.advance(lane);
      }
      return positions;
    },
  };
}

function entry(jobId: string, position: number, batch = createBatch(String(position), { size: 1 })): Entry {
  const { event } = eventRecord(progress(jobId, position));
  const { status, occurredAt, data } = event;
  const at = { position: String(position), sequence: String(position) };
  const rest = { source: 'default', late: false, recordedAt: new Date(0), attempts: 0, progress: position };
  return { ...at, ...rest, jobId, status, occurredAt, data, batch };
}

const found = (given: Entry, isHeld = false): Loaded['found'][number] => ({
  entry: given,
  mark: { writer: '7', number: 1 },
  isHeld,
});

test('what is handed over goes at once, but not before a load has found all that there was', async () => {
  const leader = leaderOf();
  await leader.write('a', { sequence: 1 });
  expect(leader.publish()).toEqual([]);
  expect(leader.arrivals.isDue()).toBe(true);

  await leader.load({ found: [found(entry('a', 1))] });
  expect(leader.publish()).toEqual([1]);
  expect(leader.arrivals.isDue()).toBe(false);
  await leader.write('a', { sequence: 2 });

  expect(leader.publish()).toEqual([2]);
  expect(leader.arrivals.isDue()).toBe(false);
});

test('after a decision nothing is loaded before each write has its answer, since its job may be held', async () => {
  const leader = leaderOf();
  await leader.load();
  const answer = Promise.withResolvers<void>();
  const written = leader.write('a', { sequence: 3 }, answer.promise);
  const parked = entry('a', 3);

  leader.decide();
  const load = leader.load({ found: [found(parked, true)] });
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  expect(leader.asked).toHaveLength(1);
  answer.resolve();
  await Promise.all([written, load]);

  expect(leader.asked).toHaveLength(2);
  expect(leader.held).toEqual([parked]);
  expect(leader.publish()).toEqual([]);
});

test('nor after a decision that is read beside the round, while a load waits for older writes', async () => {
  const leader = leaderOf();
  const [older, newer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const olderWritten = leader.write('a', { sequence: 1 }, older.promise);
  const load = leader.load();
  await setImmediate();
  const newerWritten = leader.write('b', { sequence: 2 }, newer.promise);
  leader.decide(); // about the event of the newer write, which is committed and has no answer yet
  leader.look();
  older.resolve();
  await olderWritten;
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  newer.resolve();
  await Promise.all([newerWritten, load]);

  expect(leader.publish()).toEqual([]);
});

test('an event is not published before one of its job that was parked while a load read', async () => {
  const leader = leaderOf();
  const [loaded, answer] = [Promise.withResolvers<Loaded>(), Promise.withResolvers<void>()];
  const written = leader.write('b', { sequence: 9 });
  await written;
  const load = leader.load(loaded.promise);
  await leader.isAsked();
  const later = leader.write('a', { sequence: 2 }, answer.promise);
  leader.decide(); // about event 1 of job a, which this load does not find any more
  answer.resolve();
  await later;
  loaded.resolve(NOTHING);
  await load;

  expect(leader.publish()).toEqual([]);
  expect(leader.arrivals.isDue()).toBe(true);
});

test('nor is a held one that was found then: it may be the parked one, or stand behind it', async () => {
  const leader = leaderOf();
  const loaded = Promise.withResolvers<Loaded>();
  const { batch: _batch, ...held } = entry('a', 1);
  const load = leader.load(loaded.promise, [held]);
  await leader.isAsked();
  leader.decide();
  loaded.resolve(NOTHING);
  await load;
  expect(leader.publish()).toEqual([]);

  await leader.load({}, [held]);

  expect(leader.publish()).toEqual([1]);
});

test('an event behind one of another writer waits for a load that begins after it', async () => {
  const leader = leaderOf();
  await leader.load();
  const loaded = Promise.withResolvers<Loaded>();
  const load = leader.load(loaded.promise);
  await leader.isAsked();
  await leader.write('a', { sequence: 2, writerChanged: true });
  await leader.write('b', { sequence: 3 });
  loaded.resolve(NOTHING);
  await load;
  expect(leader.publish()).toEqual([3]);
  expect(leader.arrivals.isDue()).toBe(true);

  await leader.load({ found: [found(entry('a', 1))] });

  expect(leader.publish()).toEqual([1, 2]);
});

test('what is behind the first batch that is left is not published', async () => {
  const leader = leaderOf();
  const [batch, other] = [createBatch('1', { size: 2 }), createBatch('2', { size: 1 })];

  await leader.load({
    found: [found(entry('a', 1, batch)), found(entry('b', 3, batch)), found(entry('c', 2, other))],
    bound: '3',
  });

  expect(leader.publish()).toEqual([1, 2]);
  expect([batch.isWhole(), other.isWhole()]).toEqual([false, true]);
  expect(leader.asked.at(-1)?.since).toBeUndefined();
});

test('a load that a loss of the broker has crossed is not taken for all that there was', async () => {
  const leader = leaderOf();
  await leader.load();
  const loaded = Promise.withResolvers<Loaded>();
  const load = leader.load(loaded.promise);
  await leader.isAsked();
  // A copy of another writer's event: nothing of it is in memory, but the next event of the job must wait for that one.
  leader.setOpen(false);
  await leader.write('a', { outcome: 'duplicate', writerChanged: true });
  leader.setOpen(true);
  loaded.resolve(NOTHING);
  await load;
  await leader.write('a', { sequence: 2 });
  expect(leader.publish()).toEqual([]);

  await leader.load({ found: [found(entry('a', 1)), found(entry('a', 2))] });

  expect(leader.asked.at(-1)?.since).toBeUndefined();
  expect(leader.publish()).toEqual([1, 2]);
});

test('what is handed over while a load runs that catches up is published behind what it finds', async () => {
  const leader = leaderOf();
  const loaded = Promise.withResolvers<Loaded>();
  const load = leader.load(loaded.promise);
  await leader.isAsked();
  await leader.write('a', { sequence: 2 });
  expect(leader.publish()).toEqual([]);
  loaded.resolve({ ...NOTHING, found: [found(entry('a', 1))] });
  await load;

  expect(leader.publish()).toEqual([1, 2]);
});

test('more than there is room for is left to later loads, with all behind it', async () => {
  const leader = leaderOf({ entries: 2 });
  const loaded = Promise.withResolvers<Loaded>();
  const load = leader.load(loaded.promise);
  await leader.isAsked();
  await leader.write('a', { sequence: 2 });
  await leader.write('b', { sequence: 3 });
  await leader.write('c', { sequence: 4 });
  loaded.resolve({ ...NOTHING, found: [found(entry('d', 1)), found(entry('e', 5))] });
  await load;

  expect(leader.publish()).toEqual([1]);
});

test('what waits behind a gate when its job was held is held, too', async () => {
  const leader = leaderOf();
  await leader.load();
  await leader.write('a', { sequence: 2, writerChanged: true });
  leader.window.close('default a');

  leader.arrivals.reopen('default a');

  expect(leader.held.map(({ position }) => position)).toEqual(['2']);
});

test('a load that finds an unknown write beside it is made again from the beginning', async () => {
  const leader = leaderOf();
  await leader.load();
  const loaded = Promise.withResolvers<Loaded>();
  const load = leader.load(loaded.promise);
  await leader.isAsked();
  await leader.handOff.write([], () => Promise.reject(new Error('lost'))).catch(() => {});
  loaded.resolve({ ...NOTHING, found: [found(entry('a', 2))] });

  expect(await load).toBe(0);
  expect(leader.publish()).toEqual([]);
  await leader.load({ found: [found(entry('a', 1)), found(entry('a', 2))] });
  expect(leader.asked.map(({ since }) => since)).toEqual([undefined, '100', undefined]);
  expect(leader.publish()).toEqual([1, 2]);
});

test('a decision between two loads is seen, though the relay is behind', async () => {
  const leader = leaderOf();
  await leader.load({ found: [found(entry('a', 1)), found(entry('a', 2))], bound: '9' });

  leader.decide();
  await leader.load({ found: [found(entry('a', 1))], bound: '9' });

  expect(leader.publish()).not.toContain(2);
});

test('a decision is seen, though there is no room for more', async () => {
  const leader = leaderOf({ entries: 2 });
  await leader.load({ found: [found(entry('a', 1)), found(entry('a', 2))], bound: '9' });

  leader.decide();
  await leader.load({ found: [found(entry('a', 1))], bound: '9' });

  expect(leader.publish()).not.toContain(2);
});

test('a decision is seen while the broker takes no messages, before it takes some again', async () => {
  const leader = leaderOf();
  await leader.load({ found: [found(entry('a', 1)), found(entry('a', 2))] });
  leader.setOpen(false);
  leader.decide();
  await leader.load({ found: [found(entry('a', 1))] });
  leader.setOpen(true);

  expect(leader.publish()).not.toContain(2);
});

test('what is handed over while a load runs is bounded in bytes, too', async () => {
  const leader = leaderOf({ entries: 1_000 });
  const loaded = Promise.withResolvers<Loaded>();
  const load = leader.load(loaded.promise);
  await leader.isAsked();
  const data = JSON.stringify({ padding: 'x'.repeat(100_000) });
  for (let sequence = 1; sequence <= 100; sequence++) {
    const record = eventRecord(progress(`job_${sequence}`, 1));
    if (record.outcome !== 'event') throw new Error('no event');
    await leader.handOff.write([{ ...record, event: { ...record.event, data } }], async () => [
      {
        outcome: 'accepted',
        late: false,
        writerChanged: false,
        held: false,
        pending: { sequence: String(sequence), recordedAt: new Date(0) },
      },
    ]);
  }
  loaded.resolve(NOTHING);
  await load;
  expect(leader.window.size('live').bytes).toBeLessThan(1_300_000); // the room is 1,000,000, and a write may exceed it
});

test('after a failover that lost transactions, whose numbers come again, all is read anew', async () => {
  const leader = leaderOf();
  await leader.load({ xid: '1000' });
  await leader.load({ xid: '900' }); // the server that is asked now has not reached 1000 yet
  await leader.load({ xid: '901' });

  expect(leader.asked.at(-1)?.since).not.toBe('1000');
  expect(leader.asked.some(({ since }, index) => index > 0 && since === undefined)).toBe(true);
});

test('after a new connection, which a crash of Postgres may have made necessary, all is read anew', async () => {
  const leader = leaderOf();
  await leader.load();
  await leader.load();
  leader.reconnect();
  await leader.load();
  await leader.load();

  expect(leader.asked.map(({ since }) => since)).toEqual([undefined, '100', '100', undefined, '100']);
});

test('is full while the outbox has more, or while most of the room is taken or will be', async () => {
  const leader = leaderOf({ entries: 4 });
  const isFull = [leader.arrivals.isFull()]; // nothing was loaded yet
  await leader.load();
  isFull.push(leader.arrivals.isFull());
  await leader.write('a', { sequence: 1 });
  await leader.write('b', { sequence: 2 });
  isFull.push(leader.arrivals.isFull());
  const answer = Promise.withResolvers<void>();
  const written = leader.write('c', { sequence: 3 }, answer.promise);
  isFull.push(leader.arrivals.isFull());
  answer.resolve();
  await written;
  isFull.push(leader.arrivals.isFull());

  expect(isFull).toEqual([true, false, false, true, true]);
});

test('is never full while nothing may be published', async () => {
  const leader = leaderOf({ entries: 1 });
  await leader.load();
  await leader.write('a', { sequence: 1 });
  expect(leader.arrivals.isFull()).toBe(true);

  leader.setOpen(false);

  expect(leader.arrivals.isFull()).toBe(false);
});
