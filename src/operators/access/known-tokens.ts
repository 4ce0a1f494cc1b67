// The tokens that hold, in memory by their hashes: a guess is told from a token without a query. Read again now and then,
// and when a hash is asked for that is not there, since a token works as soon as it is made, whoever made it. What is in
// here opens nothing by itself: it may have been revoked since.
//
// A Map compares hashes in a time that depends on them. That tells nothing worth knowing: they are the SHA-256 of 256
// random bits, and whoever found out all of one would still have to invert it.

import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../../errors.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import type { Logger } from '../../log.ts';
import type { Environment } from './token-value.ts';
import { readHoldingTokens, type Token } from './tokens.ts';

export type KnownTokens = {
  readonly get: (hash: Buffer) => Token | undefined;
  /** As it was read within the last hour, if it has not expired since. */
  readonly recall: (hash: Buffer) => Token | undefined;
  /** Resolves when all that was committed before the call is known. Rejects where the database does not tell. */
  readonly refresh: () => Promise<void>;
  readonly forget: (hash: Buffer) => void;
  readonly close: () => void;
};

/** For those who come with what is not known: what a flood of guesses costs, on all connections together. */
const REFRESH_APART_MS = 1_000;
/** Saved up in quiet times, so that nobody waits for tokens that are made one after the other. */
const REFRESHES_SAVED = 10;
/** What has expired or was revoked leaves after this, and what was made is known should Postgres go away. */
const REFRESH_INTERVAL_MS = 30_000;
/** Longer than Postgres is away for repairs; what was revoked meanwhile would open the metrics for as long. */
const REMEMBERED_MS = 60 * 60 * 1_000;

/** Holds at most MAX_TOKENS. `now`: monotonic. */
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
  let running: Promise<void> = Promise.resolve();
  let coming: Promise<void> | undefined;

  async function read(): Promise<void> {
    const begunMs = now();
    const found = await readHoldingTokens(connection, environment);
    tokens = new Map(found.map(({ hash, token }) => [keyOf(hash), token]));
    readMs = begunMs;
  }

  /** One that has begun may miss what was committed since: who comes then waits for the next, with all others. */
  function refresh(): Promise<void> {
    coming ??= refreshNext();
    return coming;
  }

  async function refreshNext(): Promise<void> {
    await running.catch(() => {});
    const waitMs = dueMs - now();
    if (waitMs > 0) await sleep(waitMs, undefined, { ref: false });
    coming = undefined;
    dueMs = Math.max(dueMs, now() - REFRESHES_SAVED * REFRESH_APART_MS) + REFRESH_APART_MS;
    running = read();
    await running;
  }

  async function refreshInTurn(): Promise<void> {
    try {
      await refresh();
    } catch (error) {
      log.warn({ err: describeError(error) }, 'the known tokens were not read again');
    }
  }

  void refreshInTurn();
  const turns = setInterval(() => void refreshInTurn(), REFRESH_INTERVAL_MS).unref();

  return {
    get: (hash) => tokens.get(keyOf(hash)),
    recall: (hash) => {
      const token = tokens.get(keyOf(hash));
      const isRecent = now() - readMs <= REMEMBERED_MS;
      return token !== undefined && isRecent && !isExpired(token) ? token : undefined;
    },
    refresh,
    forget: (hash) => void tokens.delete(keyOf(hash)),
    close: () => clearInterval(turns),
  };
}

/** A heap dump should hold no tokens. */
const keyOf = (hash: Buffer) => hash.toString('base64');

const isExpired = ({ expiresAt }: Token) => expiresAt !== null && expiresAt.getTime() <= Date.now();
