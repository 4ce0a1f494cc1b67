// How much room text takes on a terminal, and how it is made to fit: continued in further lines, or shortened in the middle.

import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';

/** In columns of a terminal: emoji and the scripts of East Asia take two. */
export const widthOf = (text: string): number => stringWidth(text);

const NO_BREAK = '\u00A0';

/**
 * Nothing is lost: a word that is wider than a line continues in the next one. A number stays in one line with the unit or word
 * behind it. `width`: at least 2.
 */
export const wrap = (text: string, width: number): string[] =>
  wrapAnsi(withUnits(text, width), width, { hard: true }).replaceAll(NO_BREAK, ' ').split('\n');

/** `45 %` and `18 quarantined` become one word each, if that fits into a line. */
const withUnits = (text: string, width: number): string =>
  text.replaceAll(/(\S*\d) (?=([%\p{L}]\S*))/gu, (both: string, number: string, unit: string) =>
    widthOf(both + unit) <= width ? number + NO_BREAK : both,
  );

/** Stands for what was left out. */
export const SHORTENED = '…';

/** The beginning of a text that is wider. */
export const cut = (text: string, width: number): string =>
  cliTruncate(text, width, { truncationCharacter: SHORTENED });

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
/** `0190a…c3d2` */
export const SHORT_UUID_WIDTH = 10;

/**
 * `default:job_1…:completed`: the ends of an id are what tells it from others. A UUID is whole or short, since nobody sees that
 * two of its characters are missing.
 */
export function shorten(text: string, width: number): string {
  const room = UUID.test(text) && width < text.length ? Math.min(width, SHORT_UUID_WIDTH) : width;
  return cliTruncate(text, room, { position: 'middle', truncationCharacter: SHORTENED });
}
