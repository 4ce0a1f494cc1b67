// The type of a JSON value, by the name that JSON Schema has for it.

export type JsonType = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object';

/** `lib.es*` of TypeScript does not have it yet. */
const { isRawJSON } = JSON as unknown as { readonly isRawJSON: (value: unknown) => boolean };

/** Of a value from `JSON.parse` or `parseExactly`: a number that a double cannot hold exactly is a number, too. */
export function typeOfJson(value: unknown): JsonType {
  if (value === null) return 'null';
  if (typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string')
    return typeof value as 'boolean' | 'number' | 'string';
  if (Array.isArray(value)) return 'array';
  return isRawJSON(value) ? 'number' : 'object';
}
