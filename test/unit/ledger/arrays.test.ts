import { expect, test } from 'vitest';
import {
  byteaArray,
  int2Array,
  int4Array,
  textArray,
  uuidArray,
} from '../../../src/ledger/recording/arrays.ts';

test('a number that does not fit its column is refused and not cut', () => {
  expect(() => int2Array([32_768])).toThrow(RangeError);
  expect(() => int4Array([2 ** 31])).toThrow(RangeError);
});

test('each element stands behind its length, and a null is a length of -1', () => {
  const array = textArray(['ab', null, '']);

  expect(array.readInt32BE(4)).toBe(1); // there are nulls
  expect(array.readInt32BE(12)).toBe(3);
  expect(array.subarray(20).toString('hex')).toBe('000000026162ffffffff00000000');
});

test('an array without nulls says so, and the element type is its own', () => {
  const arrays = [byteaArray([Buffer.of(1)]), int2Array([1]), int4Array([1]), uuidArray([])];

  expect(arrays.map((array) => array.readInt32BE(4))).toEqual([0, 0, 0, 0]);
  expect(arrays.map((array) => array.readInt32BE(8))).toEqual([17, 21, 23, 2950]);
});
