import { expect, test } from 'vitest';
import { createCounter } from '../../../src/ledger/counts/counter.ts';
import { createTestLog } from '../../support/test-log.ts';

type Row = { name: string; count: number };

function createCounts(options: { rowsPerGroup?: number; failures?: number } = {}) {
  const written: Row[][] = [];
  let failures = options.failures ?? 0;
  const { log, lines } = createTestLog();
  const counter = createCounter<Row>({
    name: 'fruit',
    merge: (into, from) => {
      into.count += from.count;
    },
    write: (rows) => {
      if (failures-- > 0) return Promise.reject(new Error('connection lost'));
      written.push(rows);
      return Promise.resolve();
    },
    rowsPerGroup: options.rowsPerGroup ?? 100,
    groupOf: ({ name }) => name.slice(0, 1),
    log,
  });
  const add = (...names: string[]) => names.forEach((name) => counter.add(name, { name, count: 1 }));
  return { counter, add, written, lines };
}

test('what has one key is written as one row, once', async () => {
  const { counter, add, written } = createCounts();

  add('fig', 'apple', 'fig');
  await counter.flush();
  await counter.flush();
  add('fig');
  await counter.close();

  expect(written).toEqual([
    [
      { name: 'fig', count: 2 },
      { name: 'apple', count: 1 },
    ],
    [{ name: 'fig', count: 1 }],
  ]);
});

test('what could not be written is written with what came since', async () => {
  const { counter, add, written, lines } = createCounts({ failures: 1 });

  add('fig', 'apple');
  await counter.flush();
  add('fig', 'plum');
  await counter.close();

  expect(written.flat().toSorted((a, b) => a.name.localeCompare(b.name))).toEqual([
    { name: 'apple', count: 1 },
    { name: 'fig', count: 2 },
    { name: 'plum', count: 1 },
  ]);
  expect(lines).toHaveLength(1);
});

test('what could not be written at the end is said to be lost', async () => {
  const { counter, add, lines } = createCounts({ failures: 1 });

  add('fig', 'apple');
  await counter.close();

  expect(lines).toMatchObject([{ msg: 'the last counts are lost', tally: 'fruit', rows: 2 }]);
});

test('a group that is full takes no new key, goes on counting those it has, and leaves room to others', async () => {
  const { counter, add, written, lines } = createCounts({ rowsPerGroup: 2 });

  add('apple', 'apricot', 'avocado', 'apple', 'avocado', 'fig');
  await counter.flush();
  add('avocado');
  await counter.close();

  expect(written).toEqual([
    [
      { name: 'apple', count: 2 },
      { name: 'apricot', count: 1 },
      { name: 'fig', count: 1 },
    ],
    [{ name: 'avocado', count: 1 }],
  ]);
  expect(lines).toMatchObject([{ tally: 'fruit', dropped: 2 }]);
});

test('what is kept for later is bounded too', async () => {
  const { counter, add, written } = createCounts({ rowsPerGroup: 2, failures: 1 });

  add('apple', 'apricot');
  const flushing = counter.flush();
  add('avocado'); // while the write that fails is under way
  await flushing;
  await counter.close();

  expect(written.flat()).toHaveLength(2);
});
