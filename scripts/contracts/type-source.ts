// What the types for others are made from: the forms of all events, put together as the types are. Types of data have a name for
// each kind, and what all events share is one type, `Envelope`.

import { dataForm, envelopeForm, type Kind, KINDS, eventType } from '../../src/event/index.ts';

type Literal = string | number | boolean | null;
type TypeName = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null';

/** The keywords that make a type. A form with another one needs a generator that knows it. */
export type FieldForm = {
  readonly type?: TypeName | readonly TypeName[];
  readonly const?: Literal;
  readonly enum?: readonly Literal[];
  readonly anyOf?: readonly FieldForm[];
  readonly items?: FieldForm;
  readonly format?: string;
  readonly description?: string;
  /** The name of a type instead of all others. */
  readonly $ref?: string;
};

export type TypeForm = {
  readonly name: string;
  readonly description: string;
  /** The name of the type that this one extends. */
  readonly extends?: string;
  readonly properties: Readonly<Record<string, FieldForm>>;
  readonly required: readonly string[];
};

type ObjectForm = {
  readonly properties: Readonly<Record<string, FieldForm>>;
  readonly required: readonly string[];
};

const capitalized = (kind: Kind) => `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;

/** The name of the type of one of the events. */
export const eventName = (kind: Kind): string => `Conversion${capitalized(kind)}`;

/** In an order in which each is defined before it is used. */
export function listTypes(): readonly TypeForm[] {
  const { properties, required } = objectForm(envelopeForm());
  const { type, data, ...shared } = properties;
  if (type === undefined || data === undefined) throw new Error('the envelope has no type or no data');
  return [
    {
      name: 'Envelope',
      description: 'What all events have: the attributes of a CloudEvents 1.0 document.',
      properties: shared,
      required: required.filter((name) => name in shared),
    },
    ...KINDS.flatMap((kind): TypeForm[] => [
      {
        name: `${capitalized(kind)}Data`,
        description: `The data of a ${eventType(kind)} event.`,
        ...objectForm(dataForm(kind)),
      },
      {
        name: eventName(kind),
        description: `A ${eventType(kind)} event.`,
        extends: 'Envelope',
        properties: {
          type: { ...type, const: eventType(kind) },
          data: { ...data, $ref: `${capitalized(kind)}Data` },
        },
        required: ['type', 'data'],
      },
    ]),
  ];
}

function objectForm(form: object): ObjectForm {
  const { properties, required } = form as ObjectForm;
  const noted = Object.entries(properties).map(([name, field]) => [name, withUnit(field)] as const);
  return { properties: Object.fromEntries(noted), required };
}

/** A type has no format, so its comment names it. */
const withUnit = (field: FieldForm): FieldForm =>
  field.format === 'date-time'
    ? { ...field, description: `${field.description ?? ''} RFC 3339, in UTC.`.trim() }
    : field;
