// Masks or escapes invisible characters: controls (C0, DEL and C1), format characters (such as those that change the writing
// direction), line and paragraph separators, and code points that Unicode has not assigned. A terminal acts on some of them,
// and others make a text look like another one. All text that others wrote passes through here on its way to a screen or a log.

/** For inputs that accept visible characters only. */
export const SEEN_ONLY = /^[^\p{C}\p{Zl}\p{Zp}]*$/u;
export const SEEN_ONLY_FAULT = 'must not hold control or format characters, or line breaks';

const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const INVISIBLE_IN_LINES = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/gu;
/** Tabs, line feeds and carriage returns may stand between the values of a JSON text. */
const INVISIBLE_IN_JSON = /[^\P{C}\t\n\r]|[\p{Zl}\p{Zp}]/gu;
const ESCAPED_OR_INVISIBLE_IN_JSON = /\\(u[\da-fA-F]{4}|.)|[^\P{C}\t\n\r]|[\p{Zl}\p{Zp}]/gu;
/** Colours as `styleText` writes them. */
const COLOUR_OR_INVISIBLE = new RegExp(`(\u001B\\[[\\d;]*m)|${INVISIBLE_IN_LINES.source}`, 'gu');

const MASK = '�';

/** For people, on one line. */
export function maskInvisible(text: string): string {
  return text.replaceAll(INVISIBLE, MASK);
}

/** For people. Line feeds and tabs stay. */
export function maskInvisibleInLines(text: string): string {
  return text.replaceAll(INVISIBLE_IN_LINES, MASK);
}

/** The same for text that we have coloured: colours stay. Mask what others wrote before you colour it. */
export function maskInvisibleInColours(text: string): string {
  return text.replaceAll(COLOUR_OR_INVISIBLE, (_unseen, colour?: string) => colour ?? MASK);
}

/** For people who must see all of it, on one line: `⟨U+202E⟩`. */
export function spellInvisible(text: string): string {
  return text.replaceAll(INVISIBLE, spell);
}

/** The same. Line feeds and tabs stay. */
export function spellInvisibleInLines(text: string): string {
  return text.replaceAll(INVISIBLE_IN_LINES, spell);
}

function spell(unseen: string): string {
  const code = unseen.codePointAt(0) ?? 0;
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** For programs: a JSON text of the same value, in which invisible characters are escaped. */
export function escapeInvisible(json: string): string {
  return json.replaceAll(INVISIBLE_IN_JSON, (unseen) =>
    unseen
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A JSON text whose strings are safe to print once parsed. Line feeds and tabs stay, since stack traces have them. */
export function maskInvisibleInJson(json: string): string {
  return json.replaceAll(ESCAPED_OR_INVISIBLE_IN_JSON, (found, escaped?: string) =>
    escaped === undefined || /^[ubfr]/.test(escaped) ? MASK : found,
  );
}
