// What every request to the operators' side passes first: its caller is looked up, its limit is spent and told in three
// headers, and requests that no honest client makes are turned away. Whether the caller may do what he asks for is
// decided where it is known what that is.

import type { Request, RequestHandler, Response } from 'express';
import type { Access, Identity } from '../access/authenticator.ts';
import type { Limits, RateState } from '../access/limits.ts';
import { mayAct } from '../access/roles.ts';
import { looksLikeToken } from '../access/token-value.ts';
import type { Token } from '../access/tokens.ts';
import type { Logger } from '../../log.ts';
import { type Connections, type LimitedLines, ownOrigins, senderOf } from '../../http/index.ts';
import { sendError } from './answers.ts';
import { callerOf } from './caller.ts';
import { ApiError, type Caller, forbidden, type Operation } from './operation.ts';

const HEADER_MISSING = new ApiError(401, 'unauthorized', 'Authorization header required');
const TOKEN_INVALID = new ApiError(401, 'unauthorized', 'invalid or expired API token');
const RATE_LIMITED = new ApiError(429, 'rate_limited', 'rate limit exceeded');
const UNTOLD = new ApiError(
  503,
  'unavailable',
  'the database cannot be reached, or has too much to do: try again',
);
const TOKEN_IN_ADDRESS = new ApiError(
  400,
  'token_in_address',
  'an address ends up in logs: send the token in the Authorization header, and revoke this one',
);
const BAD_ENCODING = new ApiError(400, 'invalid_request', 'the address is not percent-encoded UTF-8');
const CROSS_ORIGIN = new ApiError(403, 'cross_origin', 'requests from pages of other origins are refused');

/** Parameters by which others' interfaces take tokens. */
const TOKEN_PARAMETERS = new Set(['token', 'access_token', 'api_token', 'api_key', 'authorization']);

type Passing = { readonly identity: Identity; readonly rate: RateState };

export function createGate(options: {
  access: Access;
  limits: Limits;
  /** Told of each connection that an admitted token came by. */
  connections: Pick<Connections, 'trust'>;
  /** For requests without a token: anybody can make any number of them. */
  strangerLines: LimitedLines;
  /** Monotonic. */
  now: () => number;
  log: Logger;
}): RequestHandler {
  const { access, limits, connections, strangerLines, now, log } = options;

  /**
   * Whoever comes with a token has its own count to spend, whatever else his address sent, and before the look-up, which
   * is a query. All others have their address's.
   */
  async function identify(request: Request, response: Response): Promise<Passing> {
    const found = await access.recognize(request.headers.authorization);
    if (found.kind !== 'known') return { identity: found, rate: await spendAddress(response) };
    const rate = await limits.spendToken(found.token.id);
    if (rate.exceeded) {
      return { identity: { kind: 'untold', remembered: found.token, cause: RATE_LIMITED }, rate };
    }
    const identity = await access.identify(found);
    // Revoked since: a stranger's from now on.
    return { identity, rate: identity.kind === 'invalid' ? await spendAddress(response) : rate };
  }

  const spendAddress = (response: Response) => limits.spendAddress(addressOf(response));

  /** Neither the query's values nor the token. A scrape every few seconds is no news. */
  function report(request: Request, response: Response, elapsedMs: number): void {
    const identity = identityOf(response);
    const operation = operationOf(response)?.id;
    const status = response.headersSent ? response.statusCode : undefined;
    const isScrape = operation === undefined && status === 200;
    const token = tokenOnceOf(identity)?.id;
    const fields = {
      operation,
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
    response.locals['sender'] = senderOf(request) ?? ''; // once: it takes a walk along the hops
    const { identity, rate } = await identify(request, response);
    response.locals['identity'] = identity;
    if (identity.kind === 'token') connections.trust(response);
    response.once('close', () => report(request, response, now() - startedMs));
    response.set(rateHeaders(rate));
    const refusal = rate.exceeded ? RATE_LIMITED : faultOf(request);
    if (refusal === undefined) return next();
    if (rate.exceeded) response.set('Retry-After', String(rate.retryAfterS));
    sendError(response, refusal);
  };
}

export function rateHeaders({ limit, remaining, resetS }: RateState): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetS),
  };
}

/** Behind the gate: for all that is below /api/v1, known or not. */
export const needsToken: RequestHandler = (_request, response, next) => {
  const identity = identityOf(response);
  switch (identity.kind) {
    case 'none':
      return sendError(response, HEADER_MISSING);
    case 'invalid':
      return sendError(response, TOKEN_INVALID);
    case 'untold':
      return sendError(response, UNTOLD);
    case 'token':
      return next();
    default:
      return identity satisfies never;
  }
};

/**
 * Behind the gate, for the metrics: any token that holds, and for an hour any that held when Postgres went away. Their
 * numbers are of all sources, so a token that is limited to some gets a 403.
 */
export function needsTokenOnce({ isOpen }: { isOpen: boolean }): RequestHandler {
  return (request, response, next) => {
    if (isOpen) return next();
    const token = tokenOnceOf(identityOf(response));
    if (token === undefined) return void needsToken(request, response, next);
    if (token.sources !== null) return sendError(response, forbidden());
    return next();
  };
}

function tokenOnceOf(identity: Identity): Token | undefined {
  if (identity.kind === 'token') return identity.token;
  return identity.kind === 'untold' ? identity.remembered : undefined;
}

/** Who asks for this operation. @throws ApiError 403 */
export function admit(operation: Operation, response: Response): Caller {
  response.locals['operation'] = operation;
  const identity = identityOf(response);
  if (identity.kind !== 'token') throw TOKEN_INVALID;
  const caller = callerOf(identity.token, addressOf(response) || null);
  if (!mayAct(caller.role, operation.role)) throw forbidden();
  return caller;
}

function identityOf(response: Response): Identity {
  return response.locals['identity'] as Identity;
}

function operationOf(response: Response): Operation | undefined {
  return response.locals['operation'] as Operation | undefined;
}

function addressOf(response: Response): string {
  return response.locals['sender'] as string;
}

function faultOf(request: Request): ApiError | undefined {
  let address: string;
  try {
    address = decodeURIComponent(request.originalUrl.replaceAll('+', ' '));
  } catch {
    return looksLikeToken(request.originalUrl) ? TOKEN_IN_ADDRESS : BAD_ENCODING;
  }
  if (looksLikeToken(address) || hasTokenParameter(request.originalUrl)) return TOKEN_IN_ADDRESS;
  return isCrossOrigin(request) ? CROSS_ORIGIN : undefined;
}

function hasTokenParameter(url: string): boolean {
  const [, query = ''] = url.split(/\?(.*)/s);
  return query
    .split('&')
    .some((pair) => TOKEN_PARAMETERS.has(decodeURIComponent(pair.split('=', 1)[0] ?? '').toLowerCase()));
}

/** A browser says where a page's request comes from; other clients say nothing. */
function isCrossOrigin(request: Request): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  if (origin === undefined) return false;
  return !ownOrigins(request).includes(origin.toLowerCase());
}
