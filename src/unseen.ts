// Masks or escapes invisible characters: controls (C0, DEL and C1), format characters (such as those that change the writing
// direction), line and paragraph separators, and code points that Unicode has not assigned. A terminal acts on some of them,
// and others make a text look like another one. All text that others wrote passes through here on its way to a screen or a log.

/** For inputs that accept visible characters only. */
export const SEEN_ONLY = /^[^\p{C}\p{Zl}\p{Zp}]*$/u;
export const SEEN_ONLY_FAULT = 'must not hold control or format characters, or line breaks';

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;
const UNSEEN_IN_LINES = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/gu;
/** Tabs, line feeds and carriage returns may stand between the values of a JSON text. */
const UNSEEN_IN_JSON = /[^\P{C}\t\n\r]|[\p{Zl}\p{Zp}]/gu;
const ESCAPED_OR_UNSEEN_IN_JSON = /\\(u[\da-fA-F]{4}|.)|[^\P{C}\t\n\r]|[\p{Zl}\p{Zp}]/gu;
/** Colours as `styleText` writes them. */
const COLOUR_OR_UNSEEN = new RegExp(`(\u001B\\[[\\d;]*m)|${UNSEEN_IN_LINES.source}`, 'gu');

const MASK = '�';

/** For people, on one line. */
export function maskUnseen(text: string): string {
  return text.replaceAll(UNSEEN, MASK);
}

/** For people. Line feeds and tabs stay. */
export function maskUnseenInLines(text: string): string {
  return text.replaceAll(UNSEEN_IN_LINES, MASK);
}

/** The same for text that we have coloured: colours stay. Mask what others wrote before you colour it. */
export function maskUnseenInColours(text: string): string {
  return text.replaceAll(COLOUR_OR_UNSEEN, (_unseen, colour?: string) => colour ?? MASK);
}

/** For people who must see all of it, on one line: `⟨U+202E⟩`. */
export function spellUnseen(text: string): string {
  return text.replaceAll(UNSEEN, spell);
}

/** The same. Line feeds and tabs stay. */
export function spellUnseenInLines(text: string): string {
  return text.replaceAll(UNSEEN_IN_LINES, spell);
}

function spell(unseen: string): string {
  const code = unseen.codePointAt(0) ?? 0;
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** For programs: a JSON text of the same value, in which invisible characters are escaped. */
export function escapeUnseen(json: string): string {
  return json.replaceAll(UNSEEN_IN_JSON, (unseen) =>
    unseen
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A JSON text whose strings are safe to print once parsed. Line feeds and tabs stay, since stack traces have them. */
export function maskUnseenInJson(json: string): string {
  return json.replaceAll(ESCAPED_OR_UNSEEN_IN_JSON, (found, escaped?: string) =>
    escaped === undefined || /^[ubfr]/.test(escaped) ? MASK : found,
  );
}
