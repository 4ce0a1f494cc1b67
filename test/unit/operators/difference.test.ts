import { describe, expect, test } from 'vitest';
import { differencesOf } from '../../../src/operators/deliveries/difference.queries.ts';

const differ = (event: string, delivery: string) => differencesOf(Buffer.from(event), Buffer.from(delivery));
/** `path event→delivery`, for short values. */
const told = (event: string, delivery: string) =>
  differ(event, delivery).differences.map((one) => `${one.path} ${one.event}→${one.delivery}`);

const withFields = (count: number, value: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, value])));

describe('the differences of two bodies', () => {
  test('are named by JSON pointers, those of nested objects and lists, too', () => {
    const event = '{"a":1,"b":{"c":[1,{"d":2}]},"e":"x"}';
    expect(told(event, '{"e":"y","b":{"c":[1,{"d":3},4]},"a":1}')).toEqual([
      '/b/c/1/d 2→3',
      '/b/c/2 null→4',
      '/e "x"→"y"',
    ]);
    expect(told('{"a/b":1,"~":1,"":1}', '{"a/b":2,"~":2,"":2}')).toEqual(['/a~1b 1→2', '/~0 1→2', '/ 1→2']);
  });

  test('tell a field that is missing from one that is null', () => {
    expect(differ('{"a":null,"c":1}', '{"b":null,"c":1}').differences).toEqual([
      { path: '/a', event: 'null', delivery: null, cut: [] },
      { path: '/b', event: null, delivery: 'null', cut: [] },
    ]);
  });

  test('keep every digit of numbers, and take one value in two forms for the same', () => {
    expect(told('{"n":9223372036854775807}', '{"n":9223372036854775806}')).toEqual([
      '/n 9223372036854775807→9223372036854775806',
    ]);
    expect(told('{"n":1.0,"m":1e2}', '{ "m":100, "n":1 }')).toEqual([]);
    expect(told('{"n":0.1}', '{"n":0.10000000000000000001}')).toEqual(['/n 0.1→0.10000000000000000001']);
  });

  test('name fields whose names every object has', () => {
    expect(told('{"__proto__":1}', '{}')).toEqual(['/__proto__ 1→null']);
    expect(told('{}', '{"constructor":{},"toString":[]}')).toEqual([
      '/constructor null→{}',
      '/toString null→[]',
    ]);
  });

  test('show a value of another type as a whole', () => {
    expect(told('{"a":{"b":1}}', '{"a":[1]}')).toEqual(['/a {"b":1}→[1]']);
    expect(told('{"a":12345678901234567890}', '{"a":{"rawJSON":"12345678901234567890"}}')).toEqual([
      '/a 12345678901234567890→{"rawJSON":"12345678901234567890"}',
    ]);
  });

  test('read keys with escapes right after keys that make JSON.parse mangle them', () => {
    expect(told('{"a":1,"\\\\":1}', '{"a":1,"\\u0041":1}')).toEqual(['/\\ 1→null', '/A null→1']);
  });

  test('are at most a hundred, and say that there are more', () => {
    expect(differ(withFields(100, 1), withFields(100, 2))).toMatchObject({ hasMore: false });
    const found = differ(withFields(101, 1), withFields(101, 2));
    expect(found.hasMore).toBe(true);
    expect(found.differences).toHaveLength(100);
  });

  test('have texts of at most a thousand characters, which say where they are cut', () => {
    const name = 'n'.repeat(2_000);
    const [found] = differ(`{"${name}":"${'x'.repeat(2_000)}"}`, `{"${name}":1}`).differences;
    expect(found?.cut).toEqual(['path', 'event']);
    expect([found?.path.length, found?.event?.length, found?.delivery]).toEqual([1_000, 1_000, '1']);
    const [half] = differ(`{"a":"${'x'.repeat(998)}😀"}`, '{}').differences;
    expect(half?.event?.isWellFormed()).toBe(true);
    expect(half?.cut).toEqual(['event']);
  });

  test('of what is not JSON are those of its text', () => {
    expect(told('nonsense', '{"a":1}')).toEqual([' "nonsense"→{"a":1}']);
  });
});
