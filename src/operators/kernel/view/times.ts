// Times, always in UTC. Without a script, pointing at one shows how long ago it was; the script adds the local time.

import { type Content, html } from '../../../web/index.ts';

/** `2026-11-22 13:40:05`: what the API answers, shortened to whole seconds. The whole stands in `datetime`. */
export function utc(time: string | null): Content {
  if (time === null) return undefined;
  return timeElement(time, time.replace('T', ' ').replace(/(?:\.\d+)?Z$/, ''));
}

/** `3 minutes ago`; the time stands in its title. */
export const since = (time: string): Content => timeElement(time, ago(time));

/** `13:40:05`, where the date stands before. */
export const timeOfDay = (time: string): Content => timeElement(time, time.slice(11, 19));

/** `2026-11-22`, where the day is enough. The time stands in its title. */
export const day = (time: string): Content => timeElement(time, time.slice(0, 10));

const timeElement = (time: string, shown: string): Content =>
  html`<time datetime="${time}" title="${time}, ${ago(time)}">${shown}</time>`;

const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
];

/** `3 minutes ago`, `in 2 hours`. */
export function ago(time: string, nowMs: number = Date.now()): string {
  const seconds = Math.round((nowMs - Date.parse(time)) / 1_000);
  if (seconds === 0) return 'now';
  const text = span(Math.abs(seconds));
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** In the largest unit that fits: `3 minutes`. */
export function span(seconds: number): string {
  const [unitS, name] = UNITS.find(([size]) => seconds >= size) ?? [1, 'second'];
  const count = Math.floor(seconds / unitS);
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

/** `840 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`. */
export function duration(ms: number | null): string | undefined {
  if (ms === null) return undefined;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${(ms / 1_000).toFixed(1)} s`;
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : hours(Math.round(seconds / 60));
}

const hours = (minutes: number): string => `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
