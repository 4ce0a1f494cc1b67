// JSON read without JSON.parse and without doubles: each number becomes its exact decimal value. For checking that nothing
// was altered on the way, by code that shares nothing with what is checked. And the bug of V8 by which JSON.parse alters
// keys (nodejs/node#63785), provoked on purpose.

type ExactNumber = { readonly coefficient: bigint; readonly exponent: number };
export type ExactValue = string | boolean | null | ExactNumber | ExactValue[] | Map<string, ExactValue>;

/** `text` must be JSON; object keys must be unique. */
export function readExactly(text: string): ExactValue {
  let at = 0;

  function skip(): void {
    while (' \t\r\n'.includes(text[at] ?? 'x')) at++;
  }

  function value(): ExactValue {
    skip();
    const start = text[at];
    if (start === '{') return object();
    if (start === '[') return array();
    if (start === '"') return string();
    for (const [word, meaning] of [
      ['true', true],
      ['false', false],
      ['null', null],
    ] as const) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    return number();
  }

  function object(): ExactValue {
    const members = new Map<string, ExactValue>();
    at++;
    for (skip(); text[at] !== '}'; skip()) {
      const key = string();
      skip();
      at++; // the colon
      if (members.has(key)) throw new Error(`the key ${key} occurs twice`);
      members.set(key, value());
      skip();
      if (text[at] === ',') at++;
    }
    at++;
    return members;
  }

  function array(): ExactValue {
    const items: ExactValue[] = [];
    at++;
    for (skip(); text[at] !== ']'; skip()) {
      items.push(value());
      skip();
      if (text[at] === ',') at++;
    }
    at++;
    return items;
  }

  function string(): string {
    let result = '';
    for (at++; text[at] !== '"'; at++) {
      if (text[at] !== '\\') {
        result += text[at];
        continue;
      }
      at++;
      const escape = text[at] ?? '';
      if (escape === 'u') {
        result += String.fromCharCode(Number.parseInt(text.slice(at + 1, at + 5), 16));
        at += 4;
      } else {
        result += { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }[escape] ?? escape;
      }
    }
    at++;
    return result;
  }

  function number(): ExactNumber {
    const start = at;
    while ('+-.0123456789eE'.includes(text[at] ?? 'x')) at++;
    if (at === start) throw new Error(`no JSON at ${at}`);
    return exactNumber(text.slice(start, at));
  }

  const result = value();
  skip();
  if (at !== text.length) throw new Error(`more after the value at ${at}`);
  return result;
}

/** coefficient × 10^exponent, with no factor of ten left in the coefficient. */
function exactNumber(text: string): ExactNumber {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  let coefficient = BigInt(whole.replace('-', '') + fraction) * (whole.startsWith('-') ? -1n : 1n);
  let exponent = Number(power) - fraction.length + 0; // and no -0
  if (coefficient === 0n) return { coefficient, exponent: 0 };
  while (coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent += 1;
  }
  return { coefficient, exponent };
}

/** The objects stay referenced, since V8 forgets what it learned from an object that is collected. */
const kept: unknown[] = [];

/**
 * From now on JSON.parse reads a wrong key in an object `{<before>,"<escaped>":…}`. It works for some thousand objects a
 * process, each with another beginning: then V8 stops using the optimization that has the bug.
 * @param before members as JSON text; at least one.
 * @param escaped a key as it stands between its quotes, with an escape in it.
 */
export function poison(before: string, escaped: string): void {
  const { length } = readExactly(`"${escaped}"`) as string;
  kept.push(JSON.parse(`{${before},${JSON.stringify(escaped.slice(0, length))}:1}`));
}
