// Accounts and their tokens in the database. A signing secret is read by `signingSecret` alone, a token's hash by
// `findToken` alone.

import type { TierName } from '../accounts/tiers.ts';
import { type Environment, type Scope, SCOPES } from '../accounts/tokens.ts';
import { EVENT_KINDS, type EventKind } from '../webhooks/notifications.ts';
import type { Database } from './database.ts';

export type Account = {
  readonly id: string;
  readonly name: string;
  readonly tier: TierName;
  /** For jobs without a `webhook_url` of their own. */
  readonly webhookUrl: string | null;
  /** Which events are sent. */
  readonly eventKinds: readonly EventKind[];
  /** Per notification. */
  readonly maxAttempts: number;
  // Null in these four: as the sandbox has it.
  /** From the first attempt to the second. */
  readonly retryFirstMs: number | null;
  /** Each further wait is so many times as long. */
  readonly retryFactor: number | null;
  readonly retryMaxMs: number | null;
  /** For a whole exchange with the receiver. */
  readonly timeoutMs: number | null;
  readonly createdAt: string;
};

export type Token = {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly environment: Environment;
  readonly scopes: readonly Scope[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
};

export type AccountStore = {
  readonly add: (account: Account, signingSecret: string) => void;
  readonly find: (by: { id: string } | { name: string }) => Account | undefined;
  readonly count: () => number;
  readonly change: (account: Account) => void;
  readonly signingSecret: (accountId: string) => string | undefined;
  readonly setSigningSecret: (accountId: string, signingSecret: string) => void;
  readonly addToken: (token: Token, hash: Uint8Array) => void;
  readonly findToken: (hash: Uint8Array) => { token: Token; hash: Uint8Array } | undefined;
  /** In order of creation, revoked ones included. */
  readonly tokens: (accountId: string) => readonly Token[];
  readonly countTokens: () => number;
  /** @returns false if there is no such token, or it was revoked before */
  readonly revoke: (tokenId: string, revokedAt: string) => boolean;
  readonly setLastUsed: (tokenId: string, usedAt: string) => void;
};

export function createAccountStore(database: Database): AccountStore {
  return { ...accountStatements(database), ...tokenStatements(database) };
}

type AccountRow = Omit<Account, 'eventKinds'> & { readonly eventKinds: string };
const ACCOUNT = `id, name, tier, webhook_url as webhookUrl, event_kinds as eventKinds, max_attempts as maxAttempts,
  retry_first_ms as retryFirstMs, retry_factor as retryFactor, retry_max_ms as retryMaxMs, timeout_ms as timeoutMs,
  created_at as createdAt`;

function accountStatements({ prepare }: Database) {
  const insert = prepare(
    `insert into accounts (id, name, tier, signing_secret, webhook_url, event_kinds, max_attempts, retry_first_ms,
       retry_factor, retry_max_ms, timeout_ms, created_at)
     values (:id, :name, :tier, :secret, :webhookUrl, :eventKinds, :maxAttempts, :retryFirstMs,
       :retryFactor, :retryMaxMs, :timeoutMs, :createdAt)`,
  );
  const byId = prepare<AccountRow>(`select ${ACCOUNT} from accounts where id = ?`);
  const byName = prepare<AccountRow>(`select ${ACCOUNT} from accounts where name = ?`);
  const count = prepare<{ count: number }>('select count(*) as count from accounts');
  const update = prepare(
    `update accounts set tier = :tier, webhook_url = :webhookUrl, event_kinds = :eventKinds,
       max_attempts = :maxAttempts, retry_first_ms = :retryFirstMs, retry_factor = :retryFactor,
       retry_max_ms = :retryMaxMs, timeout_ms = :timeoutMs where id = :id`,
  );
  const secret = prepare<{ secret: string }>('select signing_secret as secret from accounts where id = ?');
  const setSecret = prepare('update accounts set signing_secret = ? where id = ?');
  return {
    add: ({ eventKinds, ...account }, signingSecret) =>
      void insert.run({ ...account, eventKinds: eventKinds.join(' '), secret: signingSecret }),
    find: (by) => {
      const row = 'id' in by ? byId.get(by.id) : byName.get(by.name);
      return row && { ...row, eventKinds: words(row.eventKinds, EVENT_KINDS) };
    },
    count: () => count.get()?.count ?? 0,
    change: ({ name: _name, createdAt: _createdAt, eventKinds, ...account }) =>
      void update.run({ ...account, eventKinds: eventKinds.join(' ') }),
    signingSecret: (accountId) => secret.get(accountId)?.secret,
    setSigningSecret: (accountId, signingSecret) => void setSecret.run(signingSecret, accountId),
  } satisfies Partial<AccountStore>;
}

type TokenRow = Omit<Token, 'scopes'> & { readonly scopes: string };
const TOKEN = `id, account_id as accountId, name, environment, scopes, created_at as createdAt, expires_at as expiresAt,
  revoked_at as revokedAt, last_used_at as lastUsedAt`;

function tokenStatements({ prepare }: Database) {
  const insert = prepare(
    `insert into tokens (id, account_id, name, environment, hash, scopes, created_at, expires_at)
     values (:id, :accountId, :name, :environment, :hash, :scopes, :createdAt, :expiresAt)`,
  );
  const byHash = prepare<TokenRow & { hash: Uint8Array }>(`select ${TOKEN}, hash from tokens where hash = ?`);
  const ofAccount = prepare<TokenRow>(
    `select ${TOKEN} from tokens where account_id = ? order by created_at, id`,
  );
  const count = prepare<{ count: number }>('select count(*) as count from tokens');
  const revoke = prepare('update tokens set revoked_at = ? where id = ? and revoked_at is null');
  const setLastUsed = prepare('update tokens set last_used_at = ? where id = ?');
  return {
    addToken: ({ scopes, revokedAt: _revokedAt, lastUsedAt: _lastUsedAt, ...token }, hash) =>
      void insert.run({ ...token, scopes: scopes.join(' '), hash }),
    findToken: (given) => {
      const row = byHash.get(given);
      if (row === undefined) return undefined;
      const { hash, ...token } = row;
      return { token: toToken(token), hash };
    },
    tokens: (accountId) => ofAccount.all(accountId).map(toToken),
    countTokens: () => count.get()?.count ?? 0,
    revoke: (tokenId, revokedAt) => Number(revoke.run(revokedAt, tokenId).changes) > 0,
    setLastUsed: (tokenId, usedAt) => void setLastUsed.run(usedAt, tokenId),
  } satisfies Partial<AccountStore>;
}

function toToken(row: TokenRow): Token {
  return { ...row, scopes: words(row.scopes, SCOPES) };
}

/** The words of `text` that are `known`, in the order in which they were stored. */
function words<T extends string>(text: string, known: readonly T[]): readonly T[] {
  return text.split(' ').filter((word): word is T => known.some((each) => each === word));
}
