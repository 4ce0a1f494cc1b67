// JSON with other white space. Numbers and strings stay byte for byte. Pure.

/** Larger texts, and deeper ones, would grow without measure when they are indented: notifications are far smaller. */
const INDENTED_MAX_CHARACTERS = 256 * 1024;
const INDENTED_MAX_DEPTH = 32;

/**
 * As JSON.stringify indents it: each member on a line of its own, and nothing within an empty object or array.
 * @param json a valid JSON text
 * @returns undefined for a text that is too large or too deep
 */
export function indentedJson(json: string, indent: string): string | undefined {
  if (json.length > INDENTED_MAX_CHARACTERS) return undefined;
  const tokens = tokensOf(json);
  let depth = 0;
  let text = '';
  const newLine = () => `\n${indent.repeat(depth)}`;
  for (const [index, token] of tokens.entries()) {
    if (isOpening(token)) {
      depth += 1;
      if (depth > INDENTED_MAX_DEPTH) return undefined;
      text += isClosing(tokens[index + 1]) ? token : token + newLine();
    } else if (isClosing(token)) {
      depth -= 1;
      text += isOpening(tokens[index - 1]) ? token : newLine() + token;
    } else if (token === ',') text += token + newLine();
    else text += token === ':' ? ': ' : token;
  }
  return text;
}

const isOpening = (token: string | undefined) => token === '{' || token === '[';
const isClosing = (token: string | undefined) => token === '}' || token === ']';

/** Without the white space between them. */
export const tokensOf = (json: string): readonly string[] =>
  json.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/g) ?? [];
