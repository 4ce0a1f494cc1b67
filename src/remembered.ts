// Remembers ids, so that what comes twice is known. Bounded: the oldest ids are forgotten first.

export type Remembered = {
  readonly add: (id: string) => void;
  readonly has: (id: string) => boolean;
};

export function createRemembered(idsMax: number): Remembered {
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
  const remembered = createRemembered(idsMax);
  return (id) => {
    if (remembered.has(id)) return true;
    remembered.add(id);
    return false;
  };
}
