// The same JSON with other white space between its tokens, as programs write it. Numbers and strings stay byte for byte. Pure.

import { indentedJson, tokensOf } from '../../base/json/indented-json.ts';

/** `words`: how it is written. */
export type JsonForm = { readonly json: string; readonly words: string };

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
