// A signing secret as the rest of the program sees it: a key that cannot be printed, and a fingerprint that tells two secrets
// apart. The value itself does not leave this file.

import { createHash, createSecretKey, type KeyObject } from 'node:crypto';

/** Shorter secrets can be guessed offline from one signed body. */
export const SECRET_MIN_BYTES = 16;

/** Secrets that may be valid at once for a source. Each delivery of any source costs this many digests (intake/signature.ts). */
export const SECRETS_PER_SOURCE = 8;

export type Secret = {
  readonly key: KeyObject;
  /** 12 hex digits. Shows operators which secret matched, so they see when an old one is no longer used. */
  readonly fingerprint: string;
};

/** The secret, or what is wrong with it: a text that does not contain it. */
export function createSecret(text: string): Secret | string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length === 0) return 'is empty';
  if (bytes.length < SECRET_MIN_BYTES) return `is shorter than ${SECRET_MIN_BYTES} bytes`;
  // With the prefix, the fingerprint differs from a hash of the same secret that another program makes.
  const digest = createHash('sha256').update('tallyhook secret fingerprint\0').update(bytes).digest('hex');
  return { key: createSecretKey(bytes), fingerprint: digest.slice(0, 12) };
}
