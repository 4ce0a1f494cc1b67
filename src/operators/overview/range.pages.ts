// How long a time the overview looks back: a choice in its address.

import { type Html, html } from '../../web/index.ts';
import { address } from '../kernel/view/links.ts';

const MINUTE_S = 60;
const HOUR_S = 3_600;

/** The steps are as many as can be told apart in a chart. Older counts are kept by the hour. */
export const RANGES = {
  '1h': { name: 'hour', spanS: HOUR_S, stepS: MINUTE_S },
  '6h': { name: '6 hours', spanS: 6 * HOUR_S, stepS: 5 * MINUTE_S },
  '24h': { name: '24 hours', spanS: 24 * HOUR_S, stepS: 30 * MINUTE_S },
  '7d': { name: '7 days', spanS: 7 * 24 * HOUR_S, stepS: 3 * HOUR_S },
} as const;

export type Range = keyof typeof RANGES;

/** The last hour, unless the address names another. */
export function rangeIn(query: URLSearchParams): Range {
  const asked = query.get('range') ?? '';
  return Object.hasOwn(RANGES, asked) ? (asked as Range) : '1h';
}

export function renderRanges({
  chosen,
  source,
}: {
  chosen: Range;
  /** The filter that links keep. */
  source: string | undefined;
}): Html {
  return html`<nav class="ranges" aria-label="Time that the charts show"><span class="dim" aria-hidden="true">Last</span> ${Object.entries(
    RANGES,
  ).map(
    ([range, { name }]) =>
      html`<a href="${address('/console', { range, source })}"${range === chosen && html` aria-current="true"`}><span class="unseen">Last </span>${name}</a> `,
  )}</nav>`;
}
