import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyRing, verifySignature } from '../../../src/intake/signature.ts';
import { secretOf } from '../../support/records.ts';
import { sign } from '../../support/sender.ts';

const OLD = 'the-old-secret-of-enough-bytes';
const NEW = 'the-new-secret-of-enough-bytes';
const OTHER = 'the-secret-of-another-source';
const ring = createKeyRing(
  new Map([
    ['default', [secretOf(OLD), secretOf(NEW)]],
    ['team-a', [secretOf(OTHER)]],
  ]),
);
const body = Buffer.from('{"job_id":"job_1"}');
const verify = (header: string | undefined, bytes = body, source = 'default') =>
  verifySignature(ring, source, header, bytes);

/** How many keys one verification takes from the ring. */
function used(source: string, header: string | undefined): number {
  let keys = 0;
  const counting = {
    ...ring,
    secretsOf: (name: string) =>
      ring.secretsOf(name).map(({ key, fingerprint }) => ({
        fingerprint,
        get key() {
          keys += 1;
          return key;
        },
      })),
  };
  verifySignature(counting, source, header, body);
  return keys;
}

test('the signature is the one that other tools compute', () => {
  // printf '{"job_id":"job_1"}' | openssl dgst -sha256 -hmac the-old-secret-of-enough-bytes
  const byOpenssl = 'b8c99b77f970a4845283b8ee5240548d22b35667dff82bd2700cdc05495dcc18';

  expect(verify(`sha256=${byOpenssl}`)?.body).toBe(body);
});

test('each of several secrets is valid, and the fingerprint tells which one matched', () => {
  expect(verify(sign(body, OLD))?.fingerprint).toBe(secretOf(OLD).fingerprint);
  expect(verify(sign(body, NEW))?.fingerprint).toBe(secretOf(NEW).fingerprint);
});

const overdueAt = (untilMs: number) => {
  const expiring = createKeyRing(new Map([['default', [secretOf(NEW), { ...secretOf(OLD), untilMs }]]]));
  return [OLD, NEW].map(
    (secret) => verifySignature(expiring, 'default', sign(body, secret), body)?.isOverdue,
  );
};

test('a secret after its time still matches, and is overdue', () => {
  expect(overdueAt(Date.now() - 1_000)).toEqual([true, false]);
  expect(overdueAt(Date.now() + 3_600_000)).toEqual([false, false]);
});

test('a signature over other bytes is refused, be it one space more', () => {
  expect(verify(sign(body, OLD), Buffer.concat([body, Buffer.from(' ')]))).toBeUndefined();
});

test('the secret of one source opens no other', () => {
  expect(verify(sign(body, OTHER))).toBeUndefined();
  expect(verify(sign(body, OTHER), body, 'team-a')).toBeDefined();
  expect(verify(sign(body, OLD), body, 'team-a')).toBeUndefined();
});

const valid = sign(body, OLD);
const hex = valid.slice('sha256='.length);
test.for([
  ['an absent header', undefined],
  ['an empty header', ''],
  ['the bare digits', hex],
  ['another algorithm', `sha1=${hex}`],
  ['upper-case digits', `sha256=${hex.toUpperCase()}`],
  ['an upper-case prefix', `SHA256=${hex}`],
  ['one digit less', valid.slice(0, -1)],
  ['one digit more', `${valid}0`],
  ['rubbish after 64 digits', `${valid}zz`],
  ['a space before', ` ${valid}`],
  ['a space after', `${valid} `],
  ['a line break after', `${valid}\n`],
  ['a repeated header, joined', `${valid}, ${valid}`],
  ['a repeated header, the first one wrong', `sha256=${'0'.repeat(64)}, ${valid}`],
  ['64 letters that are no digits', `sha256=${'z'.repeat(64)}`],
  ['64 zeros', `sha256=${'0'.repeat(64)}`],
  ['base64', `sha256=${Buffer.from(hex, 'hex').toString('base64')}`],
] as const)('%s is refused', ([, header]) => {
  expect(verify(header)).toBeUndefined();
});

test('an empty body can be signed', () => {
  const empty = Buffer.alloc(0);

  expect(verify(sign(empty, OLD), empty)?.body).toBe(empty);
  expect(verify(sign(empty, 'some-other-secret-altogether'), empty)).toBeUndefined();
});

test('a binary body is signed byte for byte, invalid UTF-8 and all', () => {
  const binary = Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28, 0x0a, 0x0d]);
  const asReplaced = Buffer.from(binary.toString('utf8')); // what a decoder would have made of it

  expect(verify(sign(binary, OLD), binary)).toBeDefined();
  expect(verify(sign(asReplaced, OLD), binary)).toBeUndefined();
});

test('an unknown source is refused, whatever it is called', () => {
  for (const source of ['nobody', '', '__proto__', 'constructor', 'toString', 'default ', 'Default']) {
    expect(verify(sign(body, OLD), body, source)).toBeUndefined();
  }
});

test('known and unknown sources cost the same number of digests', () => {
  const sizes = ['default', 'team-a', 'nobody', '__proto__', ''].map(
    (source) => ring.secretsOf(source).length,
  );

  expect(sizes).toEqual([2, 2, 2, 2, 2]);
  expect(createKeyRing(new Map()).secretsOf('default')).toHaveLength(1);
});

test('every key of the ring is used for every delivery, matched or not, well formed or not', () => {
  for (const source of ['default', 'team-a', 'nobody']) {
    for (const header of [sign(body, OLD), sign(body, NEW), sign(body, OTHER), undefined, 'rubbish']) {
      expect(used(source, header)).toBe(2);
    }
  }
});

test('nobody can sign as a decoy: the fingerprint of a match is never empty', () => {
  for (const source of ['team-a', 'nobody']) {
    for (const secret of ring.secretsOf(source).filter((candidate) => candidate.fingerprint === '')) {
      expect(secret.key.symmetricKeySize).toBe(32);
    }
  }
  const again = createKeyRing(new Map([['team-a', [secretOf(OTHER)]]]));
  const [decoy] = again.secretsOf('nobody');
  expect(decoy?.key.equals(createKeyRing(new Map()).secretsOf('nobody')[0]?.key ?? decoy.key)).toBe(false);
});

test('property: whoever signs with a valid secret is let in, and with any bit changed is not', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300 }),
      fc.nat(),
      fc.constantFrom(OLD, NEW),
      (bytes, at, secret) => {
        const content = Buffer.from(bytes);
        expect(verify(sign(content, secret), content)?.fingerprint).toBe(secretOf(secret).fingerprint);
        if (content.length === 0) return;
        const changed = Buffer.from(content);
        changed[at % content.length] = (changed[at % content.length] ?? 0) ^ 1;
        expect(verify(sign(content, secret), changed)).toBeUndefined();
      },
    ),
  );
});
