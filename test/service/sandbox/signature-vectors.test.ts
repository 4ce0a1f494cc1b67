// Signing and verification share no code: both are tested with the published vectors, and the vectors with OpenSSL.

import { execFile } from 'node:child_process';
import { createSecretKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createSecret } from '../../../src/base/signing/secret.ts';
import { createKeyRing, verifySignature } from '../../../src/intake/signature.ts';
import { sign } from '../../../src/sandbox/webhooks/signature.ts';

const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'));
const vectorFile = z.strictObject({
  description: z.string(),
  rule: z.string(),
  vectors: z.array(
    z.strictObject({
      name: z.string(),
      secret: bytes,
      body: bytes,
      header: z.string().nullable(),
      verdict: z.enum(['valid', 'invalid']),
    }),
  ),
});
type Vector = z.infer<typeof vectorFile>['vectors'][number];

const file = new URL('../../../docs/signature-vectors.json', import.meta.url);
const { vectors } = vectorFile.parse(JSON.parse(await readFile(file, 'utf8')));
const valid = vectors.filter(({ verdict }) => verdict === 'valid');

function verdictOfIntake({ secret, header, body }: Vector): Vector['verdict'] {
  const ring = createKeyRing(
    new Map([['default', [{ key: createSecretKey(secret), fingerprint: 'of-the-vector' }]]]),
  );
  return verifySignature(ring, 'default', header ?? undefined, body) === undefined ? 'invalid' : 'valid';
}

function verdictOfSandbox({ secret, header, body }: Vector): Vector['verdict'] {
  return sign(secret.toString('utf8'), body) === header ? 'valid' : 'invalid';
}

function digestOfOpenssl({ secret, body }: Vector): Promise<string> {
  const args = ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${secret.toString('hex')}`];
  return new Promise((resolve, reject) => {
    const child = execFile('openssl', args, (error, stdout) =>
      error ? reject(error) : resolve(stdout.trim().split(' ').at(-1) ?? ''),
    );
    child.stdin?.end(body);
  });
}

test('there are vectors of every kind, each with a name of its own', () => {
  expect(valid.length).toBeGreaterThanOrEqual(12);
  expect(vectors.length - valid.length).toBeGreaterThanOrEqual(12);
  expect(new Set(vectors.map(({ name }) => name)).size).toBe(vectors.length);
  expect(valid.some(({ body }) => body.length === 0)).toBe(true);
  expect(valid.some(({ body }) => body.includes(0x00) && body.includes(0xff))).toBe(true);
  expect(valid.some(({ body }) => body.toString('utf8').includes('ö'))).toBe(true);
});

test('every secret is one that a relay can be given', () => {
  const unusable = vectors.filter(({ secret }) => {
    const text = secret.toString('utf8');
    return typeof createSecret(text) === 'string' || !Buffer.from(text).equals(secret);
  });

  expect(unusable).toEqual([]);
});

test.each(vectors)('intake and sandbox find $verdict: $name', (vector) => {
  expect(verdictOfIntake(vector)).toBe(vector.verdict);
  expect(verdictOfSandbox(vector)).toBe(vector.verdict);
});

test('OpenSSL computes every valid digest, and no invalid one of the right form', async () => {
  const digests = await Promise.all(vectors.map(digestOfOpenssl));

  const matching = vectors.filter(({ header }, index) => header === `sha256=${digests[index]}`);
  expect(matching).toEqual(valid);
});
