// What every request to the console passes first: it is refused if another site's page made the browser send it, its session is
// found, and it counts against a rate limit. The API's gate ignores cookies, and this one ignores `Authorization`.

import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from '../../../base/log/log.ts';
import { type Connections, type LimitedLines, senderOf } from '../../../http/index.ts';
import type { DatabaseConnection } from '../../../ledger/index.ts';
import { isForged } from '../../../web/index.ts';
import type { Limits } from '../access/limits.ts';
import { type Environment, looksLikeToken } from '../access/token-value.ts';
import { rateHeaders } from '../operation/gate.ts';
import { ApiError } from '../operation/operation.ts';
import { createIdentify, visitorOf } from './visitors.ts';

export type GateOptions = {
  /** Tokens of another one are unknown here. */
  readonly environment: Environment;
  readonly limits: Limits;
  readonly connections: Pick<Connections, 'trust'>;
  /** For requests without a session: anybody can send any number of them. */
  readonly strangerLines: LimitedLines;
  /** For the look-ups of sessions. */
  readonly tokenConnection: DatabaseConnection;
  /** Monotonic. */
  readonly now: () => number;
  readonly log: Logger;
};

const FORGED = new ApiError(
  403,
  'cross_origin',
  'this request did not come from a page of this console, so nothing was done',
);
const RATE_LIMITED = new ApiError(429, 'rate_limited', 'too many requests: wait a minute and reload');
const TOKEN_IN_ADDRESS = new ApiError(
  400,
  'token_in_address',
  'an address ends up in logs and histories: revoke this token, and paste another one into the form',
);

/** Passes an ApiError on where the request is refused. */
export function createGate(options: GateOptions): RequestHandler {
  const { tokenConnection, strangerLines, now, log } = options;
  const identify = createIdentify({ ...options, connection: tokenConnection });

  /** One line a request, with the page's path and not its address. */
  function report(request: Request, response: Response, elapsedMs: number): void {
    const caller = visitorOf(response)?.caller;
    const status = response.headersSent ? response.statusCode : undefined;
    const fields = {
      page: response.locals['page'] as string | undefined,
      method: request.method,
      status,
      ms: Math.round(elapsedMs * 10) / 10,
      token: caller?.tokenId,
      session: caller?.sessionId,
      remote: senderOf(request),
    };
    const write = () => log.info(fields, 'console request');
    if (caller === undefined) strangerLines.write(String(status ?? 'unanswered'), write);
    else write();
  }

  return async (request, response, next) => {
    const startedMs = now();
    response.once('close', () => report(request, response, now() - startedMs));
    if (isForged(request)) throw FORGED;
    const visitor = await identify(request, response);
    response.locals['visitor'] = visitor;
    response.set(rateHeaders(visitor.rate));
    if (visitor.rate.exceeded) {
      response.set('Retry-After', String(visitor.rate.retryAfterS));
      throw RATE_LIMITED;
    }
    if (holdsToken(request.originalUrl)) throw TOKEN_IN_ADDRESS;
    next();
  };
}

function holdsToken(address: string): boolean {
  if (looksLikeToken(address)) return true;
  try {
    return looksLikeToken(decodeURIComponent(address));
  } catch {
    return false;
  }
}
