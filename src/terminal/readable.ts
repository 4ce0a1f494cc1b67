// Values in the form that a person reads. Times are UTC, as everywhere else; a sender's text cannot control the terminal.

import { maskInvisible } from '../base/text/invisible-characters.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const NOTHING = '–';

/** `2026-11-21 18:42:07.123`; to the millisecond. */
export function time(rfc3339: string | null | undefined): string {
  if (!rfc3339) return NOTHING;
  const [, date, clock, fraction = ''] = /^([\d-]+)T([\d:]+)(\.\d{1,3})?/.exec(rfc3339) ?? [];
  return date === undefined
    ? clean(rfc3339)
    : `${date} ${clock}${fraction.padEnd(4, fraction === '' ? ' ' : '0').trimEnd()}`;
}

/** `11-21 18:42:07`: where there is little room. */
export function briefTime(rfc3339: string | null | undefined): string {
  return time(rfc3339).replace(/^\d{4}-(.{14}).*$/, '$1');
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NOTHING;
  if (ms > 0 && ms < 1) return '<1 ms';
  if (ms < SECOND_MS) return `${Math.floor(ms)} ms`;
  if (ms < MINUTE_MS) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min ${Math.floor((ms % MINUTE_MS) / SECOND_MS)} s`;
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`;
  return `${Math.floor(ms / DAY_MS)} d ${Math.floor((ms % DAY_MS) / HOUR_MS)} h`;
}

export function ago(rfc3339: string | null, nowMs = Date.now()): string {
  return rfc3339 === null ? 'never' : `${duration(Math.max(0, nowMs - Date.parse(rfc3339)))} ago`;
}

/** `12,345` */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** For a count that may not be all of it. */
export function orMore(text: string, isExact: boolean): string {
  return isExact ? text : `at least ${text}`;
}

/** `1 event`, `12,345 events`, `1 delivery`, `2 deliveries`, `2 replays` */
export function counted(value: number, noun: string): string {
  const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : noun.endsWith('s') ? noun : `${noun}s`;
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length, Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}

/** On one line, and without what cannot be seen. */
export function clean(text: string | null | undefined): string {
  return text ? maskInvisible(text) : '';
}

/** Of a body that may not be there. */
export const sizeOf = (value: number | null): string => (value === null ? NOTHING : bytes(value));
