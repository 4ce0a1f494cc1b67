// Numbers as people read them: exact, with separators, and with the noun that they count.

/** `3,214` */
export const exact = (count: number | bigint): string => count.toLocaleString('en-US');

const PLURALS: Readonly<Record<string, string>> = { delivery: 'deliveries', entry: 'entries' };

const plural = (noun: string): string => PLURALS[noun] ?? `${noun}s`;

/** `1 event`, `3,214 events` */
export const counted = (count: number, noun: string): string =>
  `${exact(count)} ${count === 1 ? noun : plural(noun)}`;

/** `10,000+ events` where there may be more. */
export const countedOrMore = (count: number, isExact: boolean, noun: string): string =>
  isExact ? counted(count, noun) : `${exact(count)}+ ${plural(noun)}`;
