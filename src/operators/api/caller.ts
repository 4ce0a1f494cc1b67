// Who asks, as operations and the operator log know him.

import { isRole } from '../access/roles.ts';
import type { Actor } from '../access/operator-log.ts';
import type { Token } from '../access/tokens.ts';
import { type Caller, forbidden } from './operation.ts';

/** @throws ApiError 403 for a scraper: it reads the metrics and nothing else. */
export function callerOf(token: Token, remoteAddress: string | null): Caller {
  if (!isRole(token.role)) throw forbidden();
  return {
    tokenId: token.id,
    tokenName: token.name,
    role: token.role,
    sources: token.sources,
    remoteAddress,
  };
}

export function actorOf({ tokenId, tokenName, role, remoteAddress }: Caller): Actor {
  return { tokenId, name: tokenName, role, remoteAddress };
}
