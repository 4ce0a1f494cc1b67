// A signing secret as the rest of the program may see it: a key that cannot be printed and a fingerprint
// that tells two secrets apart. The value itself never leaves this file.

import { createHash, createSecretKey, type KeyObject } from 'node:crypto';

/** Shorter secrets can be guessed offline from one signed body. */
export const SECRET_MIN_BYTES = 16;

/** So many secrets may be valid at once for a source. Each costs one digest a delivery, for every source. */
export const SECRETS_PER_SOURCE = 8;

export type Secret = {
  readonly key: KeyObject;
  /** 12 hex digits. Says which secret matched, so that an operator sees when an old one is out of use. */
  readonly fingerprint: string;
};

/** The secret, or what is wrong with it in words that do not hold it. */
export function createSecret(text: string): Secret | string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length === 0) return 'is empty';
  if (bytes.length < SECRET_MIN_BYTES) return `is shorter than ${SECRET_MIN_BYTES} bytes`;
  // The prefix keeps the fingerprint from being of use anywhere else the same secret is hashed.
  const digest = createHash('sha256').update('tallyhook secret fingerprint\0').update(bytes).digest('hex');
  return { key: createSecretKey(bytes), fingerprint: digest.slice(0, 12) };
}
