// A bounded set of recent ids. When it is full, the oldest are dropped first.

export type RecentIds = {
  readonly add: (id: string) => void;
  readonly has: (id: string) => boolean;
};

export function createRecentIds(idsMax: number): RecentIds {
  const ids = new Set<string>();
  return {
    add: (id) => {
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > idsMax && oldest !== undefined) ids.delete(oldest);
    },
    has: (id) => ids.has(id),
  };
}

/** @returns a function that tells of an id whether it was asked for it before. */
export function createSeen(idsMax: number): (id: string) => boolean {
  const remembered = createRecentIds(idsMax);
  return (id) => {
    if (remembered.has(id)) return true;
    remembered.add(id);
    return false;
  };
}
