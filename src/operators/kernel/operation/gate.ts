// What every request to the operators' port passes first. The gate finds out who asks, counts the request against a rate
// limit, and rejects requests that no honest client makes. `needsToken` then decides whether there is a caller.

import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from '../../../base/log/log.ts';
import { type Connections, type LimitedLines, senderOf } from '../../../http/index.ts';
import type { Authenticator, Identity } from '../access/authenticator.ts';
import type { Limits, RateState } from '../access/limits.ts';
import type { Token } from '../access/tokens.queries.ts';
import { sendError } from './answers.ts';
import { ApiError, forbidden, type Operation, unavailable } from './operation.ts';
import type { Asker } from './perform.ts';
import { faultOf } from './request-faults.ts';

const HEADER_MISSING = new ApiError(401, 'unauthorized', 'Authorization header required');
const TOKEN_INVALID = new ApiError(401, 'unauthorized', 'invalid or expired API token');
const RATE_LIMITED = new ApiError(429, 'rate_limited', 'rate limit exceeded');

export function createGate(options: {
  authenticator: Authenticator;
  limits: Limits;
  /** A connection by which a valid token came is trusted. */
  connections: Pick<Connections, 'trust'>;
  /** For requests without a token: anybody can send any number of them. */
  strangerLines: LimitedLines;
  /** Monotonic. */
  now: () => number;
  log: Logger;
}): RequestHandler {
  const { authenticator, limits, connections, strangerLines, now, log } = options;

  /**
   * A request with a known token counts against that token's limit, whatever else came from its address. It is counted
   * before the look-up, which is a query. All other requests count against their address's limit.
   */
  async function identify(
    request: Request,
    response: Response,
  ): Promise<{ identity: Identity; rate: RateState }> {
    const found = await authenticator.recognize(request.headers.authorization);
    if (found.kind !== 'known') return { identity: found, rate: await spendAddress(response) };
    const rate = await limits.spendToken(found.token.id);
    if (rate.exceeded) return { identity: { kind: 'undetermined', remembered: found.token }, rate };
    const identity = await authenticator.identify(found);
    // Revoked since it was read: from now on its requests count against the address.
    return { identity, rate: identity.kind === 'invalid' ? await spendAddress(response) : rate };
  }

  const spendAddress = (response: Response) => limits.spendAddress(addressOf(response));

  /** One line a request, without the query's values and the token. A successful scrape is logged at level debug. */
  function report(request: Request, response: Response, elapsedMs: number): void {
    const operation = response.locals['operation'] as Operation | undefined;
    const status = response.headersSent ? response.statusCode : undefined;
    const isScrape = operation === undefined && status === 200;
    const token = knownTokenOf(identityOf(response))?.id;
    const fields = {
      operation: operation?.id,
      method: request.method,
      status,
      ms: Math.round(elapsedMs * 10) / 10,
      token,
      remote: addressOf(response),
    };
    const write = () => log[isScrape ? 'debug' : 'info'](fields, 'operators request');
    if (token === undefined) strangerLines.write(String(status ?? 'unanswered'), write);
    else write();
  }

  return async (request, response, next) => {
    const startedMs = now();
    response.locals['sender'] = senderOf(request) ?? ''; // kept, since finding it walks along all hops
    const { identity, rate } = await identify(request, response);
    response.locals['identity'] = identity;
    if (identity.kind === 'token') connections.trust(response);
    response.once('close', () => report(request, response, now() - startedMs));
    response.set(rateHeaders(rate));
    const error = rate.exceeded ? RATE_LIMITED : faultOf(request);
    if (error === undefined) return next();
    if (rate.exceeded) response.set('Retry-After', String(rate.retryAfterS));
    sendError(response, error);
  };
}

export function rateHeaders({ limit, remaining, resetS }: RateState): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetS),
  };
}

/**
 * Behind the gate: for everything below /api/v1, also for paths that do not exist. Whether a remembered token is enough depends on the
 * operation (`callerOf`).
 */
export const needsToken: RequestHandler = (_request, response, next) => {
  const identity = identityOf(response);
  if (knownTokenOf(identity) !== undefined) return next();
  switch (identity.kind) {
    case 'none':
      return sendError(response, HEADER_MISSING);
    case 'invalid':
      return sendError(response, TOKEN_INVALID);
    case 'undetermined':
      return sendError(response, unavailable());
    case 'token':
      return next();
    default:
      return identity satisfies never;
  }
};

/**
 * Behind the gate, for the metrics: a token of any role, and while Postgres is away also one that was valid within the last
 * hour. Metrics count all sources, so a token that is limited to some gets a 403.
 */
export function needsTokenForMetrics({ isOpen }: { isOpen: boolean }): RequestHandler {
  return (request, response, next) => {
    if (isOpen) return next();
    const token = knownTokenOf(identityOf(response));
    if (token === undefined) return void needsToken(request, response, next);
    if (token.sources !== null) return sendError(response, forbidden());
    return next();
  };
}

/** The token, valid now or within the last hour. */
function knownTokenOf(identity: Identity): Token | undefined {
  if (identity.kind === 'token') return identity.token;
  return identity.kind === 'undetermined' ? identity.remembered : undefined;
}

/** Who calls the operation. @throws ApiError 401, or 503 if the token could not be looked up and has to be */
export function callerOf(operation: Operation, response: Response): Asker {
  response.locals['operation'] = operation;
  const identity = identityOf(response);
  const token = knownTokenOf(identity);
  if (token === undefined) throw TOKEN_INVALID;
  if (identity.kind !== 'token' && !operation.worksWithoutDatabase) throw unavailable();
  const { id, name, role, sources } = token;
  return { tokenId: id, name, role, sources, remoteAddress: addressOf(response) || null };
}

function identityOf(response: Response): Identity {
  return response.locals['identity'] as Identity;
}

function addressOf(response: Response): string {
  return response.locals['sender'] as string;
}
