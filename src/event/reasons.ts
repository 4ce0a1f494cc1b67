// Puts into words why a body is not understood: which field, and what it must be. A reason names fields and JSON types. It
// never quotes a value, since operators read it and the sender chose the value.

import type { z } from 'zod';
import { type JsonType, typeOfJson } from '../base/json/json-type.ts';

/** A line of a list shows it whole or in a few lines. */
export const REASON_MAX_LENGTH = 300;

const TYPES: Readonly<Record<JsonType, string>> = {
  null: 'null',
  boolean: 'true or false',
  number: 'a number',
  string: 'a string',
  array: 'an array',
  object: 'an object',
};

/**
 * The error of a field's schema: `is missing`, or `must be a whole number; it is a string`. `type` is what the field has to be:
 * a value of this type that is still wrong is `must be …` alone.
 */
export const mustBe =
  (expected: string, type: JsonType) =>
  ({ input }: { readonly input?: unknown }): string => {
    if (input === undefined) return 'is missing';
    const given = typeOfJson(input);
    return given === type ? `must be ${expected}` : `must be ${expected}; it is ${TYPES[given]}`;
  };

/** One reason for each field, the first: a text that is no time has no year either. At most REASON_MAX_LENGTH characters. */
export function reasonOf({ issues }: z.ZodError): string {
  const byField = new Map<string, string>();
  for (const { path, message } of issues) {
    const field = path.join('.');
    if (!byField.has(field)) byField.set(field, `${field} ${message}`);
  }
  return listReasons([...byField.values()]);
}

/** As many as fit, each whole, and how many more there are. The first one is shown in any case. */
export function listReasons(reasons: readonly string[]): string {
  for (let shown = reasons.length; shown > 1; shown -= 1) {
    const text = firstOf(reasons, shown);
    if (text.length <= REASON_MAX_LENGTH) return text;
  }
  return firstOf(reasons, 1);
}

function firstOf(reasons: readonly string[], shown: number): string {
  const more = reasons.length - shown;
  return [...reasons.slice(0, shown), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
