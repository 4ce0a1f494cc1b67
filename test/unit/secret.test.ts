import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { createSecret, SECRET_MIN_BYTES } from '../../src/base/signing/secret.ts';
import { secretOf } from '../support/records.ts';

test('an empty secret is told apart from one that is too short', () => {
  expect(createSecret('')).toBe('is empty');
  expect(createSecret('x'.repeat(SECRET_MIN_BYTES - 1))).toBe('is shorter than 16 bytes');
  expect(createSecret('x'.repeat(SECRET_MIN_BYTES))).toMatchObject({ fingerprint: expect.any(String) });
});

test('the length of a secret is counted in bytes and not in letters', () => {
  expect(createSecret('é'.repeat(7))).toBe('is shorter than 16 bytes');
  expect(createSecret('é'.repeat(8))).toMatchObject({ fingerprint: expect.any(String) });
});

test('a fault of a secret does not quote it', () => {
  expect(createSecret('tooshort')).not.toContain('tooshort');
});

test('a fingerprint is 12 hex digits, always the same for one secret and another for another', () => {
  const one = secretOf('one-secret-of-enough-bytes');

  expect(one.fingerprint).toMatch(/^[0-9a-f]{12}$/);
  expect(secretOf('one-secret-of-enough-bytes').fingerprint).toBe(one.fingerprint);
  expect(secretOf('two-secret-of-enough-bytes').fingerprint).not.toBe(one.fingerprint);
});

test('a secret can be neither printed nor serialized', () => {
  const secret = secretOf('planted-secret-of-enough-bytes');

  expect(JSON.stringify(secret)).not.toContain('planted');
  expect(inspect(secret, { depth: 9, showHidden: true })).not.toContain('planted');
  expect(JSON.stringify(secret.key)).not.toContain('planted');
});
