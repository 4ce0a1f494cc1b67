// A Map for what comes and goes with each delivery. It is rebuilt from time to time, so that V8 frees the old tables of the Map,
// which keep what was in them (linked-list.ts).

export type PassingMap<Key, Value> = Pick<Map<Key, Value>, 'get' | 'has' | 'delete'> & {
  readonly set: (key: Key, value: Value) => void;
  /** Of this moment, in the order in which their keys were added. */
  readonly values: () => Value[];
};

/** Fewer would cost more than they keep. A new Map costs as much as its entries, so there are as many deletions as entries before. */
const DELETIONS_MIN = 64;

export function createPassingMap<Key, Value>(): PassingMap<Key, Value> {
  let map = new Map<Key, Value>();
  let deletions = 0;

  return {
    get: (key) => map.get(key),
    has: (key) => map.has(key),
    set: (key, value) => void map.set(key, value),
    delete: (key) => {
      if (!map.delete(key)) return false;
      deletions += 1;
      if (deletions > Math.max(DELETIONS_MIN, map.size)) {
        map = new Map(map);
        deletions = 0;
      }
      return true;
    },
    values: () => [...map.values()],
  };
}
