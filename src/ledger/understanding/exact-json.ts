// Reads JSON more strictly than JSON.parse: numbers keep every digit, repeated keys and hostile depth are reported, and two
// texts with the same content have the same canonical form. No text makes it throw: bad text is a return value.

import { endOfString, parseJson, readJson, unquote } from '../../base/json/json.ts';

/** Deeper than any notification and far from where recursion would overflow the stack. */
export const MAX_DEPTH = 64;

export type JsonObject = { readonly [key: string]: unknown };

/** A number that a double cannot hold, kept as its source text by `JSON.rawJSON`. */
type RawNumber = { readonly rawJSON: string };

// V8 has the JSON source text proposal, but TypeScript's library does not declare it yet.
type SourceTextJson = {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
};
const sourceTextJson = JSON as unknown as SourceTextJson;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes; undefined if they are not UTF-8. A byte order mark is kept, and is not JSON. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** The value as JSON.parse should give it: the last of repeated keys wins, numbers are doubles. Undefined for bad text. */
export function parseLoosely(text: string): { value: unknown } | undefined {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
}

/**
 * The value with every number exact: one that a double would alter becomes a raw number, which
 * JSON.stringify writes back as it came. `text` must have been accepted by `parseLoosely`.
 */
export function parseExactly(text: string): unknown {
  return readJson(text, (source) => {
    const value = Number(source);
    return isExact(value, source) ? value : sourceTextJson.rawJSON(source);
  });
}

export type Structure = {
  readonly tooDeep: boolean;
  readonly repeatsKey: boolean;
  /** Keys of the outermost object that occur more than once, so that their value is ambiguous. */
  readonly ambiguous: ReadonlySet<string>;
  /** Every number is a plain integer that a double holds exactly. */
  readonly plainNumbers: boolean;
};

/** Any integer with this many digits is a safe one. */
const PLAIN_DIGITS = 15;

const QUOTE = 0x22;
export const ZERO = 0x30;
const NINE = 0x39;
const LOWER_E = 0x65;
const UPPER_E = 0x45;
const POINT = 0x2e;
const MINUS = 0x2d;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** What cannot be seen in the parsed value. `text` must have been accepted by `parseLoosely`. Linear, no recursion. */
export function inspectStructure(text: string): Structure {
  const open: (Set<string> | null)[] = []; // the keys of each open object; null for an array
  const ambiguous = new Set<string>();
  let tooDeep = false;
  let repeatsKey = false;
  let plainNumbers = true;
  let keyComes = false;

  function seeKey(key: string): void {
    const keys = open.at(-1);
    if (!keys?.has(key)) {
      keys?.add(key);
      return;
    }
    repeatsKey = true;
    if (open.length === 1) ambiguous.add(key);
  }

  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at);
        if (keyComes) seeKey(unquote(text.slice(at, end + 1)));
        keyComes = false;
        at = end;
        break;
      }
      case OPEN_BRACE:
      case OPEN_BRACKET:
        tooDeep ||= open.length >= MAX_DEPTH;
        // Below that depth keys are not collected, but further up one may still be repeated.
        keyComes = text.charCodeAt(at) === OPEN_BRACE && open.length < MAX_DEPTH;
        open.push(keyComes ? new Set() : null);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop();
        keyComes = false;
        break;
      case COMMA:
        keyComes = open.at(-1) !== null;
        break;
      case POINT:
      case UPPER_E:
        plainNumbers = false;
        break;
      default:
        if (!isDigit(text.charCodeAt(at))) break;
        const end = endOfDigits(text, at);
        plainNumbers &&= isPlain(text, at, end);
        at = end - 1;
    }
  }
  return { tooDeep, repeatsKey, ambiguous, plainNumbers };
}

/**
 * One text for all texts with the same content: keys sorted, no white space, numbers by their value.
 * `value` comes from `parseExactly`. Close to RFC 8785, but no number loses a digit.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'number') return JSON.stringify(value);
  if (sourceTextJson.isRawJSON(value)) return decimal(value.rawJSON);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson((value as JsonObject)[key])}`);
  return `{${members.join(',')}}`;
}

export function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

export function endOfDigits(text: string, start: number): number {
  let end = start + 1;
  while (isDigit(text.charCodeAt(end))) end++;
  return end;
}

/** Whether the digits from `start` to `end` are a whole number by themselves: no exponent, no minus zero. */
export function isPlain(text: string, start: number, end: number): boolean {
  const isMinusZero = text.charCodeAt(start) === ZERO && text.charCodeAt(start - 1) === MINUS;
  return end - start <= PLAIN_DIGITS && text.charCodeAt(end) !== LOWER_E && !isMinusZero;
}

/** Whether the double's shortest text has the same decimal value as its source text. */
function isExact(value: number, source: string): boolean {
  const shortest = String(value);
  return shortest === source || decimal(shortest) === decimal(source);
}

/** One text for each decimal value: sign, digits without outer zeros, power of ten. `1.0` and `10e-1` give `1e0`. */
function decimal(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (!match) return text; // Infinity: the source was beyond all doubles
  const [, sign = '', integer = '', fraction = '', exponent = '0'] = match;
  const digits = (integer + fraction).replace(/^0+/, '');
  const significant = withoutTrailingZeros(digits);
  if (significant === '') return '0e0';
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${sign}${significant}e${power}`;
}

/** A loop, since `/0+$/` takes quadratic time for many zeros that are not at the end. */
function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return digits.slice(0, end);
}
