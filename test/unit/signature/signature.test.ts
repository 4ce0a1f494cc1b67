import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { sign, verify } from '../../../src/signature/index.ts';

type Vector = {
  readonly name: string;
  readonly secret: string;
  readonly body: string;
  readonly header: string | null;
  readonly verdict: 'valid' | 'invalid';
};

const VECTORS = new URL('../../../docs/signature-vectors.json', import.meta.url);
const { vectors } = JSON.parse(readFileSync(VECTORS, 'utf8')) as { readonly vectors: readonly Vector[] };
const bytes = (base64: string) => Buffer.from(base64, 'base64');

describe('the published vectors', () => {
  test.for(vectors)('$name', ({ secret, body, header, verdict }) => {
    const text = bytes(secret).toString();

    expect(verify(bytes(body), header ?? undefined, [text])).toBe(verdict === 'valid');
  });

  test.for(vectors.filter(({ verdict }) => verdict === 'valid'))(
    'signed: $name',
    ({ secret, body, header }) => {
      expect(sign(bytes(body), bytes(secret).toString())).toBe(header);
    },
  );
});

describe('several secrets', () => {
  const signature = sign('body', 'the new secret');

  test('each of them is accepted, at any place', () => {
    expect(verify('body', signature, ['the new secret', 'the old secret'])).toBe(true);
    expect(verify('body', signature, ['the old secret', 'the new secret'])).toBe(true);
    expect(verify('body', signature, ['the old secret'])).toBe(false);
  });

  test('a repeated header is no signature', () => {
    expect(verify('body', [signature, signature], ['the new secret'])).toBe(false);
    expect(verify('body', `${signature}, ${signature}`, ['the new secret'])).toBe(false);
  });

  test('no secret, and an empty one, are faults and no refusal', () => {
    expect(() => verify('body', signature, [])).toThrow('there is no signing secret');
    expect(() => verify('body', undefined, ['the new secret', ''])).toThrow('the signing secret is empty');
    expect(() => sign('body', '')).toThrow('the signing secret is empty');
  });
});
