// Who is signed in to the dashboard. No password exists: a code that `tallyhook sandbox` prints signs in once, and so does a
// token of the account that has all scopes. A session ends when it is idle, after a day, with its token, or when asked to.

import { createHash, randomBytes } from 'node:crypto';
import type { Account } from '../store/accounts.ts';
import type { SessionStore } from '../store/sessions.ts';
import type { Accounts } from './accounts.ts';
import { SCOPES, tokenState } from './tokens.ts';

/** Why nobody was signed in. */
export type SignInFault = 'code_unknown' | 'code_used' | 'code_expired' | 'token_invalid' | 'scopes_missing';

export type SignIn = { readonly session: string } | { readonly fault: SignInFault };

export type Sessions = {
  /** @returns a code that signs in once, within ten minutes */
  readonly newCode: (account: Account) => string;
  readonly byCode: (code: string) => SignIn;
  readonly byToken: (value: string) => SignIn;
  /** Counts as a use of the session. Undefined: it never was, or has ended. */
  readonly find: (session: string) => Account | undefined;
  readonly end: (session: string) => void;
};

export const CODE_MS = 10 * 60_000;
export const IDLE_MS = 2 * 60 * 60_000;
export const SESSION_MS = 24 * 60 * 60_000;

const RANDOM_BYTES = 32;
/** So long an old code is still told from an unknown one. */
const OLD_CODES_MS = 24 * 60 * 60_000;
/** Saves a database write per request. */
const USE_RESOLUTION_MS = 60_000;
/** Of all accounts together. The one that was not used for longest makes room. */
const SESSIONS_MAX = 1_000;

export function createSessions({
  store,
  accounts,
  now,
}: {
  store: SessionStore;
  accounts: Pick<Accounts, 'find' | 'identify' | 'tokens'>;
  /** Milliseconds since the epoch. */
  now: () => number;
}): Sessions {
  function newCode({ id: accountId }: Account): string {
    const code = newValue();
    store.dropCodes(now() - OLD_CODES_MS);
    store.addCode(hash(code), { accountId, expiresAtMs: now() + CODE_MS });
    return code;
  }

  function begin(accountId: string, tokenId: string | null): SignIn {
    const session = newValue();
    store.add(hash(session), { accountId, tokenId, createdAtMs: now(), usedAtMs: now() });
    store.drop({ createdBeforeMs: now() - SESSION_MS, usedBeforeMs: now() - IDLE_MS, keep: SESSIONS_MAX });
    return { session };
  }

  function byCode(code: string): SignIn {
    const found = store.findCode(hash(code));
    if (found === undefined) return { fault: 'code_unknown' };
    if (found.isUsed) return { fault: 'code_used' };
    if (found.expiresAtMs <= now()) return { fault: 'code_expired' };
    return store.useCode(hash(code)) ? begin(found.accountId, null) : { fault: 'code_used' };
  }

  function byToken(value: string): SignIn {
    const found = accounts.identify(`Bearer ${value}`);
    if (typeof found === 'string') return { fault: 'token_invalid' };
    // The dashboard makes tokens with any scope, so a token that lacks some must not get in.
    if (!SCOPES.every((scope) => found.token.scopes.includes(scope))) return { fault: 'scopes_missing' };
    return begin(found.account.id, found.token.id);
  }

  function find(session: string): Account | undefined {
    const key = hash(session);
    const found = store.find(key);
    if (found === undefined) return undefined;
    const { accountId, tokenId, createdAtMs, usedAtMs } = found;
    const isOver = createdAtMs + SESSION_MS <= now() || usedAtMs + IDLE_MS <= now();
    if (isOver || (tokenId !== null && !isValid(accountId, tokenId))) {
      store.end(key);
      return undefined;
    }
    if (now() - usedAtMs >= USE_RESOLUTION_MS) store.setUsed(key, now());
    return accounts.find({ id: accountId });
  }

  function isValid(accountId: string, tokenId: string): boolean {
    const token = accounts.tokens(accountId).find(({ id }) => id === tokenId);
    return token !== undefined && tokenState(token, now()) === 'valid';
  }

  return { newCode, byCode, byToken, find, end: (session) => store.end(hash(session)) };
}

function newValue(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url');
}

/** 256 random bits need neither a salt nor a slow algorithm. */
function hash(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}
