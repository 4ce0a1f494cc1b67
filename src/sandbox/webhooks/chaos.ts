// Trouble on purpose, for tests and demos: what a receiver has to bear from networks, attackers and a service
// with a bad day. Whatever happens comes from `random` alone, so a seed brings it back.

import { sign } from './signature.ts';

export type Chaos = {
  /** 0 to 1: how often an attempt is sent once more. */
  readonly duplicates: number;
  /** 0 to 1: how often a notice lets the next one of its job go first. */
  readonly reorder: number;
  /** Every attempt is put off by up to so much. */
  readonly delayMs: number;
  /** 0 to 1: how often the body is changed after it was signed. */
  readonly tamper: number;
  /** 0 to 1: how often an attempt is signed with another secret. */
  readonly wrongSecret: number;
  /** So many copies follow every attempt, all at once. */
  readonly flood: number;
};

export const NO_CHAOS: Chaos = { duplicates: 0, reorder: 0, delayMs: 0, tamper: 0, wrongSecret: 0, flood: 0 };

/** A flood is to wet a receiver's feet and not to be a load test. */
export const FLOOD_MAX_COPIES = 1_000;

export type SignedBody = { readonly body: Buffer; readonly signature: string };

export type Trouble = {
  /** Whether a notice is to let the next one of its job go first. */
  readonly isOvertaken: () => boolean;
  readonly delayMs: () => number;
  /** What is sent: signed bytes, or, as chance has it, a forgery of them. */
  readonly seal: (secret: string, body: Buffer) => SignedBody;
  /** How many copies follow an attempt. */
  readonly copies: () => number;
};

/** `random`: 0 ≤ random < 1. */
export function createTrouble({ chaos, random }: { chaos: Chaos; random: () => number }): Trouble {
  const happens = (probability: number) => probability > 0 && random() < probability;

  function seal(secret: string, body: Buffer): SignedBody {
    const signature = sign(happens(chaos.wrongSecret) ? `not-the-secret-${random()}` : secret, body);
    return { body: happens(chaos.tamper) ? tamper(body, random()) : body, signature };
  }

  return {
    isOvertaken: () => happens(chaos.reorder),
    delayMs: () => (chaos.delayMs > 0 ? Math.round(chaos.delayMs * random()) : 0),
    seal,
    copies: () => Math.min(FLOOD_MAX_COPIES, chaos.flood) + (happens(chaos.duplicates) ? 1 : 0),
  };
}

/** One bit of one byte: the least that a signature has to notice. */
function tamper(body: Buffer, random: number): Buffer {
  const changed = Buffer.from(body);
  const at = Math.floor(random * changed.length);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
}
