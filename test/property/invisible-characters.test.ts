import { assert, property, string } from 'fast-check';
import { expect, test } from 'vitest';
import { escapeInvisible } from '../../src/base/text/invisible-characters.ts';

const INVISIBLE = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/u;

test('property: any text says the same as escaped JSON', () => {
  assert(
    property(string({ unit: 'binary' }), (text) => {
      const json = escapeInvisible(JSON.stringify(text));
      expect(json).not.toMatch(INVISIBLE);
      expect(JSON.parse(json)).toBe(text);
    }),
  );
});
