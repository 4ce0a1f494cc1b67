import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { explain, sign, verify } from '../../../src/signature/index.ts';

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

    expect(verify(bytes(body), header, [text])).toBe(verdict === 'valid');
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

describe('why a signature is not valid', () => {
  const secrets = ['the new secret', 'the old secret'];
  const right = sign('body', 'the new secret');

  test.for([
    [undefined, 'missing', 'there is no X-Service-Signature header'],
    [null, 'missing', 'there is no X-Service-Signature header'],
    [[], 'missing', 'there is no X-Service-Signature header'],
    [' ', 'missing', 'the X-Service-Signature header is empty'],
    [[right], 'repeated', 'the X-Service-Signature header came as a list of values'],
    [`${right}, ${right}`, 'repeated', 'more than one X-Service-Signature value'],
    [
      right.toUpperCase(),
      'malformed',
      '"sha256=" is not in lower case; the hex digits are not in lower case',
    ],
    [right.slice(7), 'malformed', 'the signature has no "sha256=" before its digits'],
    [`${right}0`, 'malformed', 'the signature does not have 64 hex digits'],
    [right.replace('256', '512'), 'malformed', 'the signature does not begin with "sha256="'],
    [
      sign('body', 'another secret'),
      'mismatch',
      expect.stringContaining('another secret, or over other bytes'),
    ],
    [
      sign('body\n', 'the new secret'),
      'mismatch',
      expect.stringContaining('another secret, or over other bytes'),
    ],
  ] as const)('%j: %s', ([header, reason, message]) => {
    expect(explain('body', header, secrets)).toEqual({ valid: false, reason, message });
    expect(verify('body', header, secrets)).toBe(false);
  });

  test('a valid one needs no reason', () => {
    expect(explain('body', right, secrets)).toEqual({ valid: true });
  });

  test.for(vectors)('it agrees with verify: $name', ({ secret, body, header, verdict }) => {
    const explained = explain(bytes(body), header, [bytes(secret).toString()]);
    expect(explained.valid).toBe(verdict === 'valid');
  });

  test('it tells neither a secret, nor the signature that would be right, nor anything of the request', () => {
    const secret = 'a-secret-that-nobody-tells';
    const body = 'a-body-that-nobody-tells';
    const headers = [
      undefined,
      'a-header-that-nobody-tells',
      sign('other', secret),
      `"${sign(body, secret)}"`,
    ];
    const told = JSON.stringify(headers.map((header) => explain(body, header, [secret])));
    expect(told).not.toMatch(/that-nobody-tells|[0-9a-f]{16}/);
  });

  test('a fault of the configuration is none of the request', () => {
    expect(() => explain('body', right, [])).toThrow('there is no signing secret');
    expect(() => explain('body', undefined, [''])).toThrow('the signing secret is empty');
    for (const call of [explain, verify]) {
      // @ts-expect-error -- a list
      const withText = () => call('body', right, 'the new secret');
      expect(withText).toThrow(new TypeError('secrets has to be a list of signing secrets'));
    }
  });
});
