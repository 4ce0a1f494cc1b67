// Who asks: from an `Authorization` header to a token, looked up for each request, so that a revoked one opens nothing
// any more. Remembers for a while whom it let in; only the metrics may rely on that, while Postgres is away.

import { createHash } from 'node:crypto';
import { describeError } from '../errors.ts';
import type { DatabaseConnection } from '../ledger/database.ts';
import type { Logger } from '../log.ts';
import { type Environment, tokenValueOf } from './token-value.ts';
import { findToken, MAX_TOKENS, noteUse, type Token } from './tokens.ts';

export type Identity =
  | { readonly kind: 'none' | 'invalid' }
  | { readonly kind: 'token'; readonly token: Token }
  /** The database did not tell, or was not asked. `remembered` held within the last hour and has not expired since. */
  | { readonly kind: 'untold'; readonly remembered: Token | undefined; readonly cause: unknown };

export type Access = {
  /** Never rejects. */
  readonly identify: (authorization: string | undefined) => Promise<Identity>;
  /** The token as it was let in within the last hour, if it was. It may have been revoked since. */
  readonly recall: (authorization: string | undefined) => Token | undefined;
};

const REMEMBERED_MS = 60 * 60 * 1_000;

export function createAccess(options: {
  connection: Pick<DatabaseConnection, 'execute'>;
  environment: Environment;
  /** Monotonic. */
  now: () => number;
  log: Logger;
}): Access {
  const { connection, environment, now, log } = options;
  const remembered = new Map<string, { token: Token; atMs: number }>();
  const noting = new Set<string>();

  function remember(key: string, token: Token): void {
    remembered.delete(key);
    remembered.set(key, { token, atMs: now() });
    const [oldest] = remembered.keys();
    if (remembered.size > MAX_TOKENS && oldest !== undefined) remembered.delete(oldest);
  }

  function recall(key: string): Token | undefined {
    const found = remembered.get(key);
    if (found === undefined || now() - found.atMs > REMEMBERED_MS) return undefined;
    const { expiresAt } = found.token;
    return expiresAt !== null && expiresAt.getTime() <= Date.now() ? undefined : found.token;
  }

  async function note(id: string): Promise<void> {
    if (noting.has(id)) return;
    noting.add(id);
    try {
      await noteUse(connection, id);
    } catch (error) {
      log.warn({ err: describeError(error), token: id }, 'the use of a token was not noted');
    } finally {
      noting.delete(id);
    }
  }

  async function find(value: string): Promise<Identity> {
    const key = keyOf(value);
    try {
      const found = await findToken(connection, value);
      if (found === undefined || found.token.environment !== environment) {
        remembered.delete(key);
        return { kind: 'invalid' };
      }
      remember(key, found.token);
      // Nobody waits for it.
      if (found.useIsNews) void note(found.token.id);
      return { kind: 'token', token: found.token };
    } catch (cause) {
      return { kind: 'untold', remembered: recall(key), cause };
    }
  }

  return {
    identify: async (authorization) => {
      if (authorization === undefined) return { kind: 'none' };
      const value = tokenValueOf(authorization);
      return value === undefined ? { kind: 'invalid' } : find(value);
    },
    recall: (authorization) => {
      const value = authorization === undefined ? undefined : tokenValueOf(authorization);
      return value === undefined ? undefined : recall(keyOf(value));
    },
  };
}

/** A heap dump should hold no tokens. */
function keyOf(value: string): string {
  return createHash('sha256').update(value).digest('base64');
}
