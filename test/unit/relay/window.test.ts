import { expect, test } from 'vitest';
import { createBatch } from '../../../src/relay/batch.ts';
import type { Entry } from '../../../src/relay/entry.ts';
import { createWindow, type Lane } from '../../../src/relay/window.ts';
import { newEntry } from '../../support/entries.ts';

let position = 0;

/** Of a replay, if one is named. */
function entry(jobId: string, replayId?: string): Entry {
  position += 1;
  return newEntry(position, {
    jobId,
    data: '{"ten":"x"}',
    ...(replayId !== undefined && { replay: { id: replayId, by: 'Ada', queue: null } }),
  });
}

function windowOf(...entries: Entry[]) {
  const window = createWindow();
  for (const each of entries) window.admit(each);
  return window;
}

const firstOf = (lane: Lane | undefined) => lane?.entries[0];

test('lanes take turns, and the next entry of one goes when the first is through', () => {
  const [a1, a2, b1] = [entry('a'), entry('a'), entry('b')];
  const window = windowOf(a1, a2, b1);

  const a = window.take() as Lane;
  expect(firstOf(a)).toBe(a1);
  expect(firstOf(window.take())).toBe(b1);
  expect(window.take()).toBeUndefined();
  window.advance(a);

  expect(firstOf(window.take())).toBe(a2);
});

test('a live entry goes on past a copy that failed, and later copies of that replay do not', () => {
  const [c1, c2, live] = [entry('a', 'r'), entry('a', 'r'), entry('a')];
  const window = windowOf(c1, c2);
  const taken = window.take() as Lane;
  window.admit(live);
  window.deferReplay(taken);

  const lane = window.take() as Lane;
  expect(firstOf(lane)).toBe(live);
  // Found by a load that began before the failure was written.
  window.admit(entry('a', 'r'));
  const other = entry('a', 'another');
  window.admit(other);
  window.advance(lane);
  expect(firstOf(window.take())).toBe(other);

  window.forget(live);
  window.forgetFailedCopy(c1);
  expect(window.positions()).toEqual([other.position]);
  expect(window.size('live')).toEqual({ entries: 0, bytes: 0 });
  expect(window.size('copies').entries).toBe(1);
});

test('live entries go before the copies of their job, in their own order, but not before one that is on its way', () => {
  const [c1, c2, c3] = [entry('a', 'r'), entry('a', 'r'), entry('a', 's')];
  const window = windowOf(c1, c2, c3);
  const lane = window.take() as Lane;
  const [live1, live2] = [entry('a'), entry('a')];
  window.admit(live1);
  window.admit(live2);

  expect(lane.entries).toEqual([c1, live1, live2, c2, c3]);
  window.advance(lane);
  window.forget(c1);
  expect(firstOf(window.take())).toBe(live1);
  window.putBack(lane);
  window.admit(entry('a', 'r'));
  expect(lane.entries.slice(0, 4)).toEqual([live1, live2, c2, c3]);
});

test('a live entry takes the turn of a job whose copies wait', () => {
  const [copy, live] = [entry('a', 'r'), entry('a')];
  const window = windowOf(copy, live);

  const lane = window.take() as Lane;
  expect(lane.entries).toEqual([live, copy]);
  expect(window.take()).toBeUndefined();
});

test('an entry that comes to a lane of deferred copies alone may go at once', () => {
  const copy = entry('a', 'r');
  const window = windowOf(copy);
  window.deferReplay(window.take() as Lane);
  expect(window.take()).toBeUndefined();

  const live = entry('a');
  window.admit(live);

  expect(firstOf(window.take())).toBe(live);
});

test('the failure of a live entry takes out all that waits behind it, and keeps a failed copy until that is written', () => {
  const [copy, live, behind] = [entry('a', 'r'), entry('a'), entry('a', 'r2')];
  const window = windowOf(copy);
  window.deferReplay(window.take() as Lane);
  window.admit(live);
  window.admit(behind);
  const lane = window.take() as Lane; // live is in flight, and fails

  window.advance(lane);
  expect(window.close(lane.key)).toEqual([]);
  window.forget(live);
  expect(window.positions()).toEqual([copy.position]);
  window.forgetFailedCopy(copy);

  expect(window.positions()).toEqual([]);
  expect(window.size('copies')).toEqual({ entries: 0, bytes: 0 });
});

test('while a lane is closed nothing takes its place there, and what has a batch is to be held', () => {
  const batch = createBatch('1', { size: 3 });
  const [failed, behind, late] = [entry('a'), { ...entry('a'), batch }, { ...entry('a'), batch }];
  const window = windowOf(failed, behind);
  const lane = window.take() as Lane;

  window.advance(lane);
  expect(window.close(lane.key)).toEqual([behind]);
  expect(window.admit(late)).toBe(false);
  expect(window.take()).toBeUndefined();
  window.forget(failed);
  window.reopen(lane.key);

  expect(window.admit(late)).toBe(true);
  expect(firstOf(window.take())).toBe(late);
});

test('a lane is open again when it was reopened as often as it was closed', () => {
  const window = createWindow();
  const [a, b] = [entry('a'), entry('a')];
  window.close('default a');
  window.close('default a');

  window.reopen('default a');
  expect(window.admit(a)).toBe(false);
  window.reopen('default a');
  expect(window.admit(b)).toBe(true);
});

test('a lane that is closed keeps what is on its way, which may be published again', () => {
  const [flying, behind] = [entry('a'), { ...entry('a'), batch: createBatch('1', { size: 1 }) }];
  const window = windowOf(flying, behind);
  const lane = window.take() as Lane;

  expect(window.close(lane.key)).toEqual([behind]);
  expect(lane.entries).toEqual([flying]);
  window.putBack(lane);

  expect(firstOf(window.take())).toBe(flying);
  window.advance(lane);
  expect(window.admit(entry('a'))).toBe(false);
});

test('an entry that arrives later than the next one of its job takes its place before it', () => {
  const [first, second, third] = [entry('a'), entry('a'), entry('a')];
  const window = windowOf(second, third, first);

  expect(firstOf(window.take())).toBe(first);
});

test('a batch is whole until one of its entries leaves memory without its result', () => {
  const batch = createBatch('1', { size: 2 });
  const window = windowOf({ ...entry('a'), batch }, { ...entry('b'), batch });
  expect(window.inBatches()).toEqual({ batches: ['1'], events: [] });
  expect(window.positions()).toEqual([]);

  window.forgetIdle();

  expect(batch.isWhole()).toBe(false);
  expect(window.inBatches()).toEqual({ batches: [], events: [] });
});

test('a replay that is forgotten leaves what is on its way, and all else', () => {
  const [flying, next, live, idle] = [entry('a', 'r'), entry('a', 'r'), entry('a'), entry('b', 'r')];
  const window = windowOf(flying, next, idle);
  const lane = window.take() as Lane;
  window.admit(live);

  window.forgetReplay('r');

  expect(window.positions()).toEqual([flying.position, live.position]);
  expect(window.take()).toBeUndefined();
  window.advance(lane);
  expect(firstOf(window.take())).toBe(live);
});

test('a relay that no longer leads forgets all but what is on its way', () => {
  const [flying, behind, idle] = [entry('a'), entry('a'), entry('b')];
  const window = windowOf(flying, behind, idle);
  const lane = window.take() as Lane;

  window.forgetIdle();
  expect(window.positions()).toEqual([flying.position]);
  window.advance(lane);
  window.forget(flying);

  expect(window.positions()).toEqual([]);
  expect(window.take()).toBeUndefined();
});

test('a lane that is put back goes first, and one can be taken out of turn', () => {
  const [a, b, c] = [entry('a'), entry('b'), entry('c')];
  const window = windowOf(a, b, c);

  window.putBack(window.take(({ position: at }) => at === c.position) as Lane);

  expect([firstOf(window.take()), firstOf(window.take()), firstOf(window.take())]).toEqual([c, a, b]);
});
