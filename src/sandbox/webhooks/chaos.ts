// Deliberate trouble for tests and demos: duplicates, wrong order, delays, forgeries, floods. All of it is drawn from
// `random`, so the same seed gives the same trouble.

import { sign } from './signature.ts';

export type Chaos = {
  /** Probability that an attempt is sent twice. */
  readonly duplicates: number;
  /** Probability that a notification is sent after the next one of its job. */
  readonly reorder: number;
  /** The longest delay before an attempt. */
  readonly delayMs: number;
  /** Probability that the body is changed after signing. */
  readonly tamper: number;
  /** Probability that an attempt is signed with another secret. */
  readonly wrongSecret: number;
  /** Copies that are sent after each attempt. */
  readonly flood: number;
};

export const NO_CHAOS: Chaos = { duplicates: 0, reorder: 0, delayMs: 0, tamper: 0, wrongSecret: 0, flood: 0 };

/** A flood is a test of correctness, not a load test. */
export const FLOOD_MAX_COPIES = 1_000;

export type SignedBody = { readonly body: Buffer; readonly signature: string };

export type Trouble = {
  /** Whether a notification is sent after the next one of its job. */
  readonly isReordered: () => boolean;
  readonly delayMs: () => number;
  /** The body with its signature. Each of the two is forged with its own probability. */
  readonly sign: (secret: string, body: Buffer) => SignedBody;
  /** How many copies follow an attempt. */
  readonly copies: () => number;
};

/** `random`: 0 ≤ random < 1. */
export function createTrouble({ chaos, random }: { chaos: Chaos; random: () => number }): Trouble {
  const happens = (probability: number) => probability > 0 && random() < probability;

  return {
    isReordered: () => happens(chaos.reorder),
    delayMs: () => (chaos.delayMs > 0 ? Math.round(chaos.delayMs * random()) : 0),
    sign: (secret, body) => {
      const signature = sign(happens(chaos.wrongSecret) ? `not-the-secret-${random()}` : secret, body);
      return { body: happens(chaos.tamper) ? tamper(body, random()) : body, signature };
    },
    copies: () => Math.min(FLOOD_MAX_COPIES, chaos.flood) + (happens(chaos.duplicates) ? 1 : 0),
  };
}

/** Flips one bit: the smallest change that a signature must detect. */
function tamper(body: Buffer, random: number): Buffer {
  const changed = Buffer.from(body);
  const at = Math.floor(random * changed.length);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
}
