// Numbers as people read them.

/** `12,345`. */
export const grouped = (count: number): string => count.toLocaleString('en-US');

/** A count with a bound says so: `10,000+`. */
export const capped = (count: number, isExact: boolean): string => `${grouped(count)}${isExact ? '' : '+'}`;

/** `1 job`, `2 jobs`, `200+ jobs`. */
export const counted = (count: number, noun: string, isExact = true): string =>
  `${capped(count, isExact)} ${noun}${count === 1 && isExact ? '' : 's'}`;

/** Of a rate, which may be below one. */
export const rate = (value: number): string =>
  value === 0 ? '0' : value < 10 ? value.toFixed(2) : grouped(Math.round(value));
