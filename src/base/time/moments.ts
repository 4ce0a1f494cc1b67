// Times as people write them, on the command line and in the console's filters: `24h`, `2026-01-31`, RFC 3339.

const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** In seconds: `90s`, `15m`, `24h`, `7d`, or digits alone. Undefined for other text. */
export function parseSpan(text: string): number | undefined {
  const [, digits, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits) * (UNIT_S[unit] ?? 1);
}

/** Digits alone may be meant as a year. */
const parseWithUnit = (text: string) => (/[smhd]$/.test(text) ? parseSpan(text) : undefined);

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** As the API takes it: so long ago (with a unit), the begin of a day in UTC, or RFC 3339 as it is. Undefined for other text. */
export function parseMoment(text: string, nowMs: number): string | undefined {
  const span = parseWithUnit(text);
  if (span !== undefined) return isoOf(nowMs - span * 1_000);
  if (Number.isNaN(Date.parse(text))) return undefined;
  if (DAY.test(text)) return `${text}T00:00:00Z`;
  return RFC_3339.test(text) ? text : undefined;
}

/** The same of a time to come: `90d` is so long from now. */
export function parseExpiry(text: string, nowMs: number): string | undefined {
  const span = parseWithUnit(text);
  return span === undefined ? parseMoment(text, nowMs) : isoOf(nowMs + span * 1_000);
}

/** Undefined beyond the years that a Date has. */
function isoOf(ms: number): string | undefined {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
