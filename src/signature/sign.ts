// Makes the signature of a webhook: HMAC-SHA256 over the raw body (service interface 6.3).

import { createHmac } from 'node:crypto';

/** The header that carries the signature, as Node spells it in `request.headers`. */
export const SIGNATURE_HEADER = 'x-service-signature';

/**
 * The value of `X-Service-Signature`: `sha256=` and 64 lowercase hex digits.
 * @param body the bytes that are sent. Sign what you send: a new line at the end or another order of keys is another body
 * @throws TypeError if the secret is empty, since anybody could sign with it
 */
export function sign(body: string | Uint8Array, secret: string): string {
  return `sha256=${digest(body, secret).toString('hex')}`;
}

/** @throws TypeError if the secret is empty. */
export function digest(body: string | Uint8Array, secret: string): Buffer {
  if (secret === '') throw new TypeError('the signing secret is empty');
  return createHmac('sha256', secret).update(body).digest();
}
