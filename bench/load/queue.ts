// A first-in, first-out queue. Array.shift would move all entries of a long queue each time.

type Queue<T> = {
  readonly add: (entry: T) => void;
  readonly first: () => T | undefined;
  readonly take: () => T | undefined;
  readonly length: () => number;
};

/** The array is compacted when most of it was taken, and not each time. */
const COMPACT_FROM = 1_024;

export function createQueue<T>(): Queue<T> {
  let entries: T[] = [];
  let head = 0;
  return {
    add: (entry) => void entries.push(entry),
    first: () => entries[head],
    take: () => {
      const entry = entries[head];
      if (entry === undefined) return undefined;
      head += 1;
      if (head > COMPACT_FROM && head * 2 > entries.length) {
        entries = entries.slice(head);
        head = 0;
      }
      return entry;
    },
    length: () => entries.length - head,
  };
}
