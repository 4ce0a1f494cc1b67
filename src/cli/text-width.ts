// How much room text takes on a terminal, and how it is made to fit: continued in further lines, or shortened in the middle.

import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';

/** In columns of a terminal: emoji and the scripts of East Asia take two. */
export const widthOf = (text: string): number => stringWidth(text);

/** Nothing is lost: a word that is wider than a line continues in the next one. `width`: at least 2. */
export const wrap = (text: string, width: number): string[] =>
  wrapAnsi(text, width, { hard: true }).split('\n');

/** Stands for what an id was shortened by. */
export const SHORTENED = '…';

/** `default:job_1…:completed`: the ends of an id are what tells it from others. */
export const shorten = (text: string, width: number): string =>
  cliTruncate(text, width, { position: 'middle', truncationCharacter: SHORTENED });
