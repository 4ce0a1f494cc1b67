// Characters without a look of their own: controls (C0, DEL and C1), format characters (those that turn the direction of
// what stands beside them, too), line and paragraph separators, and what Unicode has not assigned. A terminal acts on
// some of them, and others make a text look like another one. What others wrote comes to a screen or a log through here.

/** Where only what can be seen is accepted. */
export const SEEN_ONLY = /^[^\p{C}\p{Zl}\p{Zp}]*$/u;
export const SEEN_ONLY_FAULT = 'must not hold control or format characters, or line breaks';

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;
const UNSEEN_IN_LINES = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/gu;
/** White space may stand between the values of a JSON text. */
const UNSEEN_IN_JSON = /[^\P{C}\t\n\r]|[\p{Zl}\p{Zp}]/gu;
const ESCAPED_OR_UNSEEN_IN_JSON = /\\(u[\da-fA-F]{4}|.)|[^\P{C}\t\n\r]|[\p{Zl}\p{Zp}]/gu;
/** What `styleText` makes. */
const COLOUR_OR_UNSEEN = new RegExp(`(\u001B\\[[\\d;]*m)|${UNSEEN_IN_LINES.source}`, 'gu');

const MASK = '�';

/** For people, on one line. */
export function maskUnseen(text: string): string {
  return text.replaceAll(UNSEEN, MASK);
}

/** For people; line feeds and tabs stay. */
export function maskUnseenInLines(text: string): string {
  return text.replaceAll(UNSEEN_IN_LINES, MASK);
}

/** As above, for text that we have coloured: colours stay. What others wrote in it has to be masked before. */
export function maskUnseenInColours(text: string): string {
  return text.replaceAll(COLOUR_OR_UNSEEN, (_unseen, colour?: string) => colour ?? MASK);
}

/** For programs: a JSON text of the same value, in which all can be seen. */
export function escapeUnseen(json: string): string {
  return json.replaceAll(UNSEEN_IN_JSON, (unseen) =>
    unseen
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A JSON text whose strings are safe to print, once parsed. Line feeds and tabs stay: a stack trace has them. */
export function maskUnseenInJson(json: string): string {
  return json.replaceAll(ESCAPED_OR_UNSEEN_IN_JSON, (found, escaped?: string) =>
    escaped === undefined || /^[ubfr]/.test(escaped) ? MASK : found,
  );
}
