// Counts by address in limited memory, for any number of addresses. When there is no room for a new one, the lowest count
// is subtracted from all, and addresses left with 0 are forgotten (Misra and Gries, "Finding repeated elements", 1982).
// So a count is never too high, and too low by at most the sum of all, divided by ADDRESSES_MAX + 1: an address with more
// than that share is always present.

export type AddressCounts = Map<string, number>;
export type AddressCount = { readonly address: string; readonly count: number };

/** Enough to name an address with a thousandth of all refusals. Some 100 KB at most. */
export const ADDRESSES_MAX = 1_000;

/** At the limit it walks through all counts, but each walk removes what as many calls have added. */
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
  if (times > given) counts.set(address, times - given); // the lowest count is gone, so there is room
}

/** The `most` busiest addresses, the busiest first. */
export function busiest(counts: AddressCounts, most: number): readonly AddressCount[] {
  return Array.from(counts, ([address, count]) => ({ address, count }))
    .toSorted((a, b) => b.count - a.count)
    .slice(0, most);
}
