// Checks the signature of a webhook, and says why one is not valid.

import { timingSafeEqual } from 'node:crypto';
import { faultsInForm, SEVERAL } from '../base/signing/signature-cause.ts';
import { digest } from './sign.ts';

const SIGNATURE = /^sha256=([0-9a-f]{64})$/;

/**
 * Why a signature is not valid. `message` says it to the people who run the receiver. It quotes no part of the header, of the body or
 * of a secret, and not the signature that would be right; log it, and answer every cause alike.
 */
export type Refusal = {
  /**
   * - `missing`: there is no header, or it is empty.
   * - `repeated`: there is more than one, of which any could be meant.
   * - `malformed`: it is not `sha256=` and 64 lowercase hex digits.
   * - `mismatch`: none of the secrets made it over this body.
   */
  readonly reason: 'missing' | 'repeated' | 'malformed' | 'mismatch';
  readonly message: string;
};

export type Verdict =
  | ({ readonly valid: true } & { readonly [Field in keyof Refusal]?: never })
  | ({ readonly valid: false } & Refusal);

/**
 * Whether one of the secrets signed this body. Constant in time: the digests of all secrets are compared, whichever matches, so
 * give all that are valid during a rotation.
 * @param body the raw bytes as they came, before any parser
 * @param header the value of `X-Service-Signature`; absent (also `null`, as `Headers.get` has it) or repeated, it is no signature
 * @throws TypeError if `secrets` is no list, or has no secret or an empty one: that is a fault of your configuration, and no forged
 * request
 */
export function verify(
  body: string | Uint8Array,
  header: string | readonly string[] | null | undefined,
  secrets: readonly string[],
): boolean {
  return explain(body, header, secrets).valid;
}

/** As `verify`, and says why: for the log of the receiver. @throws TypeError as `verify` does */
export function explain(
  body: string | Uint8Array,
  header: string | readonly string[] | null | undefined,
  secrets: readonly string[],
): Verdict {
  if (!Array.isArray(secrets)) throw new TypeError('secrets has to be a list of signing secrets');
  if (secrets.length === 0) throw new TypeError('there is no signing secret');
  const digests = secrets.map((secret) => digest(body, secret));
  const hex = typeof header === 'string' ? SIGNATURE.exec(header)?.[1] : undefined;
  if (hex === undefined) return { valid: false, ...withoutSignature(header) };
  const claimed = Buffer.from(hex, 'hex');
  if (digests.map((each) => timingSafeEqual(each, claimed)).includes(true)) return { valid: true };
  return { valid: false, reason: 'mismatch', message: MISMATCH };
}

const MISMATCH =
  'the signature does not match: it was made with another secret, or over other bytes than these, such as JSON that was parsed and written again';

function withoutSignature(header: string | readonly string[] | null | undefined): Refusal {
  if (header === undefined || header === null || header.length === 0)
    return { reason: 'missing', message: 'there is no X-Service-Signature header' };
  if (typeof header !== 'string')
    return { reason: 'repeated', message: 'the X-Service-Signature header came as a list of values' };
  const faults = faultsInForm(header);
  const message = faults.join('; ');
  if (header.trim() === '') return { reason: 'missing', message };
  return { reason: faults.includes(SEVERAL) ? 'repeated' : 'malformed', message };
}
