// Searches texts for what was planted (signing secrets, passwords, header values, the text of forgeries): as it is, or in
// base64, hex or URL encoding.

import { FORGED_MARK, HEADER_SECRETS } from './notices.ts';
import type { World } from './world.ts';

export type SecretsSearch = {
  /** Records the place if the text has anything planted in it. */
  readonly scan: (place: string, text: string) => void;
  /** Everything planted, as patterns for SQL's LIKE. */
  readonly patterns: () => string[];
  /** Each place once, without what was found there. */
  readonly found: () => string[];
};

/** Within a longer text its base64 has one of three forms. Its first and last letters depend on the text around it. */
const base64Of = (text: string) =>
  [0, 1, 2].map((before) => {
    const letters = Buffer.from(`${'-'.repeat(before)}${text}`)
      .toString('base64')
      .replace(/=+$/, '');
    return letters.slice(Math.ceil((before * 8) / 6), -1);
  });

function formsOf(text: string): string[] {
  const hex = Buffer.from(text).toString('hex');
  const base64 = base64Of(text);
  const urlSafe = base64.map((letters) => letters.replaceAll('+', '-').replaceAll('/', '_'));
  return [...new Set([text, encodeURIComponent(text), hex, hex.toUpperCase(), ...base64, ...urlSafe])];
}

const passwordOf = (url: string) => decodeURIComponent(new URL(url).password);

export function createSecretsSearch(world: Pick<World, 'postgres' | 'rabbitmq' | 'sources'>): SecretsSearch {
  const fixed = [
    FORGED_MARK,
    ...Object.values(HEADER_SECRETS),
    passwordOf(world.postgres.url),
    passwordOf(world.rabbitmq.url),
  ];
  const places = new Set<string>();
  const known = new Map<string, readonly string[]>();
  function forms(text: string): readonly string[] {
    const found = known.get(text) ?? formsOf(text);
    known.set(text, found);
    return found;
  }
  // Computed each time, since secrets are rotated.
  const planted = () => [...fixed, ...world.sources.inForce.map(({ secret }) => secret)].flatMap(forms);
  return {
    scan: (place, text) => {
      if (planted().some((secret) => text.includes(secret))) places.add(place);
    },
    patterns: () => planted().map((text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`),
    found: () => [...places],
  };
}
