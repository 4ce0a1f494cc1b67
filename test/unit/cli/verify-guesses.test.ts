import { createHash, createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { guessMistakes } from '../../../src/tools/verify/guesses.ts';

const SECRET = '6d792d7369676e696e672d7365637265742d30303031';
const TEXT = '{"job_id": "a, b: \\"c\\"", "size": 1.0}\r\n';
const hmac = (body: string | Buffer, key: string | Buffer = SECRET, name = 'sha256') =>
  createHmac(name, key).update(body).digest();
const sha256 = (text: string) => createHash('sha256').update(text).digest();

const guess = (digest: Buffer, body = TEXT, raw = `${SECRET}\n`) =>
  guessMistakes(digest, { secret: SECRET, raw, body: Buffer.from(body) });

test('a right digest has no mistake, and a strange one no guess', () => {
  expect(guess(hmac(TEXT))).toEqual([]);
  expect(guess(hmac('something else'))).toBeUndefined();
  expect(guess(hmac(TEXT, 'another secret'))).toBeUndefined();
});

test.for([
  ['without the final newline of the body', hmac(TEXT.trimEnd())],
  ['with another final newline', hmac(`${TEXT.trimEnd()}\n`)],
  ['with a byte order mark (BOM) before the body', hmac(`\uFEFF${TEXT}`)],
  ['over an empty body', hmac('')],
  ['over the JSON without white space', hmac('{"job_id":"a, b: \\"c\\"","size":1.0}')],
  [
    'as Python writes it',
    hmac('{"job_id": "a, b: \\"c\\"", "size": 1.0}'),
    '{"job_id":"a, b: \\"c\\"","size":1.0}',
  ],
  ...['  ', '    ', '\t'].flatMap((indent) =>
    ['', '\n'].map((end) => {
      const value = { a: [1, { b: 'x: {[,"' }], none: [], empty: {} };
      const ending = end === '' ? '' : ', and a final newline';
      const words = { '  ': '2 spaces, as JSON.stringify(value, null, 2) writes it', '    ': '4 spaces' }[
        indent
      ];
      return [
        `an indent of ${words ?? 'a tab'}${ending}`,
        hmac(JSON.stringify(value, null, indent) + end),
        JSON.stringify(value),
      ] as const;
    }),
  ),
  ['JSON without white space, and a final newline', hmac('{"a":1}\n'), '{"a": 1}'],
  ['without the line breaks of the body; curl -d', hmac('{  "a":1}'), '{\r\n  "a":1\n}\n'],
  ['with a final newline that the body does not have', hmac('{}\n'), '{}'],
  ['without the white space at the end', hmac('{}'), '{} \n'],
  ['without the white space around', hmac('{}'), ' {} '],
  ['without the byte order mark', hmac('{}'), '\uFEFF{}'],
  ['with \\n where the body has \\r\\n', hmac('{\n}'), '{\r\n}'],
  ['with \\r\\n where the body has \\n', hmac('{\r\n}'), '{\n}'],
  ['newline at the end of the file', hmac(TEXT, `${SECRET}\n`)],
  ['quotes were taken', hmac(TEXT, `"${SECRET}"`)],
  ['decoded from hex', hmac(TEXT, Buffer.from(SECRET, 'hex'))],
  ['decoded from base64', hmac(TEXT, Buffer.from(SECRET, 'base64'))],
  ['with SHA1', hmac(TEXT, SECRET, 'sha1')],
  ['with SHA512', hmac(TEXT, SECRET, 'sha512')],
  ['without the secret', sha256(TEXT)],
  ['a hash of secret and body', sha256(SECRET + TEXT)],
  ['a hash of body and secret', sha256(TEXT + SECRET)],
  ['have changed places', hmac(SECRET, TEXT)],
] as const)('is guessed: %s', ([words, digest, body]) => {
  expect(guess(digest, body)).toEqual([expect.stringContaining(words)]);
});

test('JSON that would grow without measure is not indented', () => {
  const deep = `${'['.repeat(33)}${']'.repeat(33)}`;
  const long = JSON.stringify('x'.repeat(256 * 1024));

  expect(guess(hmac(JSON.stringify(JSON.parse(deep.slice(1, -1)), null, 2)), deep.slice(1, -1))).toEqual([
    expect.stringContaining('an indent of 2 spaces'),
  ]);
  expect(guess(hmac(JSON.stringify(JSON.parse(deep), null, 2)), deep)).toBeUndefined();
  expect(guess(hmac(`[\n  ${long}\n]`), `[${long}]`)).toBeUndefined();
});

test('two mistakes at once are both told', () => {
  expect(guess(hmac(TEXT.trimEnd(), `${SECRET}\n`))).toEqual([
    expect.stringContaining('without the final newline of the body'),
    expect.stringContaining('newline at the end of the file'),
  ]);
});

test('the bytes of a body that is no text stay as they are', () => {
  const bytes = Buffer.from([0xff, 0x00, 0xc3, 0x28]);
  const digest = hmac(Buffer.concat([bytes, Buffer.from('\n')]));

  expect(guessMistakes(digest, { secret: SECRET, raw: SECRET, body: bytes })).toEqual([
    expect.stringContaining('a final newline'),
  ]);
});
