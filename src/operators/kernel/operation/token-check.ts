// Whether a stream (export, live events) may go on: its token was valid at the begin and may be revoked meanwhile. Checked
// every minute.

import { describeError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log/log.ts';
import type { Caller } from './operation.ts';

/** Whether the token is still valid, and the session open if there is one. Rejects if the database does not answer. */
export type IsTokenValid = (tokenId: string, sessionId?: string) => Promise<boolean>;

export const TOKEN_CHECK_MS = 60_000;

/** True as well if the database does not answer: the next check decides. `what` begins the line in the log. */
export async function mayGoOn(
  { tokenId, sessionId }: Pick<Caller, 'tokenId' | 'sessionId'>,
  { isTokenValid, what, log }: { isTokenValid: IsTokenValid; what: string; log: Logger },
): Promise<boolean> {
  try {
    return await isTokenValid(tokenId, sessionId);
  } catch (error) {
    log.warn({ err: describeError(error), token: tokenId }, `${what} is not known`);
    return true;
  }
}
