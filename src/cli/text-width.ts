// How much room text takes on a terminal, and how it is made to fit: continued in further lines, or shortened in the middle.

/** Twice as wide as a letter: emoji and the scripts of East Asia (Unicode's East Asian Width, W and F). */
const WIDE =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|[\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}])/u;
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
/** Makes an emoji of the character before it. */
const EMOJI_STYLE = '\ufe0f';
const ASCII = /^[\x20-\x7e]*$/;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
/** Parts of one or two columns. Marks can make a character of any width: such a one is split, too. */
const split = (text: string): string[] =>
  ASCII.test(text)
    ? text.split('')
    : Array.from(graphemes.segment(text)).flatMap(({ segment }) =>
        widthOfPart(segment) > 2 ? Array.from(segment) : segment,
      );

/** In columns of a terminal. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  return split(text).reduce((sum, part) => sum + widthOfPart(part), 0);
}

function widthOfPart(part: string): number {
  if (WIDE.test(part) || part.includes(EMOJI_STYLE)) return 2;
  return Array.from(part).filter((character) => !NO_WIDTH.test(character)).length;
}

/** Nothing is lost: a word that is wider than a line is continued in the next one. `width`: at least 2. */
export function wrap(text: string, width: number): string[] {
  if (widthOf(text) <= width) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((whole) => pieces(whole, width))) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}

/** A word, cut into as many parts as it takes lines. */
function pieces(word: string, width: number): string[] {
  const found: string[] = [];
  let rest = word;
  while (widthOf(rest) > width) {
    const part = firstOf(split(rest), width);
    found.push(part);
    rest = rest.slice(part.length);
  }
  return [...found, rest];
}

/** Stands for what an id was shortened by. */
export const SHORTENED = '…';

/** `default:job_1…:completed`: the ends of an id are what tells it from others. */
export function shorten(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const parts = split(text);
  const end = firstOf(parts.toReversed(), Math.floor((width - 1) / 2), (kept, next) => next + kept);
  return `${firstOf(parts, width - 1 - widthOf(end))}${SHORTENED}${end}`;
}

/** As many of the parts as have room. */
function firstOf(
  parts: readonly string[],
  width: number,
  join = (kept: string, next: string) => kept + next,
): string {
  let kept = '';
  let left = width;
  for (const part of parts) {
    left -= widthOfPart(part);
    if (left < 0) break;
    kept = join(kept, part);
  }
  return kept;
}
