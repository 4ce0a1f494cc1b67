// Canonical JSON whose numbers are exact decimals, so that two documents can be compared to the last digit. Shares no code
// with what is checked.

type Value = string | boolean | null | Value[] | { readonly [key: string]: Value };
type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** A number becomes an object with its exact decimal value: 1 differs from "1", and 1.50 equals 15e-1. */
const asText: Reviver = (_key, value, { source = '' }) =>
  typeof value === 'number' ? { '#': exactValue(source) } : value;

/** Its significant digits and a power of ten. It never becomes a double. */
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

/** Equal for equal values, whatever the order of their keys. */
export function canonical(value: Value | undefined): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

export const canonicalText = (json: string): string => canonical(parseExactly(json));
