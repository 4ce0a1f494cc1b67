// What users of the real service do in its dashboard: accounts with their tier, webhook settings and signing secret, and
// their tokens. A token's value is returned only when it is created.

import { UsageError } from '../../base/errors.ts';
import { newId } from '../ids.ts';
import type { Account, AccountStore, Token } from '../store/accounts.ts';
import { EVENT_KINDS } from '../webhooks/notifications.ts';
import { newSigningSecret } from './checks.ts';
import type { TierName } from './tiers.ts';
import {
  type Environment,
  hashToken,
  isSameHash,
  newTokenValue,
  type Scope,
  tokenOf,
  tokenState,
} from './tokens.ts';

export type { Account, Token } from '../store/accounts.ts';

export type Caller = { readonly account: Account; readonly token: Token };

/** Why a request has no caller (service interface 7). */
export type NoCaller = 'header_missing' | 'token_invalid';

type Settings = Omit<Account, 'id' | 'name' | 'createdAt'> & { readonly signingSecret: string };

/** Undefined changes nothing. */
export type AccountChanges = { readonly [Name in keyof Settings]?: Settings[Name] | undefined };

export type Accounts = {
  /** The account of this name, created with the defaults if there is none. @throws UsageError if there are too many */
  readonly open: (name: string) => Account;
  readonly find: (by: { id: string } | { name: string }) => Account | undefined;
  readonly change: (account: Account, changes: AccountChanges) => Account;
  /** @throws Error for an account that does not exist */
  readonly signingSecret: (accountId: string) => string;
  readonly tokens: (accountId: string) => readonly Token[];
  /** `value` is not stored, so it cannot be shown again. @throws UsageError if there are too many */
  readonly createToken: (order: {
    account: Account;
    name: string;
    environment: Environment;
    scopes: readonly Scope[];
    expiresAt: string | null;
  }) => { readonly token: Token; readonly value: string };
  /** @returns false if there is no such token, or it was revoked before */
  readonly revokeToken: (tokenId: string) => boolean;
  /** The caller by an `Authorization` header. Updates the token's `lastUsedAt`. */
  readonly identify: (authorization: string | undefined) => Caller | NoCaller;
};

/** Enough for a company's tests. Also bounds what is kept per token. */
const ACCOUNTS_MAX = 100;
const TOKENS_MAX = 1_000;

/** Saves a database write per request; nobody needs it more exact. */
const LAST_USE_RESOLUTION_MS = 1_000;

/** Not the lowest tier, so that a first trial does not run into its limits at once. */
const DEFAULT_TIER: TierName = 'pro';
const DEFAULT_ATTEMPTS = 8;

export function createAccounts({
  store,
  now,
}: {
  store: AccountStore;
  /** Milliseconds since the epoch. */
  now: () => number;
}): Accounts {
  const time = () => new Date(now()).toISOString();

  function open(name: string): Account {
    const found = store.find({ name });
    if (found !== undefined) return found;
    if (store.count() >= ACCOUNTS_MAX) throw new UsageError(`there are ${ACCOUNTS_MAX} accounts already`);
    const account: Account = {
      id: newId('acct'),
      name,
      tier: DEFAULT_TIER,
      webhookUrl: null,
      eventKinds: EVENT_KINDS,
      maxAttempts: DEFAULT_ATTEMPTS,
      retryFirstMs: null,
      retryFactor: null,
      retryMaxMs: null,
      timeoutMs: null,
      createdAt: time(),
    };
    store.add(account, newSigningSecret());
    return account;
  }

  function change(account: Account, { signingSecret, ...changes }: AccountChanges): Account {
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    // A command may have changed others since the account was read.
    const present = store.find({ id: account.id }) ?? account;
    const changed: Account = { ...present, ...Object.fromEntries(given) };
    store.change(changed);
    if (signingSecret !== undefined) store.setSigningSecret(account.id, signingSecret);
    return changed;
  }

  function createToken({ account, ...order }: Parameters<Accounts['createToken']>[0]) {
    if (store.countTokens() >= TOKENS_MAX) throw new UsageError(`there are ${TOKENS_MAX} tokens already`);
    const value = newTokenValue(order.environment);
    const token: Token = {
      ...order,
      id: newId('tok'),
      accountId: account.id,
      createdAt: time(),
      revokedAt: null,
      lastUsedAt: null,
    };
    store.addToken(token, hashToken(value));
    return { token, value };
  }

  function identify(authorization: string | undefined): Caller | NoCaller {
    if (authorization === undefined) return 'header_missing';
    const value = tokenOf(authorization);
    if (value === undefined) return 'token_invalid';
    const hash = hashToken(value);
    const found = store.findToken(hash);
    if (found === undefined || !isSameHash(found.hash, hash)) return 'token_invalid';
    if (tokenState(found.token, now()) !== 'valid') return 'token_invalid';
    const account = store.find({ id: found.token.accountId });
    if (account === undefined) return 'token_invalid';
    setLastUsed(found.token);
    return { account, token: found.token };
  }

  function setLastUsed({ id, lastUsedAt }: Token): void {
    if (lastUsedAt === null || now() - Date.parse(lastUsedAt) >= LAST_USE_RESOLUTION_MS) {
      store.setLastUsed(id, time());
    }
  }

  return {
    open,
    find: store.find,
    change,
    signingSecret: (accountId) => {
      const secret = store.signingSecret(accountId);
      if (secret === undefined) throw new Error(`there is no account ${accountId}`);
      return secret;
    },
    tokens: store.tokens,
    createToken,
    revokeToken: (tokenId) => store.revoke(tokenId, time()),
    identify,
  };
}
