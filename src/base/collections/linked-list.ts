// A list in the order in which its items were added. Any of them can be removed at once, without a search.
//
// It is for what comes and goes with each delivery, where a Set or a Map costs more than it seems to: V8 gives them a new table
// every few items, and the old table keeps what was in it. Once one such table is old, the garbage collector keeps all later
// ones, with all that ever was in them, and copies that twice (docs/decisions/2026-11-23-short-lives.md). An item that leaves
// this list is let go of.

/** An item has its place in itself, in one list at a time. Only the list touches these. */
export type Linked<Item> = { previous: Item | undefined; next: Item | undefined };

export type LinkedList<Item> = Iterable<Item> & {
  /** Behind all others. An item that is in the list keeps its place. */
  readonly add: (item: Item) => void;
  readonly has: (item: Item) => boolean;
  /** @returns false if it is not in the list */
  readonly delete: (item: Item) => boolean;
  readonly first: () => Item | undefined;
  readonly size: () => number;
};

/** While it is iterated, only the present item may be deleted. */
export function createLinkedList<Item extends Linked<Item>>(): LinkedList<Item> {
  let first: Item | undefined;
  let last: Item | undefined;
  let size = 0;

  const has = (item: Item) => first === item || item.previous !== undefined;

  return {
    has,
    add: (item) => {
      if (has(item)) return;
      item.previous = last;
      if (last === undefined) first = item;
      else last.next = item;
      last = item;
      size += 1;
    },
    delete: (item) => {
      if (!has(item)) return false;
      const { previous, next } = item;
      if (previous === undefined) first = next;
      else previous.next = next;
      if (next === undefined) last = previous;
      else next.previous = previous;
      item.previous = undefined;
      item.next = undefined;
      size -= 1;
      return true;
    },
    first: () => first,
    size: () => size,
    [Symbol.iterator]: function* () {
      for (let item = first; item !== undefined; ) {
        const { next }: Linked<Item> = item;
        yield item;
        item = next;
      }
    },
  };
}
