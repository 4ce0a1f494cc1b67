// Who asks: from an `Authorization` header to a token, in two steps. To recognize one costs no query, so that guesses
// cost none; what is recognized is looked up for each request, so that a revoked one opens nothing any more. While
// Postgres is away, only the metrics may rely on what is in memory.

import { describeError } from '../../errors.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import type { Logger } from '../../log.ts';
import { createKnownTokens } from './known-tokens.ts';
import { type Environment, hashToken, tokenValueOf } from './token-value.ts';
import { findToken, noteUse, type Token } from './tokens.ts';

/** One that held not long ago, for `identify`. */
export type Recognized = { readonly kind: 'known'; readonly hash: Buffer; readonly token: Token };

/** A request that comes without a token of ours. 'untold': it may be one, and the database did not tell. */
export type Stranger =
  | { readonly kind: 'none' | 'invalid' }
  | { readonly kind: 'untold'; readonly remembered: undefined; readonly cause: unknown };

export type Identity =
  | Stranger
  | { readonly kind: 'token'; readonly token: Token }
  /** The database did not tell, or was not asked. `remembered` held within the last hour and has not expired since. */
  | { readonly kind: 'untold'; readonly remembered: Token | undefined; readonly cause: unknown };

export type Access = {
  /**
   * From memory. What is not there may have been made just now: it waits for the next refresh, which all who wait share.
   * Never rejects.
   */
  readonly recognize: (authorization: string | undefined) => Promise<Recognized | Stranger>;
  /** Looks it up. Never rejects. */
  readonly identify: (recognized: Recognized) => Promise<Identity>;
  readonly close: () => void;
};

export function createAccess(options: {
  connection: Pick<DatabaseConnection, 'execute'>;
  environment: Environment;
  /** Monotonic. */
  now: () => number;
  log: Logger;
}): Access {
  const { connection, log } = options;
  const known = createKnownTokens(options);
  const noting = new Set<string>();

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

  async function recognize(authorization: string | undefined): Promise<Recognized | Stranger> {
    if (authorization === undefined) return { kind: 'none' };
    const value = tokenValueOf(authorization);
    if (value === undefined) return { kind: 'invalid' };
    const hash = hashToken(value);
    try {
      if (known.get(hash) === undefined) await known.refresh();
    } catch (cause) {
      return { kind: 'untold', remembered: undefined, cause };
    }
    const token = known.get(hash);
    return token === undefined ? { kind: 'invalid' } : { kind: 'known', hash, token };
  }

  async function identify({ hash }: Recognized): Promise<Identity> {
    try {
      const found = await findToken(connection, hash);
      if (found === undefined) {
        known.forget(hash);
        return { kind: 'invalid' };
      }
      // Nobody waits for it.
      if (found.useIsNews) void note(found.token.id);
      return { kind: 'token', token: found.token };
    } catch (cause) {
      return { kind: 'untold', remembered: known.recall(hash), cause };
    }
  }

  return { recognize, identify, close: known.close };
}
