import { expect, test } from 'vitest';
import { type Batch, createBatch } from '../../../src/relay/batch.ts';
import type { Attempt, Entry } from '../../../src/relay/entry.ts';
import { createResults, entriesOf, type Results } from '../../../src/relay/results.ts';
import { newEntry } from '../../support/entries.ts';

let position = 0;

function entry(batch?: Batch): Entry {
  position += 1;
  return newEntry(position, { jobId: `job_${position}`, ...(batch && { batch }) });
}

function confirm(results: Results, given: Entry): Attempt {
  const attempt: Attempt = {
    entry: given,
    number: position,
    next: 'delete',
    publication: { result: 'confirmed', durationMs: 1 },
    retryInMs: 0,
  };
  results.add(attempt);
  return attempt;
}

function hold(results: Results, given: Entry) {
  const settlement = { entry: given, next: 'hold', retryInMs: 0 } as const;
  results.add(settlement);
  return settlement;
}

test('a batch is written whole when its last event is confirmed, and not before', () => {
  const results = createResults();
  const batch = createBatch('1', { size: 2 });
  const [a, b] = [entry(batch), entry(batch)];

  confirm(results, a);
  expect(results.take()).toBeUndefined();
  expect(results.size()).toBe(1);
  confirm(results, b);

  const taken = results.take();
  expect(taken).toEqual({ single: [], whole: [batch], held: [] });
  expect(taken && entriesOf(taken)).toEqual([a, b]);
  expect(results.size()).toBe(0);
  expect(results.take()).toBeUndefined();
});

test('an event that is not confirmed is written before its batch is, and the last one need not be confirmed', () => {
  const results = createResults();
  const batch = createBatch('1', { size: 2 });
  confirm(results, entry(batch));
  const held = hold(results, entry(batch));

  expect(results.take()).toEqual({ single: [held], whole: [batch], held: [] });
  expect(batch.confirmed()).toHaveLength(1);
});

test('a batch of which nothing is confirmed is not written whole', () => {
  const results = createResults();
  const held = hold(results, entry(createBatch('1', { size: 1 })));

  expect(results.take()).toEqual({ single: [held], whole: [], held: [] });
});

test('a batch that is split is written event by event, those that are confirmed later too', () => {
  const results = createResults();
  const batch = createBatch('1', { size: 2 });
  const first = confirm(results, entry(batch));
  results.split();
  const second = confirm(results, entry(batch));

  expect(results.take()).toEqual({ single: [first, second], whole: [], held: [] });
  results.split();
  expect(results.take()).toBeUndefined();
});

test('confirmed events of a batch that is not in memory whole any more are written at the next split', () => {
  const results = createResults();
  const batch = createBatch('1', { size: 3 });
  const first = confirm(results, entry(batch));
  batch.split(); // another one was dropped
  const second = confirm(results, entry(batch));

  expect(results.take()?.single).toEqual([second]);
  results.split();
  expect(results.take()?.single).toEqual([first]);
  expect(results.size()).toBe(0);
});

test('what could not be written comes first the next time, and counts again', () => {
  const results = createResults();
  const batch = createBatch('1', { size: 1 });
  confirm(results, entry(batch));
  const held = confirm(results, entry());
  const taken = results.take();
  if (taken === undefined) throw new Error('nothing was taken');
  const later = confirm(results, entry());
  results.putBack(taken);

  expect(results.size()).toBe(3);
  expect(results.take()).toEqual({ single: [], whole: [batch], held: [held, later] });
});

test('a write is due when most results have come, or many', () => {
  const results = createResults();
  expect(results.isDue(0, 0)).toBe(false);
  for (let count = 0; count < 4; count++) confirm(results, entry(createBatch(String(count), { size: 1 })));
  const due = [results.isDue(0, 0), results.isDue(1, 0), results.isDue(0, 1), results.isDue(2, 0)];
  expect([...due, results.isDue(1, 1)]).toEqual([true, true, true, false, false]);
  for (let count = 4; count < 256; count++) confirm(results, entry(createBatch(String(count), { size: 1 })));
  expect(results.isDue(10_000, 10_000)).toBe(true);
});

test('a result that the rest of its job waits for does not wait for what is being recorded', () => {
  const results = createResults();
  confirm(results, entry(createBatch('1', { size: 1 })));
  expect(results.isDue(0, 100)).toBe(false);
  confirm(results, entry()); // held
  expect(results.isDue(0, 100)).toBe(true);
});
