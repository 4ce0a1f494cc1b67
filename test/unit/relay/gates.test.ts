import { expect, test } from 'vitest';
import type { Entry } from '../../../src/relay/entry.ts';
import { createGates } from '../../../src/relay/gates.ts';
import { newEntry } from '../../support/entries.ts';

const entry = (jobId: string, position: number): Entry =>
  newEntry(position, { jobId, status: 'processing', progress: 1 });

test('only the entries of a closed job wait, until the load of that number', () => {
  const gates = createGates();
  const waits = entry('a', 2);
  gates.close('default a', 5);

  expect(gates.add(waits)).toBe(true);
  expect(gates.add(entry('b', 3))).toBe(false);
  expect(gates.open(4)).toEqual([]);
  expect(gates.areOpen()).toBe(false);
  expect(gates.open(5)).toEqual([waits]);
  expect(gates.areOpen()).toBe(true);
  expect(gates.add(entry('a', 4))).toBe(false);
});

test('a gate that is closed again keeps back what comes then, and not what has waited', () => {
  const gates = createGates();
  const [first, second] = [entry('a', 2), entry('a', 4)];
  gates.close('default a', 5);
  gates.add(first);
  gates.close('default a', 6);
  gates.add(second);

  expect(gates.open(5)).toEqual([first]);
  expect(gates.areOpen()).toBe(false);
  expect(gates.open(6)).toEqual([second]);
});

test('what a load has found lets go what comes before it, by number and not by text', () => {
  const gates = createGates();
  const [before, after] = [entry('a', 9), entry('a', 11)];
  gates.close('default a', 5);
  gates.add(before);
  gates.add(after);

  expect(gates.before(entry('a', 10))).toEqual([before]);
  expect(gates.before(entry('b', 20))).toEqual([]);
  expect(gates.clear()).toEqual([after]);
  expect(gates.areOpen()).toBe(true);
});

test('what is taken out of a gate leaves it closed', () => {
  const gates = createGates();
  const waits = entry('a', 2);
  gates.close('default a', 5);
  gates.add(waits);

  expect(gates.take('default b')).toEqual([]);
  expect(gates.take('default a')).toEqual([waits]);
  expect(gates.add(entry('a', 3))).toBe(true);
});
