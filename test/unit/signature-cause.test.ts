import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isSignature } from '../../src/intake/signature.ts';
import {
  causeInForm,
  causeInHeaders,
  digestIn,
  withOtherEnd,
} from '../../src/base/signing/signature-cause.ts';
import { sign } from '../support/sender.ts';

const body = Buffer.from('{"job_id":"job_1"}');
const valid = sign(body);
const hex = valid.slice('sha256='.length);
const digest = Buffer.from(hex, 'hex');
const base64 = digest.toString('base64');

const NOT_A_LIST = 'the signature has white space in it; the signature does not begin with "sha256="';

test.for([
  ['a right form', valid, undefined],
  ['nothing', '', 'the X-Service-Signature header is empty'],
  ['white space', ' \t', 'the X-Service-Signature header is empty'],
  ['two values', `${valid}, ${valid}`, 'more than one X-Service-Signature value'],
  ['a line break after it', `${valid}\n`, 'the signature has white space in it'],
  ['a space within', `sha256= ${hex}`, 'the signature has white space in it'],
  ['quotes', `"${valid}"`, 'the signature has quotes around it'],
  ['bare hex', hex, 'the signature has no "sha256=" before its digits'],
  ['upper-case hex', `sha256=${hex.toUpperCase()}`, 'the hex digits are not in lower case'],
  ['an upper-case prefix', `SHA256=${hex}`, '"sha256=" is not in lower case'],
  ['base64', `sha256=${base64}`, 'the signature is base64, not hex'],
  [
    'bare base64',
    base64,
    'the signature has no "sha256=" before its digits; the signature is base64, not hex',
  ],
  [
    'upper case in prefix and digits',
    valid.toUpperCase(),
    '"sha256=" is not in lower case; the hex digits are not in lower case',
  ],
  [
    'quotes, a line break and a digit less',
    `"${valid.slice(0, -1)}"\n`,
    'the signature has white space in it; the signature has quotes around it; the signature does not have 64 hex digits',
  ],
  ['two values in bare hex', `${hex},${hex}`, 'more than one X-Service-Signature value'],
  ['an empty value beside it', `${valid}, `, 'more than one X-Service-Signature value'],
  [
    'the form of Stripe',
    `t=1795349511,v1=${hex},v0=${hex}`,
    "the signature is in another service's form (t=…,v1=…)",
  ],
  ['the form of Standard Webhooks', `v1,${base64}`, "the signature is in another service's form (v1,…)"],
  ['a list of something else', `a=1, ${valid}`, NOT_A_LIST],
  ['base64url', `sha256=${digest.toString('base64url')}`, 'the signature is base64, not hex'],
  ['another algorithm', `sha1=${'a'.repeat(40)}`, 'the signature does not begin with "sha256="'],
  ['another separator', `sha256:${hex}`, 'the signature does not begin with "sha256="'],
  ['a prefix in the middle', `v1,${valid}`, "the signature is in another service's form (v1,…)"],
  ['a digit less', valid.slice(0, -1), 'the signature does not have 64 hex digits'],
  ['64 letters that are no digits', `sha256=${'z'.repeat(64)}`, 'the signature is not hex'],
  ['a prefix alone', 'sha256=', 'the signature is not hex'],
] as const)('%s in the header is told as such', ([, value, cause]) => {
  expect(causeInForm(value)).toBe(cause);
});

test('without the header, the one of another service that came in its place is named, and no value', () => {
  expect(causeInHeaders({})).toBe('no X-Service-Signature header');
  expect(causeInHeaders({ 'x-hub-signature-256': valid })).toBe(
    'no X-Service-Signature header, but X-Hub-Signature-256',
  );
  expect(causeInHeaders({ 'x-secret': 'x', 'x-signature': 'planted' })).toBe(
    'no X-Service-Signature header, but X-Signature',
  );
  expect(causeInHeaders({ 'x-hub-signature-256': 'x', 'x-service-signature': valid })).toBeUndefined();
});

test('property: a cause is told of exactly those values that cannot be a signature, and quotes none of them', () => {
  const near = fc
    .tuple(
      fc.constantFrom('', 'sha256=', 'SHA256=', 'sha256:', 'sha1=', ' '),
      fc.constantFrom(hex, hex.toUpperCase(), base64, hex.slice(1), 'zzz'),
      fc.constantFrom('', ' ', '\n', ',', '='),
    )
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.oneof(near, fc.string({ unit: 'grapheme-ascii' })), (value) => {
      const cause = causeInForm(value);
      expect(cause === undefined).toBe(isSignature(value));
      expect(value.length > 7 && cause?.includes(value)).toBeFalsy();
    }),
  );
});

test.for([valid, hex, hex.toUpperCase(), `"${valid}"\n`, `sha256= ${base64}`, base64, `sha512:${hex}`])(
  'the digest is found in %j',
  (value) => expect(digestIn(value)?.equals(digest)).toBe(true),
);

test.for(['', 'sha256=', 'rubbish', `${valid}, ${valid}`, valid.slice(0, -1)])(
  'no digest is found in %j',
  (value) => expect(digestIn(value)).toBeUndefined(),
);

const ends = (text: string) => withOtherEnd(Buffer.from(text)).map((other) => other.body.toString());

test('a body has two other ends, whatever its own is', () => {
  expect(ends('{}')).toEqual(['{}\n', '{}\r\n']);
  expect(ends('{}\n')).toEqual(['{}', '{}\r\n']);
  expect(ends('{}\r\n')).toEqual(['{}', '{}\n']);
  expect(ends('')).toEqual(['\n', '\r\n']);
  expect(ends('\n')).toEqual(['', '\r\n']);
});
