// The Python types in contracts/types/tallyhook_events.py: one TypedDict for each type, for Python 3.11 or newer.

import { KINDS } from '../../src/event/index.ts';
import { eventName, type FieldForm, listTypes, type TypeForm } from './type-source.ts';

const HEAD = `"""The events that subscribers get.

Made by \`npm run contracts\` from the forms in contracts/events: do not edit.
Needs Python 3.11. The types are for checkers such as mypy. At run time an event is a plain dict, as json.loads makes it.
An event may have keys that are not named here: ignore those that you do not know.
"""

from typing import Any, Literal, NotRequired, TypedDict, Union
`;

const TYPES = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  object: 'dict[str, Any]',
} as const;

/** What may be the name of a key in a class. `keyword.kwlist` of Python 3.11, as far as they are lowercase. */
const IDENTIFIER =
  /^(?!(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)$)[a-z_][a-z0-9_]*$/;

export function makePython(): string {
  const union = KINDS.map((kind) => `    ${eventName(kind)},\n`).join('');
  return [
    HEAD,
    ...listTypes().map(toClass),
    `# Any of the events. Tell them apart by event["type"].\nConversionEvent = Union[\n${union}]\n`,
  ].join('\n\n');
}

function toClass({ name, description, extends: base, properties, required }: TypeForm): string {
  const keys = Object.entries(properties).map(([key, form]) => {
    if (!IDENTIFIER.test(key)) throw new Error(`${key} cannot be a key in a Python class`);
    const type = toType(form);
    const comment = form.description === undefined ? '' : `    # ${form.description}\n`;
    return `${comment}    ${key}: ${required.includes(key) ? type : `NotRequired[${type}]`}\n`;
  });
  return `class ${name}(${base ?? 'TypedDict'}):\n    """${description}"""\n\n${keys.join('')}`;
}

function toType({ $ref, const: only, enum: values, type }: FieldForm): string {
  if ($ref !== undefined) return $ref;
  const literals = only === undefined ? values : [only];
  if (literals !== undefined) return `Literal[${literals.map(toLiteral).join(', ')}]`;
  return TYPES[type];
}

function toLiteral(value: string | number | boolean): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return JSON.stringify(value);
}
