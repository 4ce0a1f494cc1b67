// Cursors: the place where a page ended, as text that the caller sends back. Opaque to the caller, exact to the microsecond,
// and bound to its list and filters, so that it is rejected elsewhere.

import { hash } from 'node:crypto';
import { parseJson } from '../../../base/json/json.ts';

/** The values of a list's order at one row, as the database writes them. */
export type Position = readonly string[];

/** What a position's values are, in the order of the list. */
export type ValueType = 'time' | 'uuid' | 'bigint' | 'text' | 'rank';

const FORMS: Readonly<Record<ValueType, RegExp>> = {
  // From 1970 on, as all our times are. Postgres rejects the year 0000.
  time: /^(?:19[7-9]\d|[2-9]\d{3})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/,
  uuid: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  bigint: /^\d{1,18}$/,
  // A job id, a source or an event id.
  text: /^[^\0]{0,256}$/u,
  rank: /^\d$/,
};

/** Enough against mistakes. A forged cursor gains nothing: it only names a place in a list that its caller may read. */
const BINDING_LENGTH = 12;

export function encodeCursor(position: Position, list: string, filters: object): string {
  return Buffer.from(JSON.stringify([bindingOf(list, filters), ...position])).toString('base64url');
}

/** Undefined for text that is no cursor, or the cursor of another list or of other filters. */
export function decodeCursor(
  cursor: string,
  { list, filters, types }: { list: string; filters: object; types: readonly ValueType[] },
): Position | undefined {
  let parts: unknown;
  try {
    parts = parseJson(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts) || parts.length !== types.length + 1) return undefined;
  const [binding, ...values] = parts as unknown[];
  if (binding !== bindingOf(list, filters)) return undefined;
  const isValid = types.every((type, index) => {
    const value = values[index];
    if (typeof value !== 'string' || !FORMS[type].test(value) || !value.isWellFormed()) return false;
    return type !== 'time' || isDate(value);
  });
  return isValid ? (values as string[]) : undefined;
}

/** False for the 30th of February, which has the form of a date. */
function isDate(time: string): boolean {
  const date = new Date(time);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 19) === time.slice(0, 19);
}

function bindingOf(list: string, filters: object): string {
  const given = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify([list, given]), 'base64url').slice(0, BINDING_LENGTH);
}
