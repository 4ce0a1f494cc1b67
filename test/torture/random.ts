// Random numbers that a seed decides: xoshiro128** (Blackman and Vigna, 2018), its state taken from SHA-256 of the seed and
// a label. Each part of a run has its own label, so that the draws of one part never change those of another.

import { createHash } from 'node:crypto';

export type Random = {
  /** 0 ≤ x < 1, with 32 random bits. */
  readonly unit: () => number;
  /** A whole number from `min` to `max`, both included. */
  readonly whole: (min: number, max: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(choices: readonly T[]) => T;
  readonly shuffled: <T>(items: readonly T[]) => T[];
  /** So many decimal digits, the first of them not 0. */
  readonly digits: (count: number) => string;
  /** Depends on the seed and the label alone, and not on what was drawn before. */
  readonly fork: (label: string) => Random;
};

const rotated = (x: number, by: number) => ((x << by) | (x >>> (32 - by))) >>> 0;

export function createRandom(seed: number | string): Random {
  const digest = createHash('sha256').update(String(seed)).digest();
  let [a, b, c, d] = [0, 4, 8, 12].map((at) => digest.readUInt32BE(at)) as [number, number, number, number];

  function next(): number {
    const result = Math.imul(rotated(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotated(d, 11);
    return result;
  }

  const unit = () => next() / 2 ** 32;
  const whole = (min: number, max: number) => min + Math.floor(unit() * (max - min + 1));
  return {
    unit,
    whole,
    chance: (probability) => unit() < probability,
    pick: (choices) => choices[whole(0, choices.length - 1)] as never,
    shuffled: (items) => {
      const result = [...items];
      for (let at = result.length - 1; at > 0; at--) {
        const other = whole(0, at);
        [result[at], result[other]] = [result[other] as never, result[at] as never];
      }
      return result;
    },
    digits: (count) => Array.from({ length: count }, (_, at) => whole(at === 0 ? 1 : 0, 9)).join(''),
    fork: (label) => createRandom(`${seed}/${label}`),
  };
}
