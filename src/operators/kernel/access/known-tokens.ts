// Keeps the valid tokens in memory by their hashes, so that telling a guess from a token costs no query. Refreshed at
// intervals, and when an unknown hash is asked for, since a token works as soon as it is made, by whichever replica. A token
// found here opens nothing by itself: it may have been revoked since the refresh.
//
// The time that a Map lookup takes depends on the hash. That leaks nothing useful: hashes are the SHA-256 of 256 random
// bits, and an attacker who learned a whole hash would still have to invert it.

import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log/log.ts';
import type { DatabaseConnection } from '../../../ledger/index.ts';
import type { Environment } from './token-value.ts';
import { readValidTokens, type Token } from './tokens.queries.ts';

export type KnownTokens = {
  readonly get: (hash: Buffer) => Token | undefined;
  /** The token, if it was read within the last hour and has not expired since. */
  readonly recall: (hash: Buffer) => Token | undefined;
  /** Resolves when everything committed before the call is known. Rejects if the database cannot be read. */
  readonly refresh: () => Promise<void>;
  readonly forget: (hash: Buffer) => void;
  readonly close: () => void;
};

/** The interval of refreshes for unknown tokens. Bounds what a flood of guesses costs, over all connections together. */
const REFRESH_APART_MS = 1_000;
/** Refreshes saved up in quiet times, so that tokens made one after the other work without a wait. */
const REFRESHES_SAVED = 10;
/** Revoked and expired tokens leave after this time, and new ones are known in case Postgres goes away. */
const REFRESH_INTERVAL_MS = 30_000;
/** Longer than a repair of Postgres takes. A token revoked meanwhile opens the metrics for as long. */
const REMEMBERED_MS = 60 * 60 * 1_000;

/** Keeps at most MAX_TOKENS. `now`: monotonic. */
export function createKnownTokens(options: {
  connection: Pick<DatabaseConnection, 'execute'>;
  environment: Environment;
  now: () => number;
  log: Logger;
}): KnownTokens {
  const { connection, environment, now, log } = options;
  let tokens = new Map<string, Token>();
  let readMs = Number.NEGATIVE_INFINITY;
  let dueMs = Number.NEGATIVE_INFINITY;
  let current: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;

  async function read(): Promise<void> {
    const begunMs = now();
    const found = await readValidTokens(connection, environment);
    tokens = new Map(found.map(({ hash, token }) => [keyOf(hash), token]));
    readMs = begunMs;
  }

  /** A read under way may miss what was committed since it began: all who call meanwhile share the next read. */
  function refresh(): Promise<void> {
    next ??= readNext();
    return next;
  }

  async function readNext(): Promise<void> {
    await current.catch(() => {});
    const waitMs = dueMs - now();
    if (waitMs > 0) await sleep(waitMs, undefined, { ref: false });
    next = undefined;
    dueMs = Math.max(dueMs, now() - REFRESHES_SAVED * REFRESH_APART_MS) + REFRESH_APART_MS;
    current = read();
    await current;
  }

  async function refreshAtInterval(): Promise<void> {
    try {
      await refresh();
    } catch (error) {
      log.warn({ err: describeError(error) }, 'the known tokens were not read again');
    }
  }

  void refreshAtInterval();
  const interval = setInterval(() => void refreshAtInterval(), REFRESH_INTERVAL_MS).unref();

  return {
    get: (hash) => tokens.get(keyOf(hash)),
    recall: (hash) => {
      const token = tokens.get(keyOf(hash));
      const isRecent = now() - readMs <= REMEMBERED_MS;
      return token !== undefined && isRecent && !isExpired(token) ? token : undefined;
    },
    refresh,
    forget: (hash) => void tokens.delete(keyOf(hash)),
    close: () => clearInterval(interval),
  };
}

/** The hash and not the token, so that a heap dump shows no token. */
const keyOf = (hash: Buffer) => hash.toString('base64');

const isExpired = ({ expiresAt }: Token) => expiresAt !== null && expiresAt.getTime() <= Date.now();
