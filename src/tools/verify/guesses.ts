// What may be wrong with a signature that does not match, tried offline: other bodies, other forms of the secret, and other
// algorithms. The intake tries a few of these itself; here there is time for all. Pure.

import { createHash, createHmac } from 'node:crypto';
import { parseIfJson } from '../../base/json/json.ts';
import { withOtherEnd } from '../../base/signing/signature-cause.ts';
import { jsonForms } from './json.ts';

type Bytes = string | Buffer;
/** `words`: what was done in place of the right thing; undefined for the right thing. */
type Variant<Value> = { readonly value: Value; readonly words?: string };
type Digest = (key: Bytes, body: Buffer) => Buffer;

const RIGHT_DIGEST: Digest = (key, body) => createHmac('sha256', key).update(body).digest();

/**
 * @param raw the content of the secret's file
 * @returns what was done in place of the right thing; empty if the digest is right; undefined if no guess fits
 */
export function guessMistakes(
  digest: Buffer,
  { secret, raw, body }: { secret: string; raw: string; body: Buffer },
): readonly string[] | undefined {
  const keys = keysLike(secret, raw);
  const bodies = bodiesLike(body);
  const asIs = [{ value: body }];
  for (const [someBodies, digests] of [
    [bodies, [{ value: RIGHT_DIGEST }]],
    [asIs, DIGESTS],
  ] as const) {
    for (const otherBody of someBodies) {
      for (const key of keys) {
        for (const other of digests) {
          const parts: readonly Variant<unknown>[] = [otherBody, key, other];
          if (other.value(key.value, otherBody.value).equals(digest)) {
            return parts.flatMap(({ words }) => words ?? []);
          }
        }
      }
    }
  }
  return undefined;
}

function keysLike(secret: string, raw: string): readonly Variant<Bytes>[] {
  const keys: Variant<Bytes>[] = [
    { value: secret },
    { value: `${secret}\n`, words: 'the newline at the end of the file was taken as part of the secret' },
    { value: raw, words: 'all of the file was taken as the secret, white space too' },
    { value: `"${secret}"`, words: 'quotes were taken as part of the secret' },
    { value: secret.replaceAll(/^(["'])(.*)\1$/g, '$2'), words: 'the secret was used without its quotes' },
    { value: Buffer.from(secret, 'base64'), words: 'the secret was decoded from base64; it is used as text' },
  ];
  if (/^(?:[\da-f]{2})+$/i.test(secret)) {
    const value = Buffer.from(secret, 'hex');
    keys.push({ value, words: 'the secret was decoded from hex; it is used as text' });
  }
  return keys;
}

const variant = (changed: string, words: string) => ({ value: Buffer.from(changed, 'latin1'), words });

function bodiesLike(body: Buffer): readonly Variant<Buffer>[] {
  // As Latin-1 each byte is a character, so that the bytes outlive the change.
  const text = body.toString('latin1');
  const bodies: Variant<Buffer>[] = [
    { value: body },
    ...withOtherEnd(body).map((other) => ({ value: other.body, words: `it was ${other.cause}` })),
    variant(text.trimEnd(), 'it was signed without the white space at the end of the body'),
    variant(text.trim(), 'it was signed without the white space around the body'),
    variant(text.replaceAll(/\r?\n/g, '\n'), 'it was signed with \\n where the body has \\r\\n'),
    variant(text.replaceAll(/\r?\n/g, '\r\n'), 'it was signed with \\r\\n where the body has \\n'),
    variant(
      text.replaceAll(/[\r\n]/g, ''),
      'it was signed without the line breaks of the body; curl -d removes them too, --data-binary does not',
    ),
    variant(`${BOM}${text}`, 'it was signed with a byte order mark (BOM) before the body'),
    variant(text.replace(BOM, ''), 'it was signed without the byte order mark (BOM) of the body'),
    variant('', 'it was signed over an empty body'),
  ];
  if (body.length > JSON_MAX_BYTES || parseIfJson(body.toString()) === undefined) return bodies;
  const forms = jsonForms(text).map(({ json, words }) => ({
    json,
    words: `it was signed over the JSON ${words}`,
  }));
  return [
    ...bodies,
    ...forms.map(({ json, words }) => variant(json, words)),
    ...forms.map(({ json, words }) => variant(`${json}\n`, `${words}, and a final newline`)),
  ];
}

/** The pattern that splits JSON overflows the stack at strings of some MiB. Notifications are far smaller. */
const JSON_MAX_BYTES = 1024 * 1024;

const BOM = '\xef\xbb\xbf';

const sha256 = (...parts: Bytes[]) => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};

const DIGESTS: readonly Variant<Digest>[] = [
  ...['sha1', 'sha384', 'sha512'].map((name) => ({
    value: ((key, body) => createHmac(name, key).update(body).digest()) satisfies Digest,
    words: `it is an HMAC with ${name.toUpperCase()} and not with SHA256`,
  })),
  { value: (_key, body) => sha256(body), words: 'it is a hash of the body alone, without the secret' },
  { value: (key, body) => sha256(key, body), words: 'it is a hash of secret and body, and not an HMAC' },
  { value: (key, body) => sha256(body, key), words: 'it is a hash of body and secret, and not an HMAC' },
  {
    value: (key, body) => createHmac('sha256', body).update(key).digest(),
    words: 'secret and body have changed places in the HMAC',
  },
];
