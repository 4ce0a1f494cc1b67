// Bearer tokens. Only the SHA-256 of a token is stored. A token has 256 random bits, so its hash needs neither a salt nor
// a slow algorithm.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

export const ENVIRONMENTS = ['live', 'test'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

export const SCOPES = ['jobs:read', 'jobs:write', 'webhooks:read', 'webhooks:write'] as const;
export type Scope = (typeof SCOPES)[number];

const RANDOM_BYTES = 32;

/** 32 bytes are 43 characters of base64url. */
const FORM = /^cvs_(?:live|test)_[\w-]{43}$/;

const AUTHORIZATION = /^Bearer +(\S+)$/i;

export function newTokenValue(environment: Environment): string {
  return `cvs_${environment}_${randomBytes(RANDOM_BYTES).toString('base64url')}`;
}

export function hashToken(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}

/** Compares in constant time, which the database's own comparison does not. */
export function isSameHash(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

export type TokenState = 'valid' | 'expired' | 'revoked';

export function tokenState(
  { revokedAt, expiresAt }: { readonly revokedAt: string | null; readonly expiresAt: string | null },
  nowMs: number,
): TokenState {
  if (revokedAt !== null) return 'revoked';
  return expiresAt === null || nowMs < Date.parse(expiresAt) ? 'valid' : 'expired';
}

/** The token in an `Authorization` header; undefined if there is none. The scheme is case-insensitive (RFC 9110). */
export function tokenOf(authorization: string): string | undefined {
  const value = AUTHORIZATION.exec(authorization)?.[1];
  return value !== undefined && FORM.test(value) ? value : undefined;
}
