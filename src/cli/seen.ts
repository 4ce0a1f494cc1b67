// Remembers ids, so that what comes twice is known. Bounded: the oldest ids are forgotten first.

/** @returns a function that tells of an id whether it was asked for it before. */
export function createSeen(idsMax: number): (id: string) => boolean {
  const ids = new Set<string>();
  return (id) => {
    if (ids.has(id)) return true;
    ids.add(id);
    const [oldest] = ids;
    if (ids.size > idsMax && oldest !== undefined) ids.delete(oldest);
    return false;
  };
}
