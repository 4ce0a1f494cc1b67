// Before every route: authenticates the request, counts it against its rate limit, sets the three rate limit headers
// (service interface 8), and rejects requests without a valid token or without the needed scope (service interface 5 and 7).

import type { Request, RequestHandler, Response } from 'express';
import { peerAddress } from '../../http/index.ts';
import type { Accounts, Caller, NoCaller } from '../accounts/accounts.ts';
import type { Limits, RateState } from '../accounts/limits.ts';
import type { Scope } from '../accounts/tokens.ts';
import { forbidden, HEADER_MISSING, NO_HOST, rateLimited, sendError, TOKEN_INVALID } from './errors.ts';

export function createGate(options: {
  accounts: Pick<Accounts, 'identify'>;
  limits: Limits;
  now: () => number;
}): RequestHandler {
  const { accounts, limits, now } = options;

  /** @throws what the database throws. Sets the headers before, since every response must have them. */
  async function identify(request: Request, response: Response): Promise<Caller | NoCaller> {
    try {
      return accounts.identify(request.headers.authorization);
    } catch (error) {
      response.set(rateHeaders(await limits.spendAddress(addressOf(request))));
      throw error;
    }
  }

  function spend(found: Caller | NoCaller, request: Request): Promise<RateState> {
    return typeof found === 'string'
      ? limits.spendAddress(addressOf(request))
      : limits.spendToken(found.token.id, found.account.tier);
  }

  return async (request, response, next) => {
    const found = await identify(request, response);
    const rate = await spend(found, request);
    response.set(rateHeaders(rate));
    if (typeof found !== 'string') response.locals['caller'] = found;
    if (rate.exceeded) return sendError(response, rateLimited(secondsUntil(rate, now())));
    // RFC 9112, 3.2. Node's own check would respond without a body.
    const { httpVersion, headers } = request;
    if (httpVersion === '1.1' && headers.host === undefined) return sendError(response, NO_HOST);
    if (found === 'header_missing') return sendError(response, HEADER_MISSING);
    if (found === 'token_invalid') return sendError(response, TOKEN_INVALID);
    next();
  };
}

/** For routes behind the gate. */
export function needs(scope: Scope): RequestHandler {
  return (_request, response, next) => {
    if (callerOf(response).token.scopes.includes(scope)) return next();
    return sendError(response, forbidden({ field: 'scope', message: `the token lacks ${scope}` }));
  };
}

/** For routes behind the gate, where there always is a caller. */
export function callerOf(response: Response): Caller {
  return response.locals['caller'] as Caller;
}

export function rateHeaders({ limit, remaining, resetS }: RateState): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetS),
  };
}

function addressOf(request: Request): string {
  return peerAddress(request.socket) ?? '';
}

/** At least one, so that no client returns at once. */
function secondsUntil({ resetS }: RateState, nowMs: number): number {
  return Math.max(1, resetS - Math.floor(nowMs / 1_000));
}
