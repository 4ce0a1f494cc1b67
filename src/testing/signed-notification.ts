// A notification with its signature, to send to the webhook endpoint or to give to a handler of a team's own.

import type { Kind } from '../event/index.ts';
import { sign, SIGNATURE_HEADER } from '../signature/index.ts';
import { type SampleOptions, sampleNotification } from './sample-notification.ts';

export type SignedNotification = {
  /** The bytes that are signed, as text: send them as they are. */
  readonly body: string;
  /** `content-type` and `x-service-signature`. */
  readonly headers: Readonly<Record<string, string>>;
};

/**
 * A sample notification that the secret's owner accepts. The same options give the same text and signature.
 * @throws TypeError if the secret is empty
 */
export function signedNotification<K extends Kind>(
  options: SampleOptions<K> & { readonly secret: string },
): SignedNotification {
  const { secret } = options;
  const body = sampleNotification(options);
  return { body, headers: { 'content-type': 'application/json', [SIGNATURE_HEADER]: sign(body, secret) } };
}
