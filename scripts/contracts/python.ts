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
  null: 'None',
} as const;

/** They make a type that is not written here: a form with one of them is refused. */
const UNWRITTEN = ['allOf', 'oneOf', 'not', 'prefixItems'];

/** What may be the name of a key in a class. `keyword.kwlist` of Python 3.11, as far as they are lowercase. */
const IDENTIFIER =
  /^(?!(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)$)[a-z_][a-z0-9_]*$/;

/** @throws Error that names the field, if its form has no type in Python */
export function makePython(types: readonly TypeForm[] = listTypes()): string {
  const union = KINDS.map((kind) => `    ${eventName(kind)},\n`).join('');
  return [
    HEAD,
    ...types.map(toClass),
    `# Any of the events. Tell them apart by event["type"].\nConversionEvent = Union[\n${union}]\n`,
  ].join('\n\n');
}

function toClass({ name, description, extends: base, properties, required }: TypeForm): string {
  const keys = Object.entries(properties).map(([key, form]) => {
    if (!IDENTIFIER.test(key)) throw new Error(`${key} cannot be a key in a Python class`);
    const type = toType(form, `${name}.${key}`);
    return `${toComment(form)}    ${key}: ${required.includes(key) ? type : `NotRequired[${type}]`}\n`;
  });
  return `class ${name}(${base ?? 'TypedDict'}):\n    """${description}"""\n\n${keys.join('')}`;
}

/** Every line of it needs its own mark. */
const toComment = ({ description }: FieldForm): string =>
  description === undefined
    ? ''
    : description
        .split(/\r\n|[\r\n\f]/)
        .map((line) => `    # ${line}`.trimEnd())
        .join('\n')
        .concat('\n');

function toType(form: FieldForm, field: string): string {
  const { $ref, const: only, enum: values, anyOf, type, items } = form;
  const unwritten = UNWRITTEN.filter((keyword) => keyword in form);
  if (unwritten.length > 0) throw new Error(`${field} has no type in Python: ${unwritten.join(', ')}`);
  if ($ref !== undefined) return toName($ref, field);
  const literals = only === undefined ? values : [only];
  if (literals !== undefined)
    return `Literal[${literals.map((value) => toLiteral(value, field)).join(', ')}]`;
  if (anyOf !== undefined) return toUnion(anyOf, field);
  if (type === undefined) return 'Any';
  if (typeof type !== 'string')
    return toUnion(
      type.map((one) => ({ ...form, type: one })),
      field,
    );
  return type === 'array' ? `list[${toType(items ?? {}, field)}]` : TYPES[type];
}

const toUnion = (forms: readonly FieldForm[], field: string): string =>
  `Union[${[...new Set(forms.map((form) => toType(form, field)))].join(', ')}]`;

/** A form of zod's own, such as one that contains itself, has no name in the module. */
function toName($ref: string, field: string): string {
  if (!/^\w+$/.test($ref)) throw new Error(`${field} has no type in Python: $ref ${$ref}`);
  return $ref;
}

function toLiteral(value: string | number | boolean | null, field: string): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number' && !Number.isSafeInteger(value))
    throw new Error(`${field} has no type in Python: a literal must be a whole number, not ${value}`);
  return JSON.stringify(value);
}
