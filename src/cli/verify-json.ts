// The same JSON with other white space between its tokens, as programs write it. Numbers and strings stay byte for byte. Pure.

/** `words`: how it is written. */
export type JsonForm = { readonly json: string; readonly words: string };

/** Larger texts, and deeper ones, would grow without measure when they are indented: notifications are far smaller. */
const INDENTED_MAX_CHARACTERS = 256 * 1024;
const INDENTED_MAX_DEPTH = 32;

/** @param json a valid JSON text */
export function jsonForms(json: string): readonly JsonForm[] {
  const spaced = [
    { json: spacedJson(json, ':', ','), words: 'without white space' },
    {
      json: spacedJson(json, ': ', ', '),
      words: 'with a space after each comma and colon, as Python writes it',
    },
  ];
  const indented = INDENTS.flatMap(({ indent, words }) => {
    const form = indentedJson(json, indent);
    return form === undefined ? [] : [{ json: form, words }];
  });
  return [...spaced, ...indented];
}

const INDENTS = [
  { indent: '  ', words: 'with an indent of 2 spaces, as JSON.stringify(value, null, 2) writes it' },
  { indent: '    ', words: 'with an indent of 4 spaces' },
  { indent: '\t', words: 'with an indent of a tab' },
] as const;

function spacedJson(json: string, colon: string, comma: string): string {
  const spaces = new Map([
    [':', colon],
    [',', comma],
  ]);
  return tokensOf(json)
    .map((token) => spaces.get(token) ?? token)
    .join('');
}

/** As JSON.stringify indents it: each member on a line of its own, and nothing within an empty object or array. */
function indentedJson(json: string, indent: string): string | undefined {
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
const tokensOf = (json: string): readonly string[] =>
  json.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/g) ?? [];
