// Accounts and their tokens as rows. Signing secrets leave through one function, and token hashes through another.

import type { TierName } from '../accounts/tiers.ts';
import type { Environment, Scope } from '../accounts/tokens.ts';
import type { EventKind } from '../webhooks/deliverer.ts';
import type { Database } from './database.ts';

export type Account = {
  readonly id: string;
  readonly name: string;
  readonly tier: TierName;
  /** Where notices of jobs without an address of their own go. */
  readonly webhookUrl: string | null;
  readonly eventKinds: readonly EventKind[];
  /** How often a notice is tried. */
  readonly maxAttempts: number;
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
  /** In the order of their making, revoked ones too. */
  readonly tokens: (accountId: string) => readonly Token[];
  readonly countTokens: () => number;
  /** @returns false if there is none, or it was revoked before */
  readonly revoke: (tokenId: string, revokedAt: string) => boolean;
  readonly touch: (tokenId: string, usedAt: string) => void;
};

export function createAccountStore(database: Database): AccountStore {
  return { ...accountRows(database), ...tokenRows(database) };
}

function accountRows({ prepare }: Database) {
  const insert = prepare(
    `insert into accounts (id, name, tier, signing_secret, webhook_url, event_kinds, max_attempts, created_at)
     values (:id, :name, :tier, :secret, :webhookUrl, :eventKinds, :maxAttempts, :createdAt)`,
  );
  const byId = prepare('select * from accounts where id = ?');
  const byName = prepare('select * from accounts where name = ?');
  const count = prepare('select count(*) as count from accounts');
  const update = prepare(
    `update accounts set tier = :tier, webhook_url = :webhookUrl, event_kinds = :eventKinds,
       max_attempts = :maxAttempts where id = :id`,
  );
  const secret = prepare('select signing_secret from accounts where id = ?');
  const setSecret = prepare('update accounts set signing_secret = ? where id = ?');
  return {
    add: ({ eventKinds, ...account }, signingSecret) =>
      void insert.run({ ...account, eventKinds: eventKinds.join(' '), secret: signingSecret }),
    find: (by) => toAccount('id' in by ? byId.get(by.id) : byName.get(by.name)),
    count: () => Number(count.get()?.['count']),
    change: ({ id, tier, webhookUrl, eventKinds, maxAttempts }) =>
      void update.run({ id, tier, webhookUrl, eventKinds: eventKinds.join(' '), maxAttempts }),
    signingSecret: (accountId) => secret.get(accountId)?.['signing_secret'] as string | undefined,
    setSigningSecret: (accountId, signingSecret) => void setSecret.run(signingSecret, accountId),
  } satisfies Partial<AccountStore>;
}

function tokenRows({ prepare }: Database) {
  const insert = prepare(
    `insert into tokens (id, account_id, name, environment, hash, scopes, created_at, expires_at)
     values (:id, :accountId, :name, :environment, :hash, :scopes, :createdAt, :expiresAt)`,
  );
  const byHash = prepare('select * from tokens where hash = ?');
  const ofAccount = prepare('select * from tokens where account_id = ? order by created_at, id');
  const count = prepare('select count(*) as count from tokens');
  const revoke = prepare('update tokens set revoked_at = ? where id = ? and revoked_at is null');
  const touch = prepare('update tokens set last_used_at = ? where id = ?');
  return {
    addToken: ({ id, accountId, name, environment, scopes, createdAt, expiresAt }, hash) =>
      void insert.run({
        id,
        accountId,
        name,
        environment,
        hash,
        scopes: scopes.join(' '),
        createdAt,
        expiresAt,
      }),
    findToken: (hash) => {
      const row = byHash.get(hash) as TokenRow | undefined;
      return row && { token: toToken(row), hash: row.hash };
    },
    tokens: (accountId) => ofAccount.all(accountId).map((row) => toToken(row as unknown as TokenRow)),
    countTokens: () => Number(count.get()?.['count']),
    revoke: (tokenId, revokedAt) => Number(revoke.run(revokedAt, tokenId).changes) > 0,
    touch: (tokenId, usedAt) => void touch.run(usedAt, tokenId),
  } satisfies Partial<AccountStore>;
}

type AccountRow = {
  readonly id: string;
  readonly name: string;
  readonly tier: TierName;
  readonly webhook_url: string | null;
  readonly event_kinds: string;
  readonly max_attempts: number;
  readonly created_at: string;
};

type TokenRow = {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly environment: Environment;
  readonly hash: Uint8Array;
  readonly scopes: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
};

function toAccount(found: unknown): Account | undefined {
  if (found === undefined) return undefined;
  const row = found as AccountRow;
  return {
    id: row.id,
    name: row.name,
    tier: row.tier,
    webhookUrl: row.webhook_url,
    eventKinds: words(row.event_kinds) as readonly EventKind[],
    maxAttempts: row.max_attempts,
    createdAt: row.created_at,
  };
}

function toToken(row: TokenRow): Token {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    environment: row.environment,
    scopes: words(row.scopes) as readonly Scope[],
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  };
}

function words(text: string): readonly string[] {
  return text.split(' ').filter((word) => word !== '');
}
