// Finds the token that an `Authorization` header names, in two steps. `recognize` compares the header with the valid tokens
// in memory and costs no query, so guesses cost none. `identify` looks a recognized token up in the database for each
// request, so a revoked token is rejected at once. While Postgres is away, only the metrics may rely on the memory.

import { describeError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log/log.ts';
import type { DatabaseConnection } from '../../../ledger/index.ts';
import { createKnownTokens } from './known-tokens.ts';
import { type Environment, hashToken, tokenValueOf } from './token-value.ts';
import { findToken, noteUse, type Token } from './tokens.queries.ts';

/** A token that was valid when the memory was last refreshed. `identify` tells whether it still is. */
export type Recognized = { readonly kind: 'known'; readonly hash: Buffer; readonly token: Token };

/** A request without a recognized token. 'undetermined': the database did not answer, so the token may be valid. */
export type Unrecognized =
  | { readonly kind: 'none' | 'invalid' }
  | { readonly kind: 'undetermined'; readonly remembered: undefined };

export type Identity =
  | Unrecognized
  | { readonly kind: 'token'; readonly token: Token }
  /** The database did not answer or was not asked. `remembered`: valid within the last hour, and not expired since. */
  | { readonly kind: 'undetermined'; readonly remembered: Token | undefined };

export type Authenticator = {
  /**
   * Answers from memory. An unknown token may be brand new: it waits for the next refresh, which all that wait share.
   * Never rejects.
   */
  readonly recognize: (authorization: string | undefined) => Promise<Recognized | Unrecognized>;
  /** Looks the token up in the database. Never rejects. */
  readonly identify: (recognized: Recognized) => Promise<Identity>;
  readonly close: () => void;
};

export function createAuthenticator(options: {
  connection: Pick<DatabaseConnection, 'execute'>;
  environment: Environment;
  /** Monotonic. */
  now: () => number;
  log: Logger;
}): Authenticator {
  const { connection, log } = options;
  const known = createKnownTokens(options);
  const beingNoted = new Set<string>();

  async function note(id: string): Promise<void> {
    if (beingNoted.has(id)) return;
    beingNoted.add(id);
    try {
      await noteUse(connection, id);
    } catch (error) {
      log.warn({ err: describeError(error), token: id }, 'the use of a token was not noted');
    } finally {
      beingNoted.delete(id);
    }
  }

  async function recognize(authorization: string | undefined): Promise<Recognized | Unrecognized> {
    if (authorization === undefined) return { kind: 'none' };
    const value = tokenValueOf(authorization);
    if (value === undefined) return { kind: 'invalid' };
    const hash = hashToken(value);
    try {
      if (known.get(hash) === undefined) await known.refresh();
    } catch {
      return { kind: 'undetermined', remembered: undefined };
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
      if (found.isUseUnnoted) void note(found.token.id); // the answer does not wait for it
      return { kind: 'token', token: found.token };
    } catch {
      return { kind: 'undetermined', remembered: known.recall(hash) };
    }
  }

  return { recognize, identify, close: known.close };
}
