// Reads the JSON object that nearly all notifications are: on one line, with texts, plain integers, true, false and null. One pass,
// where JSON.parse would need others beside it: for repeated keys, for numbers and for the canonical form. Anything else is not
// read at all, so that a reader that takes its time decides what it is.

import type { PlainValue } from '../../event/index.ts';
import { endOfString, parseIfJson } from '../../base/json/json.ts';
import { endOfDigits, isDigit, isPlain, ZERO } from './exact-json.ts';

/** `json` is the value as JSON.stringify writes it. The texts may be slices of the whole, and keep it in memory. */
export type Member = { readonly key: string; readonly value: PlainValue; readonly json: string };

/** JSON has them between its values only, and never within a text. */
const CONTROL_CHARACTER = /[^ -\uffff]/;
const LITERALS = ['true', 'false', 'null'];
const BACKSLASH = '\\';
const NONE = -1;

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** In the order of the text; a key may be repeated. Undefined if the text is another one, JSON or not. */
export function readFlat(text: string): readonly Member[] | undefined {
  if (CONTROL_CHARACTER.test(text)) return undefined;
  const members: Member[] = [];
  let at = afterSpace(text, 0);
  if (text.charCodeAt(at) !== OPEN_BRACE) return undefined;
  do {
    const keyAt = afterSpace(text, at + 1);
    const keyEnd = endOfText(text, keyAt);
    const colonAt = afterSpace(text, keyEnd);
    if (keyEnd === NONE || text.charCodeAt(colonAt) !== COLON) return undefined;
    const valueAt = afterSpace(text, colonAt + 1);
    const valueEnd = endOfValue(text, valueAt);
    if (valueEnd === NONE) return undefined;
    if (isDigit(text.charCodeAt(keyAt + 1))) return undefined; // objects put keys that look like an index first
    members.push(memberOf(text.slice(keyAt + 1, keyEnd - 1), text.slice(valueAt, valueEnd)));
    at = afterSpace(text, valueEnd);
  } while (text.charCodeAt(at) === COMMA);
  const isWhole = text.charCodeAt(at) === CLOSE_BRACE && afterSpace(text, at + 1) === text.length;
  if (!isWhole) return undefined;
  return text.includes(BACKSLASH) ? withoutEscapes(members) : members;
}

/** The object of these members, as JSON.stringify writes it. */
export function writeFlat(members: readonly Member[]): string {
  let json = '';
  for (const { key, json: value } of members) json += `${json === '' ? '{' : ','}"${key}":${value}`;
  return `${json}}`;
}

function memberOf(key: string, json: string): Member {
  return { key, value: json.charCodeAt(0) === QUOTE ? json.slice(1, -1) : toPlain(json), json };
}

/** A key with an escape may be the same as one without. Escapes in a value are written as JSON.stringify writes them. */
function withoutEscapes(members: readonly Member[]): readonly Member[] | undefined {
  const plain: Member[] = [];
  for (const { key, value, json } of members) {
    const isEscaped = json.includes(BACKSLASH);
    const text = isEscaped ? parseIfJson(json) : value;
    if (text === undefined || key.includes(BACKSLASH)) return undefined;
    plain.push(isEscaped ? { key, value: text as string, json: JSON.stringify(text) } : { key, value, json });
  }
  return plain;
}

function toPlain(json: string): PlainValue {
  switch (json) {
    case 'true':
      return true;
    case 'false':
      return false;
    case 'null':
      return null;
    default:
      return Number(json);
  }
}

function afterSpace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) === SPACE) at++;
  return at;
}

function endOfText(text: string, start: number): number {
  const end = text.charCodeAt(start) === QUOTE ? endOfString(text, start) : NONE;
  return end === NONE ? NONE : end + 1;
}

/** What follows must be looked at, too: the end of `12` in `12.5` is behind the 2. */
function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfText(text, start);
  const digitsAt = first === MINUS ? start + 1 : start;
  if (isDigit(text.charCodeAt(digitsAt))) return endOfInteger(text, digitsAt);
  const found = LITERALS.find((word) => text.startsWith(word, start));
  return found === undefined ? NONE : start + found.length;
}

function endOfInteger(text: string, start: number): number {
  const end = endOfDigits(text, start);
  const hasLeadingZero = text.charCodeAt(start) === ZERO && end > start + 1;
  return hasLeadingZero || !isPlain(text, start, end) ? NONE : end;
}
