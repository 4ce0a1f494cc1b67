// Identifiers as the API shows them: a prefix, and 24 characters that nobody can guess.

import { randomInt } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
const LENGTH = 24;

/** `<prefix>_` and 24 lowercase letters and digits: 124 bits. */
export function newId(prefix: string): string {
  const letters = Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]);
  return `${prefix}_${letters.join('')}`;
}
