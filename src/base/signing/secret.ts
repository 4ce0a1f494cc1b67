// A signing secret as the rest of the program sees it: a key that cannot be printed, and a fingerprint that tells two secrets
// apart. The value itself does not leave this file.

import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { parseIfJson } from '../json/json.ts';

/** Shorter secrets can be guessed offline from one signed body. */
export const SECRET_MIN_BYTES = 16;

/** Secrets that may be valid at once for a source. Each delivery of any source costs this many digests (intake/signature.ts). */
export const SECRETS_PER_SOURCE = 8;

export type Secret = {
  readonly key: KeyObject;
  /** 12 hex digits. Shows operators which secret matched, so they see when an old one is no longer used. */
  readonly fingerprint: string;
  /** Its sender should use another one by then, in milliseconds since the epoch. It is taken afterwards, too, and counted. */
  readonly untilMs?: number;
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

/**
 * Reads a list of secrets, separated by commas. White space around each is not part of it, so a file may end with a newline.
 * Several can be valid at once, so that a sender can rotate them without a gap. White space in a secret, quotes around one and
 * JSON are refused: they are a list of another form, which would be taken as one wrong secret.
 * @param faults what is wrong with the list is added to it, by the place in `name` and without the value
 */
export function parseSecrets(name: string, list: string, faults: string[]): Secret[] {
  if (isJsonContainer(list)) {
    faults.push(`${name} is JSON, and takes only secrets, separated by commas; JSON belongs in SOURCES_FILE`);
    return [];
  }
  const entries = list.split(',');
  if (entries.length > SECRETS_PER_SOURCE) faults.push(`${name} has more than ${SECRETS_PER_SOURCE} entries`);
  return entries.flatMap((entry, index) => {
    const text = entry.trim();
    const secret = faultInList(text) ?? createSecret(text);
    if (typeof secret !== 'string') return [secret];
    faults.push(`${name} entry ${index + 1} ${secret}`);
    return [];
  });
}

/** An object or an array. Any other JSON text may be a secret, such as a long number. */
function isJsonContainer(list: string): boolean {
  return /^\s*[[{]/.test(list) && parseIfJson(list) !== undefined;
}

/** What shows that the text was meant as something else than one secret. */
function faultInList(text: string): string | undefined {
  if (/[\r\n]/.test(text)) return 'has a line break in it: separate secrets by commas';
  if (/\s/.test(text)) return 'has white space in it: separate secrets by commas';
  return /^(["']).*\1$/.test(text) ? 'has quotes around it: write it without them' : undefined;
}
