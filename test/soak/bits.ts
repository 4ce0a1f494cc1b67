// A set of numbers, one bit each, in memory that two threads share. Five million notifications take 650 KiB.

export type Bits = {
  /** @returns true the first time. @throws RangeError past the capacity. */
  readonly mark: (number: number) => boolean;
  readonly count: () => number;
  /** How many are in this set and not in the other one. */
  readonly without: (other: Bits) => number;
  readonly words: Uint32Array<SharedArrayBuffer>;
};

const bit = (number: number): number => 2 ** (number % 32);

export function makeBits(capacity: number): SharedArrayBuffer {
  return new SharedArrayBuffer(Math.ceil(capacity / 32) * 4);
}

export function openBits(memory: SharedArrayBuffer): Bits {
  const words = new Uint32Array(memory);
  return {
    words,
    mark: (number) => {
      if (number < 0 || number >= words.length * 32) throw new RangeError(`${number} is past the capacity`);
      return (Atomics.or(words, number >>> 5, bit(number)) & bit(number)) === 0;
    },
    count: () => countOf(words, () => 0),
    without: (other) => countOf(words, (index) => Atomics.load(other.words, index)),
  };
}

function countOf(words: Uint32Array<SharedArrayBuffer>, excluded: (index: number) => number): number {
  let count = 0;
  for (let index = 0; index < words.length; index++) {
    let word = (Atomics.load(words, index) & ~excluded(index)) >>> 0;
    for (; word !== 0; word = (word & (word - 1)) >>> 0) count += 1;
  }
  return count;
}
