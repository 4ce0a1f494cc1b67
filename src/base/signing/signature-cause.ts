// Why a signature is not valid, in the words that operators and senders read. Pure: it looks at headers and bodies and knows no
// secret. The texts are a closed set and quote nothing: the value of a header may be a secret, or a valid signature.

import type { IncomingHttpHeaders } from 'node:http';

/** As Node names it. */
export const SIGNATURE_HEADER = 'x-service-signature';

/** The signature has the right form and matches no secret. Likely mistakes were tried, and none explains it. */
export const NO_MATCH = 'the signature does not match';
/** The same, where no trial was made: too many deliveries at once, load, or a large body. */
export const NOT_TRIED = 'the signature does not match (likely mistakes were not tried)';
/** The same, for an address whose source is not set up. */
export const NO_SOURCE = 'no source of this name is set up';

const HEX = /^[0-9a-f]+$/i;
/** 32 bytes, also in the form that is safe in URLs. */
const BASE64 = /^[\w+/-]{43}=?$/;
const PREFIX = 'sha256=';

/** Headers in which other services send a signature, by their names as Node gives them. */
const OTHER_HEADERS: Readonly<Record<string, string>> = {
  'x-hub-signature-256': 'X-Hub-Signature-256',
  'x-hub-signature': 'X-Hub-Signature',
  'x-signature-256': 'X-Signature-256',
  'x-signature': 'X-Signature',
  'x-webhook-signature': 'X-Webhook-Signature',
  'webhook-signature': 'Webhook-Signature',
  'service-signature': 'Service-Signature',
  x_service_signature: 'X_Service_Signature',
};

/** @returns undefined where there is a signature of the right form */
export function causeInHeaders(headers: IncomingHttpHeaders): string | undefined {
  const value = headers[SIGNATURE_HEADER];
  // Node joins the values of a repeated header with commas, and trims white space at both ends.
  if (value !== undefined) return causeInForm(String(value));
  const other = Object.keys(OTHER_HEADERS).find((name) => headers[name] !== undefined);
  const absent = 'no X-Service-Signature header';
  return other === undefined ? absent : `${absent}, but ${OTHER_HEADERS[other]}`;
}

/**
 * What is wrong with the form of a value; undefined if it has the form of a signature: `sha256=` and 64 lowercase hex digits.
 * All faults at once, or the sender would mend one and meet the next.
 */
export function causeInForm(value: string): string | undefined {
  return faultsInForm(value).join('; ') || undefined;
}

export const SEVERAL = 'more than one X-Service-Signature value';

/** The faults that `causeInForm` joins. */
export function faultsInForm(value: string): readonly string[] {
  if (value.trim() === '') return ['the X-Service-Signature header is empty'];
  const other = OTHER_FORMS.find(({ form }) => form.test(value));
  if (other !== undefined) return [`the signature is in another service's form (${other.words})`];
  if (isList(value)) return [SEVERAL];
  const faults: string[] = [];
  if (/\s/.test(value)) faults.push('the signature has white space in it');
  if (/["']/.test(value)) faults.push('the signature has quotes around it');
  const bare = value.replaceAll(/[\s"']/g, '');
  const digest = digestText(bare);
  if (digest === undefined) return [...faults, 'the signature does not begin with "sha256="'];
  if (bare === digest) faults.push('the signature has no "sha256=" before its digits');
  else if (!bare.startsWith(PREFIX)) faults.push('"sha256=" is not in lower case');
  return [...faults, ...faultsInDigest(digest)];
}

/** Signatures of other services, whose values have commas in them. */
const OTHER_FORMS = [
  { form: /^t=[^,]*,\s*v\d+=/, words: 't=…,v1=…' },
  { form: /^v\d+[a-z]?,/, words: 'v1,…' },
] as const;

/** Each looks like a signature, or is empty: Node joins the values of repeated headers. */
function isList(value: string): boolean {
  const values = value.split(',').map((each) => each.trim());
  return values.length > 1 && values.every((each) => each === '' || digestText(each) !== undefined);
}

function faultsInDigest(digest: string): readonly string[] {
  if (BASE64.test(digest) && !HEX.test(digest)) return ['the signature is base64, not hex'];
  if (!HEX.test(digest)) return ['the signature is not hex'];
  const faults: string[] = [];
  if (digest.length !== 64) faults.push('the signature does not have 64 hex digits');
  if (digest !== digest.toLowerCase()) faults.push('the hex digits are not in lower case');
  return faults;
}

/** What follows `sha256=`, or all of a value that has no prefix. Undefined if it has another prefix. */
function digestText(value: string): string | undefined {
  if (value.toLowerCase().startsWith(PREFIX)) return value.slice(PREFIX.length);
  return HEX.test(value) || BASE64.test(value) ? value : undefined;
}

/**
 * The digest in a value of the wrong form, to tell whether the form is all that is wrong. Also of another length, as of another
 * algorithm. Undefined if there is none, or more than one.
 */
export function digestIn(value: string): Buffer | undefined {
  const bare = value.replaceAll(/[\s"']/g, '').replace(/^[a-z\d-]+[=:](?=.)/i, '');
  if (HEX.test(bare) && bare.length % 2 === 0) return Buffer.from(bare, 'hex');
  return BASE64.test(bare) ? Buffer.from(bare, 'base64url') : undefined;
}

/** A body that may have been signed in place of the one that came. */
export type OtherBody = { readonly body: Buffer; readonly cause: string };

const LF = Buffer.from('\n');
const CRLF = Buffer.from('\r\n');

/** The body with and without a newline at its end: always two, so that they cost the same for each body. */
export function withOtherEnd(body: Buffer): readonly [OtherBody, OtherBody] {
  const [text, end] = cutNewline(body);
  if (end.length === 0) {
    const cause = 'signed with a final newline that the body does not have';
    return [
      { body: Buffer.concat([body, LF]), cause },
      { body: Buffer.concat([body, CRLF]), cause },
    ];
  }
  return [
    { body: text, cause: 'signed without the final newline of the body' },
    {
      body: Buffer.concat([text, end === LF ? CRLF : LF]),
      cause: 'signed with another final newline (\\n or \\r\\n)',
    },
  ];
}

function cutNewline(body: Buffer): readonly [text: Buffer, end: Buffer] {
  const end = [CRLF, LF].find((newline) => body.subarray(-newline.length).equals(newline));
  return end === undefined ? [body, Buffer.alloc(0)] : [body.subarray(0, body.length - end.length), end];
}
