// The reader that stands in for JSON.parse takes and refuses the same texts, and makes the same of them.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJson, readJson } from '../../src/json.ts';
import { poison } from '../support/exact-json.ts';

const DEPTH = 1_000_000;
const read = (text: string) => readJson(text, Number);

function outcomeOf(parse: (text: string) => unknown, text: string): unknown {
  try {
    return { value: parse(text) };
  } catch (error) {
    return (error as Error).name;
  }
}

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

const PIECES = [
  ...String.raw`{ } [ ] , : " "a" "\n" "\u00e9" \ \x \u12 // 'a' true false null nul undefined NaN`.split(
    ' ',
  ),
  ...'0 1 - 01 1. .5 1e 1e5 -0 1E+2'.split(' '),
  ' ',
  ...'\t\r\n|\v|\u00a0|\ufeff|\0|"\t"|"\u2028"'.split('|'),
];

test('property: what JSON.parse refuses is refused, and what it takes is taken', () => {
  const piece = fc.constantFrom(...PIECES);
  const soup = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
  const broken = fc
    .tuple(fc.json(), fc.nat(), fc.nat({ max: 2 }), fc.oneof(piece, fc.constant('')))
    .map(([text, at, length, put]) => {
      const start = at % (text.length + 1);
      return text.slice(0, start) + put + text.slice(start + length);
    });
  fc.assert(
    fc.property(fc.oneof(soup, broken, fc.json()), (text) => {
      // What JSON.parse makes of a key with an escape is no measure: only that it takes the text.
      const judged = (outcome: unknown) => (text.includes('\\') ? typeof outcome : outcome);
      for (const parse of [read, parseJson])
        expect(judged(outcomeOf(parse, text))).toEqual(judged(outcomeOf(JSON.parse, text)));
    }),
    { numRuns: 3_000 },
  );
});

test('of repeated keys the last counts, and __proto__ is a key like any other', () => {
  const text = '{"b":1,"a":1,"\\u0062":{"__proto__":3,"\\u005f_proto__":{"x":4}},"0":5}';

  expect(JSON.stringify(parseJson(text))).toBe('{"0":5,"b":{"__proto__":{"x":4}},"a":1}');
  expect((parseJson('{"\\u005f_proto__":{"x":1}}') as { x?: unknown }).x).toBeUndefined();
});

test.for([
  ['arrays', '[', '', ']'],
  ['objects with escaped keys', '{"\\n":', '1', '}'],
] as const)('a million nested %s overflow nothing', ([, open, innermost, close]) => {
  const text = `{"\\n":1,"x":${open.repeat(DEPTH)}${innermost}${close.repeat(DEPTH)},"y":2}`;

  expect((parseJson(text) as { y: number }).y).toBe(2);
  expect(outcomeOf(parseJson, text.slice(0, -10))).toBe('SyntaxError');
});
