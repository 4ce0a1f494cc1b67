// Reads JSON from outside, with the result that JSON.parse should give. V8's JSON.parse mangles keys with an escape
// (nodejs/node#63785, Node 24 to 26): after it has read `{"a":1,"\\":1}`, it reads the second key of `{"a":1,"\u0041":1}` as `\`,
// as long as the process lives. It reads values, and keys without an escape, correctly. So JSON.parse is called in this file only,
// and never for a text with an escape in a key.

type Container = unknown[] | Record<string, unknown>;

/**
 * The value of a JSON text. The last of repeated keys wins, `__proto__` is a key like any other, and depth has no limit.
 * @throws SyntaxError where JSON.parse does. Its message may quote the text.
 */
export function parseJson(text: string): unknown {
  return hasEscapedKey(text) ? readJson(text, Number) : JSON.parse(text);
}

/** The same; undefined if the text is not JSON (no JSON text has this value). */
export function parseIfJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * As `parseJson`, but uses JSON.parse for single strings only. Linear, no recursion.
 * @param toNumber makes a number's value from its source text.
 * @throws SyntaxError where JSON.parse does.
 */
export function readJson(text: string, toNumber: (source: string) => unknown): unknown {
  const literal = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
  const open: Container[] = [];
  let at = 0;
  let key = ''; // of the value that comes next, within an object
  let whole: unknown;

  /** The next character that is not white space; undefined at the end. */
  function peek(): string | undefined {
    while (isSpace(text.charCodeAt(at))) at++;
    return text[at];
  }

  function take(character: string): void {
    if (peek() !== character) throw notJson();
    at++;
  }

  function readString(): string {
    const end = peek() === '"' ? endOfString(text, at) : -1;
    if (end === -1) throw notJson();
    const quoted = text.slice(at, end + 1);
    at = end + 1;
    return JSON.parse(quoted) as string; // a value, not a key, as far as JSON.parse knows
  }

  function readLiteral(): unknown {
    literal.lastIndex = at;
    const source = literal.exec(text)?.[0];
    if (source === undefined) throw notJson();
    at += source.length;
    if (source === 'null') return null;
    return source === 'true' || source === 'false' ? source === 'true' : toNumber(source);
  }

  function put(value: unknown): void {
    const container = open.at(-1);
    if (container === undefined) whole = value;
    else if (Array.isArray(container)) container.push(value);
    else setOwn(container, key, value);
  }

  /** @returns whether it has members. */
  function enter(container: Container): boolean {
    put(container);
    open.push(container);
    at++;
    return peek() !== closingOf(container);
  }

  function readValue(): void {
    const first = peek();
    if (first === '{' || first === '[') {
      if (enter(first === '{' ? {} : [])) return;
    } else {
      put(first === '"' ? readString() : readLiteral());
    }
    leaveEnded();
    if (open.length > 0) take(',');
  }

  function leaveEnded(): void {
    for (let inner = open.at(-1); inner !== undefined && peek() === closingOf(inner); inner = open.at(-1)) {
      open.pop();
      at++;
    }
  }

  do {
    const container = open.at(-1);
    if (container !== undefined && !Array.isArray(container)) {
      key = readString();
      take(':');
    }
    readValue();
  } while (open.length > 0);
  if (peek() !== undefined) throw notJson();
  return whole;
}

/** The value of a string in JSON text, given with its quotes. @throws SyntaxError where it is not valid. */
export function unquote(quoted: string): string {
  return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

/** The index of the closing quote of the string whose opening quote is at `start`; -1 if there is none. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
}

const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Most texts have no backslash at all. For a text that is not JSON either answer will do: both ways throw. */
function hasEscapedKey(text: string): boolean {
  let escape = text.indexOf('\\');
  let end = -1;
  while (escape !== -1) {
    const start = text.indexOf('"', end + 1);
    end = start === -1 ? -1 : endOfString(text, start);
    if (end === -1) return false;
    if (escape > end) continue;
    if (isKey(text, end)) return true;
    escape = text.indexOf('\\', end);
  }
  return false;
}

function isKey(text: string, end: number): boolean {
  let next = end + 1;
  while (isSpace(text.charCodeAt(next))) next++;
  return text.charCodeAt(next) === COLON;
}

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

const closingOf = (container: Container) => (Array.isArray(container) ? ']' : '}');

/** A plain assignment to `__proto__` would set the prototype. */
function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

const notJson = () => new SyntaxError('the text is not JSON');
