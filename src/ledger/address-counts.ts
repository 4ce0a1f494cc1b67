// Counts by address in bounded memory, however many addresses there are: when there is no room for a new one, each count
// gives up as much as the least of them, and who has none left is forgotten (Misra and Gries, "Finding repeated
// elements", 1982). So a count is never too high, and too low by at most the sum of all, divided by ADDRESSES_MAX + 1:
// whoever sends more than that share is there.

export type AddressCounts = Map<string, number>;
export type AddressCount = { readonly address: string; readonly count: number };

/** An address with a thousandth of all refusals is worth a name. Some 100 KB, at most. */
export const ADDRESSES_MAX = 1_000;

/** At the limit it costs a walk through all, and as many have come since the one before. */
export function countAddress(counts: AddressCounts, address: string, times = 1): void {
  const known = counts.get(address);
  if (known !== undefined || counts.size < ADDRESSES_MAX) {
    counts.set(address, (known ?? 0) + times);
    return;
  }
  const given = Math.min(times, ...counts.values());
  for (const [other, count] of counts) {
    if (count > given) counts.set(other, count - given);
    else counts.delete(other);
  }
  if (times > given) counts.set(address, times - given); // the least is gone, so there is room
}

/** The first so many, the busiest first. */
export function busiest(counts: AddressCounts, most: number): readonly AddressCount[] {
  return Array.from(counts, ([address, count]) => ({ address, count }))
    .toSorted((a, b) => b.count - a.count)
    .slice(0, most);
}
