// Checks the signature of a webhook.

import { timingSafeEqual } from 'node:crypto';
import { digest } from './sign.ts';

const SIGNATURE = /^sha256=([0-9a-f]{64})$/;

/**
 * Whether one of the secrets signed this body. Constant in time: the digests of all secrets are compared, whichever matches, so
 * give all that are valid during a rotation.
 * @param body the raw bytes as they came, before any parser
 * @param header the value of `X-Service-Signature`; absent or repeated, it is no signature
 * @throws TypeError if there is no secret, or an empty one: that is a fault of your configuration, and no forged request
 */
export function verify(
  body: string | Uint8Array,
  header: string | readonly string[] | undefined,
  secrets: readonly string[],
): boolean {
  if (secrets.length === 0) throw new TypeError('there is no signing secret');
  const digests = secrets.map((secret) => digest(body, secret));
  const hex = typeof header === 'string' ? SIGNATURE.exec(header)?.[1] : undefined;
  if (hex === undefined) return false;
  const claimed = Buffer.from(hex, 'hex');
  return digests.map((each) => timingSafeEqual(each, claimed)).includes(true);
}
