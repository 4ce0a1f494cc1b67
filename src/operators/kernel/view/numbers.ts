// Numbers as people read them: exact, with separators, and with the noun that they count.

/** `3,214`, also beyond what a JavaScript number holds exactly. */
export const exact = (count: number | bigint): string => count.toLocaleString('en-US');

/** A count that stopped at a bound says so: `10,000+`. */
export const capped = (count: number, isExact: boolean): string => `${exact(count)}${isExact ? '' : '+'}`;

const PLURALS: Readonly<Record<string, string>> = {
  copy: 'copies',
  delivery: 'deliveries',
  entry: 'entries',
};

/** `1 event`, `3,214 events`, `10,000+ events`. */
export function counted(count: number, noun: string, isExact = true): string {
  const isOne = count === 1 && isExact;
  return `${capped(count, isExact)} ${isOne ? noun : (PLURALS[noun] ?? `${noun}s`)}`;
}

/** Of a rate, which may be below one. */
export function rate(value: number): string {
  if (value === 0) return '0';
  if (value < 0.01) return '< 0.01';
  return value < 10 ? value.toFixed(2) : exact(Math.round(value));
}
