// First in, first out. Array.shift would move a long queue with each step.

type Queue<T> = {
  readonly add: (entry: T) => void;
  readonly first: () => T | undefined;
  readonly take: () => T | undefined;
  readonly length: () => number;
};

/** The part that was taken is given back when it is most of the array, and not each time. */
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
