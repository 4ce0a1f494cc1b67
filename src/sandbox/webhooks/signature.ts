// Signs webhooks (service interface 6.3): here and nowhere else. It shares no code with the verification in src/intake, so that
// a bug cannot hide in both; both are tested with docs/signature-vectors.json.

import { createHmac } from 'node:crypto';

export const SIGNATURE_HEADER = 'X-Service-Signature';

/** The header's value: `sha256=` and the lowercase hexadecimal HMAC-SHA256 of the bytes as they are sent. */
export function sign(secret: string, body: Buffer): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}
