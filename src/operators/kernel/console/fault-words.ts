// The API's faults of input in the console's words: a parameter by the label of its field.

import { FORMS } from '../../lists.contract.ts';
import { faultsIn, type InputFault } from '../operation/input-faults.ts';
import type { ApiError } from '../operation/operation.ts';
import { capitalized } from '../view/texts.ts';

/** Of what is no filter, by the parameter. */
const LABELS: Readonly<Record<string, string>> = {
  q: 'The search',
  id: 'The id in the address',
  cursor: 'The cursor in the address',
  expires_at: '“Expires (UTC)”',
};

export const inWords = (error: ApiError): string => faultsIn(error).map(sentenceOf).join(' ');

function sentenceOf({ name, message }: InputFault): string {
  if (name === '') return sentence(message);
  const joined = /^(?:must|is|has|leaves|makes) /.test(message) ? ' ' : ': ';
  return sentence(`${labelOf(name.replace(/^filter\./, ''))}${joined}${message}`);
}

const labelOf = (name: string): string =>
  LABELS[name] ?? `“${FORMS.get(name)?.label ?? name.replaceAll('_', ' ')}”`;

const sentence = (text: string) => `${capitalized(text)}${/[.?!]$/.test(text) ? '' : '.'}`;
