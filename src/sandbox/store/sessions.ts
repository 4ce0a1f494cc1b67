// Who is signed in to the dashboard, and the codes that sign in once. Values are stored as their SHA-256 alone.

import type { Database } from './database.ts';

export type SessionRow = {
  readonly accountId: string;
  /** The token that signed in; null: a code. */
  readonly tokenId: string | null;
  readonly createdAtMs: number;
  readonly usedAtMs: number;
};

export type CodeRow = { readonly accountId: string; readonly expiresAtMs: number; readonly isUsed: boolean };

export type SessionStore = {
  readonly addCode: (hash: Uint8Array, code: { accountId: string; expiresAtMs: number }) => void;
  readonly findCode: (hash: Uint8Array) => CodeRow | undefined;
  /** @returns false if it was used before */
  readonly useCode: (hash: Uint8Array) => boolean;
  readonly dropCodes: (expiredBeforeMs: number) => void;
  readonly add: (hash: Uint8Array, session: SessionRow) => void;
  readonly find: (hash: Uint8Array) => SessionRow | undefined;
  readonly setUsed: (hash: Uint8Array, usedAtMs: number) => void;
  readonly end: (hash: Uint8Array) => void;
  /** Keeps `keep` of those that began and were used since these times: the last used. */
  readonly drop: (limits: { createdBeforeMs: number; usedBeforeMs: number; keep: number }) => void;
  readonly setDashboardUrl: (url: string) => void;
  /** Undefined before the first sandbox served from this file. */
  readonly dashboardUrl: () => string | undefined;
};

export function createSessionStore({ prepare, transaction }: Database): SessionStore {
  const insertCode = prepare(
    'insert into sign_in_codes (hash, account_id, expires_at_ms) values (:hash, :accountId, :expiresAtMs)',
  );
  const code = prepare<{ accountId: string; expiresAtMs: number; isUsed: number }>(
    `select account_id as accountId, expires_at_ms as expiresAtMs, is_used as isUsed from sign_in_codes
     where hash = ?`,
  );
  const useCode = prepare('update sign_in_codes set is_used = 1 where hash = ? and is_used = 0');
  const dropCodes = prepare('delete from sign_in_codes where expires_at_ms < ?');
  const insert = prepare(
    `insert into sessions (hash, account_id, token_id, created_at_ms, used_at_ms)
     values (:hash, :accountId, :tokenId, :createdAtMs, :usedAtMs)`,
  );
  const session = prepare<SessionRow>(
    `select account_id as accountId, token_id as tokenId, created_at_ms as createdAtMs, used_at_ms as usedAtMs
     from sessions where hash = ?`,
  );
  const setUsed = prepare('update sessions set used_at_ms = ? where hash = ?');
  const end = prepare('delete from sessions where hash = ?');
  const drop = prepare(
    `delete from sessions where created_at_ms < :createdBeforeMs or used_at_ms < :usedBeforeMs or hash not in (
       select hash from sessions order by used_at_ms desc limit :keep)`,
  );
  const dropUrl = prepare('delete from dashboard');
  const insertUrl = prepare('insert into dashboard (url) values (?)');
  const url = prepare<{ url: string }>('select url from dashboard');

  return {
    addCode: (hash, { accountId, expiresAtMs }) => void insertCode.run({ hash, accountId, expiresAtMs }),
    findCode: (hash) => {
      const row = code.get(hash);
      return row && { ...row, isUsed: row.isUsed === 1 };
    },
    useCode: (hash) => Number(useCode.run(hash).changes) > 0,
    dropCodes: (expiredBeforeMs) => void dropCodes.run(expiredBeforeMs),
    add: (hash, row) => void insert.run({ hash, ...row }),
    find: (hash) => session.get(hash),
    setUsed: (hash, usedAtMs) => void setUsed.run(usedAtMs, hash),
    end: (hash) => void end.run(hash),
    drop: (limits) => void drop.run(limits),
    setDashboardUrl: (given) =>
      transaction(() => {
        dropUrl.run();
        insertUrl.run(given);
      }),
    dashboardUrl: () => url.get()?.url,
  };
}
