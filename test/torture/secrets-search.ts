// Looks for what was planted (signing secrets, passwords, header values, the text of forgeries) wherever it must not be.

import { FORGED_MARK, HEADER_SECRETS } from './history.ts';
import type { World } from './world.ts';

export type SecretsSearch = {
  /** Notes the place if the text holds anything planted. */
  readonly look: (place: string, text: string) => void;
  /** All of it, as patterns of SQL's LIKE. */
  readonly patterns: () => string[];
  /** Each place once, and never what was found there. */
  readonly found: () => string[];
};

const passwordOf = (url: string) => decodeURIComponent(new URL(url).password);

export function createSecretsSearch(world: Pick<World, 'postgres' | 'rabbitmq' | 'sources'>): SecretsSearch {
  const fixed = [
    FORGED_MARK,
    ...Object.values(HEADER_SECRETS),
    passwordOf(world.postgres.url),
    passwordOf(world.rabbitmq.url),
  ];
  const places = new Set<string>();
  // Secrets are rotated: ask each time.
  const planted = () => [...fixed, ...world.sources.inForce.map(({ secret }) => secret)];
  return {
    look: (place, text) => {
      if (planted().some((secret) => text.includes(secret))) places.add(place);
    },
    patterns: () => planted().map((text) => `%${text.replaceAll('_', '\\_')}%`),
    found: () => [...places],
  };
}
