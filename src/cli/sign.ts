// Signs as the conversion service does (service interface 6.3), for the commands that send and check webhooks. Shares no code
// with the intake: shared code would share its bugs.

import { createHmac } from 'node:crypto';

/** The value of X-Service-Signature. */
export const signatureOf = (secret: string, body: Buffer): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
