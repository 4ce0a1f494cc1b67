// A token's value: made here, shown once, and stored as its SHA-256 alone. 256 random bits cannot be guessed, so the hash
// needs no salt and need not be slow.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ENVIRONMENTS } from '../../tokens/contract.ts';

export type Environment = (typeof ENVIRONMENTS)[number];

const RANDOM_BYTES = 32;

/** 32 bytes are 43 characters of base64url. */
const FORM = /^thk_(?:live|test)_[\w-]{43}$/;

/** Text that contains the beginning of a token, complete or not. */
const LIKENESS = /thk_(?:live|test)_/i;

const AUTHORIZATION = /^Bearer +(\S+)$/i;

export function newTokenValue(environment: Environment): string {
  return `thk_${environment}_${randomBytes(RANDOM_BYTES).toString('base64url')}`;
}

export function hashToken(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}

/** In constant time, so that the answer's time does not tell how much of a hash matched. */
export function isSameHash(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

/** The token in an `Authorization` header; undefined if it has none. The scheme's case does not matter (RFC 9110). */
export function tokenValueOf(authorization: string): string | undefined {
  const value = AUTHORIZATION.exec(authorization)?.[1];
  return value !== undefined && FORM.test(value) ? value : undefined;
}

export function looksLikeToken(text: string): boolean {
  return LIKENESS.test(text);
}
