// JSON with its numbers as exact decimals, read from their text, in one canonical form, so that two documents can be
// compared to the last digit. Shares nothing with the code that is checked.

type Value = string | boolean | null | Value[] | { readonly [key: string]: Value };
type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** A number becomes an object of its exact decimal value, so that 1 and "1" are two, and 1.50 and 15e-1 one. */
const asText: Reviver = (_key, value, { source = '' }) =>
  typeof value === 'number' ? { '#': exactValue(source) } : value;

/** All its digits and a power of ten, without zeros that say nothing. No double is made of it. */
function exactValue(source: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  if (kept === '') return '0';
  return `${sign}${kept}e${BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - kept.length)}`;
}

/** @throws SyntaxError if it is no JSON. */
export function parseExactly(text: string): Value {
  return JSON.parse(text, asText as never) as Value;
}

/** Equal for two values that say the same, whatever the order of their keys. */
export function canonical(value: Value | undefined): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

export const canonicalText = (json: string): string => canonical(parseExactly(json));
