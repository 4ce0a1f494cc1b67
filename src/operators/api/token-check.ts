// Whether what was begun with a token may go on: answers that last outlive their token by a minute at most.

import { describeError } from '../../errors.ts';
import type { Logger } from '../../log.ts';

/** Whether the token still opens anything. Rejects while the database does not tell. */
export type Holds = (tokenId: string) => Promise<boolean>;

export const TOKEN_CHECK_MS = 60_000;

/** `what`: as the log says it. True where the database does not tell: the next check does. */
export async function mayGoOn(
  tokenId: string,
  { holds, what, log }: { holds: Holds; what: string; log: Logger },
): Promise<boolean> {
  try {
    return await holds(tokenId);
  } catch (error) {
    log.warn({ err: describeError(error), token: tokenId }, `${what} is not known`);
    return true;
  }
}
