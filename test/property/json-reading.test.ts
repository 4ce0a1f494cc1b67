// The reader that stands in for JSON.parse takes and refuses the same texts, whatever they are and however deep.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../only-in-all.ts';
import { parseJson, readJson } from '../../src/base/json/json.ts';

const DEPTH = 1_000_000;
const read = (text: string) => readJson(text, Number);

function outcomeOf(parse: (text: string) => unknown, text: string): unknown {
  try {
    return { value: parse(text) };
  } catch (error) {
    return (error as Error).name;
  }
}

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
    { numRuns: runs(3_000) },
  );
});

test.for([
  ['arrays', '[', '', ']'],
  ['objects with escaped keys', '{"\\n":', '1', '}'],
] as const)('a million nested %s overflow nothing', ([, open, innermost, close]) => {
  const text = `{"\\n":1,"x":${open.repeat(DEPTH)}${innermost}${close.repeat(DEPTH)},"y":2}`;

  expect((parseJson(text) as { y: number }).y).toBe(2);
  expect(outcomeOf(parseJson, text.slice(0, -10))).toBe('SyntaxError');
});
