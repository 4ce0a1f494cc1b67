// Finds out who visits the console: the session that a cookie names, and its token. A request with a known session counts
// against the token's rate limit, as the API's do; all others count against their address, so guesses are bounded.

import type { Request, Response } from 'express';
import { describeError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log/log.ts';
import { type Connections, senderOf } from '../../../http/index.ts';
import type { DatabaseConnection } from '../../../ledger/index.ts';
import { readCookie } from '../../../web/index.ts';
import type { Limits, RateState } from '../access/limits.ts';
import { findSession, hashOf, noteSessionUse } from '../access/sessions.queries.ts';
import type { Environment } from '../access/token-value.ts';
import { noteUse, type Token } from '../access/tokens.queries.ts';
import type { Asker } from '../operation/perform.ts';

/** A name and a path of its own: the sandbox may be on the same host, and cookies know no ports. */
export const COOKIE = { name: 'tallyhook_console', path: '/console' } as const;

/** Whose cookies were valid lately. Only decides which limit a request counts against. */
const REMEMBERED_MAX = 1_000;

export type Visitor = {
  readonly rate: RateState;
  /** Undefined without an open session. */
  readonly caller: (Asker & { readonly sessionId: string }) | undefined;
};

/** @throws what the database throws */
export type Identify = (request: Request, response: Response) => Promise<Visitor>;

/** Undefined before the request was identified. */
export const visitorOf = (response: Response) => response.locals['visitor'] as Visitor | undefined;

/** A page that the script loads again is no sign that somebody sits there, so it keeps no session from being idle. */
const isByItself = (request: Request) => request.headers['sec-fetch-dest'] === 'empty';

export function createIdentify({
  connection,
  environment,
  limits,
  connections,
  log,
}: {
  connection: Pick<DatabaseConnection, 'execute'>;
  environment: Environment;
  limits: Limits;
  connections: Pick<Connections, 'trust'>;
  log: Logger;
}): Identify {
  /** Tokens by the hashes of cookies, the longest unused first. */
  const remembered = new Map<string, string>();

  function remember(key: string, tokenId: string): void {
    remembered.delete(key);
    remembered.set(key, tokenId);
    const [oldest] = remembered.keys();
    if (remembered.size > REMEMBERED_MAX && oldest !== undefined) remembered.delete(oldest);
  }

  /** The page does not wait for it. */
  async function note(sessionId: string, token: Token): Promise<void> {
    try {
      await Promise.all([noteSessionUse(connection, sessionId), noteUse(connection, token.id)]);
    } catch (error) {
      log.warn({ err: describeError(error), session: sessionId }, 'the use of a session was not noted');
    }
  }

  return async (request, response) => {
    const address = senderOf(request) ?? '';
    const hash = hashOf(readCookie(request, COOKIE));
    const key = hash?.toString('base64') ?? '';
    const known = remembered.get(key);
    const rate = await (known === undefined ? limits.spendAddress(address) : limits.spendToken(known));
    if (hash === undefined || rate.exceeded) return { rate, caller: undefined };
    const found = await findSession(connection, hash, environment);
    if (found === undefined) {
      remembered.delete(key);
      return { rate, caller: undefined };
    }
    const { id: sessionId, token } = found;
    remember(key, token.id);
    connections.trust(response);
    if (found.isUseUnnoted && !isByItself(request)) void note(sessionId, token);
    const { id: tokenId, name, role, sources } = token;
    return {
      rate,
      caller: { tokenId, sessionId, name, role, sources, remoteAddress: address || null },
    };
  };
}
