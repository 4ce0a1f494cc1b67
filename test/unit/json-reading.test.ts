// The reader that stands in for JSON.parse takes and refuses the same texts, and makes the same of them.

import { expect, test } from 'vitest';
import { parseJson } from '../../src/base/json/json.ts';
import { poison } from '../support/exact-json.ts';

test.for([
  String.raw`\"`,
  String.raw`\\`,
  String.raw`\/`,
  String.raw`\b`,
  String.raw`\f`,
  String.raw`\n`,
  String.raw`\r`,
  String.raw`\t`,
  String.raw`\u0041`,
  String.raw`\u00e9`,
  String.raw`\ud83d\ude00`,
  String.raw`\ud83d`,
  String.raw`\ude00`,
  String.raw`\u0000`,
])('a key %s is read as what it says, at the top and within, where JSON.parse mangles it', (escaped) => {
  const key = JSON.parse(`"${escaped}"`) as string;
  poison(`"top ${escaped}":1`, escaped);
  const text = `{"top ${escaped}":1,"${escaped}":2}`;
  poison(`"within":1,"${key.length}${key.charCodeAt(0)}":1`, escaped);
  const within = `[{"a":{"within":1,"${key.length}${key.charCodeAt(0)}":1,"${escaped}":2}}]`;

  for (const each of [text, within]) {
    const member = `${JSON.stringify(key)}:2`;
    expect(JSON.stringify(parseJson(each))).toContain(member);
    expect(JSON.stringify(JSON.parse(each)).includes(member)).toBe(key === '\\');
  }
});

test('of repeated keys the last counts, and __proto__ is a key like any other', () => {
  const text = '{"b":1,"a":1,"\\u0062":{"__proto__":3,"\\u005f_proto__":{"x":4}},"0":5}';

  expect(JSON.stringify(parseJson(text))).toBe('{"0":5,"b":{"__proto__":{"x":4}},"a":1}');
  expect((parseJson('{"\\u005f_proto__":{"x":1}}') as { x?: unknown }).x).toBeUndefined();
});
