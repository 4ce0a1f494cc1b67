// Makes values of a JSON Schema, for tests that send what a document allows. Knows the keywords that our documents have.

import * as fc from 'fast-check';
import type { ValidateFunction } from 'ajv/dist/2020.js';

export type JsonSchema = {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
};

/** More would say nothing new. */
const ITEMS_MAX = 3;
const LENGTH_MAX = 40;
/** With such a pattern nearly any text is valid, so texts are made of anything and then tried. */
const WITHOUT_NUL = String.raw`^[^\u0000]*`;

/** @param resolve finds what a `$ref` names. @param isValid is asked of each whole value, for what several keywords say together */
export function valuesOf(
  schema: JsonSchema,
  resolve: (reference: string) => JsonSchema,
  isValid: ValidateFunction,
): fc.Arbitrary<unknown> {
  const byType: Readonly<Record<string, (inner: JsonSchema) => fc.Arbitrary<unknown>>> = {
    boolean: () => fc.boolean(),
    integer: integersIn,
    string: textsIn,
    array: arraysIn,
    object: objectsIn,
  };
  return valuesIn(schema).filter((value) => isValid(value));

  function valuesIn(inner: JsonSchema): fc.Arbitrary<unknown> {
    if (inner.$ref !== undefined) return valuesIn(resolve(inner.$ref));
    if (inner.enum !== undefined) return fc.constantFrom(...inner.enum);
    const values = byType[inner.type ?? ''];
    if (values === undefined) throw new Error(`no values are known for ${JSON.stringify(inner)}`);
    return values(inner);
  }

  function arraysIn({ items = {}, minItems = 0, maxItems = ITEMS_MAX }: JsonSchema): fc.Arbitrary<unknown> {
    return fc.array(valuesIn(items), { minLength: minItems, maxLength: Math.min(maxItems, ITEMS_MAX) });
  }

  function objectsIn({ properties = {}, required = [] }: JsonSchema): fc.Arbitrary<unknown> {
    const fields = Object.entries(properties).map(([name, field]) => [name, valuesIn(field)] as const);
    return fc.record(Object.fromEntries(fields), { requiredKeys: [...required] });
  }
}

function integersIn({ minimum = 0, maximum = 100, multipleOf = 1 }: JsonSchema): fc.Arbitrary<number> {
  return fc
    .integer({ min: Math.ceil(minimum / multipleOf), max: Math.floor(maximum / multipleOf) })
    .map((count) => count * multipleOf);
}

function textsIn({
  format,
  pattern,
  minLength = 0,
  maxLength = LENGTH_MAX,
}: JsonSchema): fc.Arbitrary<string> {
  if (format === 'uuid') return fc.uuid();
  if (format === 'date-time') {
    const years = { min: new Date('1971-01-01'), max: new Date('9998-12-31'), noInvalidDate: true };
    return fc
      .tuple(fc.date(years), fc.constantFrom('Z', '+05:30', '-11:00'))
      .map(([date, offset]) => date.toISOString().replace('Z', offset));
  }
  if (pattern !== undefined && !pattern.startsWith(WITHOUT_NUL))
    return fc.stringMatching(new RegExp(pattern));
  return fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, LENGTH_MAX) });
}
