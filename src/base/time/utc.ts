// Times as text, since senders and operators may write finer fractions than the milliseconds of a Date.

const ALREADY_UTC = /^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/**
 * RFC 3339 in UTC with the fraction as it was written; undefined if there is no such date, or its year is not 1 to 9999.
 * @param text has the form of ISO 8601 already
 */
export function toUtc(text: string): string | undefined {
  if (ALREADY_UTC.test(text)) return text;
  const [, fraction = ''] = /(\.\d+)/.exec(text) ?? [];
  const date = new Date(text.replace(fraction, ''));
  if (Number.isNaN(date.getTime())) return undefined;
  const seconds = date.toISOString().slice(0, -'.000Z'.length);
  return /^(?!0000)\d{4}-/.test(seconds) ? `${seconds}${fraction}Z` : undefined;
}
