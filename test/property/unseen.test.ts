import { assert, property, string } from 'fast-check';
import { expect, test } from 'vitest';
import { escapeUnseen } from '../../src/unseen.ts';

const UNSEEN = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/u;

test('property: any text says the same as escaped JSON', () => {
  assert(
    property(string({ unit: 'binary' }), (text) => {
      const json = escapeUnseen(JSON.stringify(text));
      expect(json).not.toMatch(UNSEEN);
      expect(JSON.parse(json)).toBe(text);
    }),
  );
});
