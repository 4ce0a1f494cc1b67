// What the check for breaks promises, on random forms: if it finds none for readers, every value of the new form is valid by the
// old one. If it finds none for senders, every value with the fields that the old form named is valid by the new one.

import { isDeepStrictEqual } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compare, type Direction } from '../../../scripts/contracts/compare.ts';
import { runs } from '../../only-in-all.ts';

type Schema = { readonly [keyword: string]: unknown };
type Edit = {
  readonly place: number;
  readonly way: 'add' | 'remove' | 'replace' | 'nudge';
  readonly part: Schema;
};

/** Each compiles two forms, which takes milliseconds. */
const RUNS = runs(600);

const scalars = [null, true, false, -1, 0, 0.5, 1, 2, 3, '', 'x', 'y', 'xy', 'xyx'];
const fields = [undefined, null, 0.5, 1, 2, '', 'x', 'xy', [], [1], { a: 1 }, { a: 'x', b: null }];
const only = (name: string, value: unknown): object => (value === undefined ? {} : { [name]: value });
/** All small values that matter for the forms below. */
const VALUES: readonly unknown[] = [
  ...scalars,
  [],
  ['x', 1, null],
  [1, 2, 3],
  [{ a: 1 }],
  ...scalars.flatMap((one) => [[one], [one, one]]),
  ...fields.flatMap((a) => fields.map((b) => ({ ...only('a', a), ...only('b', b) }))),
  ...fields.flatMap((c) => [only('c', c), { a: 1, ...only('c', c) }]),
];

const small = fc.integer({ min: 0, max: 3 });
const scalar = fc.constantFrom(...scalars);
const type = fc.constantFrom('null', 'boolean', 'integer', 'number', 'string', 'array', 'object');

/** At most three of the keywords: with more, hardly any value would be valid. */
const someOf = (all: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Schema> =>
  fc
    .subarray(Object.entries(all), { maxLength: 3 })
    .chain((chosen) => fc.record(Object.fromEntries(chosen)) as fc.Arbitrary<Schema>);

const leaf = someOf({
  type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
  const: scalar,
  enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }),
  minimum: small,
  exclusiveMinimum: small,
  maximum: small,
  exclusiveMaximum: small,
  multipleOf: fc.constantFrom(1, 2),
  minLength: small,
  maxLength: small,
  pattern: fc.constantFrom('^x', 'y$'),
  minItems: small,
  maxItems: small,
  uniqueItems: fc.boolean(),
  minProperties: small,
  maxProperties: small,
});

const { form } = fc.letrec<{ form: Schema | boolean; structure: Schema; choice: Schema }>((tie) => ({
  structure: someOf({
    type,
    properties: fc.dictionary(fc.constantFrom('a', 'b'), tie('form'), { maxKeys: 2 }),
    required: fc.subarray(['a', 'b']),
    additionalProperties: tie('form'),
    items: tie('form'),
  }),
  choice: fc.oneof(
    fc.array(tie('form'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.constantFrom('one', 'two').map((name) => ({ $ref: `#/$defs/${name}` })),
    leaf.map((not) => ({ not })),
  ),
  form: fc.oneof(
    { maxDepth: 3 },
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.boolean() },
    { weight: 5, arbitrary: tie('structure') },
    { weight: 1, arbitrary: tie('choice') },
  ),
}));

const part = form.map((made): Schema => (typeof made === 'boolean' ? {} : made));
const root = fc.tuple(part, leaf, leaf).map(([made, one, two]): Schema => ({ ...made, $defs: { one, two } }));
const edit: fc.Arbitrary<Edit> = fc.record({
  place: fc.nat(20),
  way: fc.constantFrom('add', 'remove', 'replace', 'nudge'),
  part,
});
/** A form and what somebody made of it: two that have nothing in common would nearly always break. */
const pair = fc
  .tuple(root, fc.array(edit, { minLength: 1, maxLength: 3 }))
  .map(([made, edits]) => [made, { $defs: made['$defs'], ...edits.reduce(apply, made) }] as const);

function apply(schema: Schema, { place, way, part: other }: Edit): Schema {
  let left = place % (placesIn(schema) || 1);
  return mapForms(schema, (inner) => {
    left -= 1;
    if (left !== -1) return inner;
    if (way === 'replace') return other;
    if (way === 'nudge') return nudged(inner, place);
    if (way === 'add') return { ...inner, ...other };
    return Object.fromEntries(Object.entries(inner).filter(([keyword]) => !(keyword in other)));
  }) as Schema;
}

/** The nearest other form: each number is one more or less, and the one type that contains another is exchanged for it. */
function nudged(schema: Schema, place: number): Schema {
  const near = (value: unknown): unknown => {
    if (typeof value === 'number') return Math.max(1, value + (place % 2 === 0 ? 1 : -1));
    if (value === 'integer') return 'number';
    return value === 'number' ? 'integer' : value;
  };
  return Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, near(value)]));
}

function placesIn(schema: Schema): number {
  let places = 0;
  mapForms(schema, (inner) => {
    places += 1;
    return inner;
  });
  return places;
}

/** Changes each schema within, the inner ones first. What is in `not` stays. */
function mapForms(schema: unknown, change: (schema: Schema) => Schema): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  const mapped = Object.entries(schema).map(([keyword, value]) => {
    if (keyword === 'properties' || keyword === '$defs') {
      const entries = Object.entries(value as Schema).map(([name, each]) => [name, mapForms(each, change)]);
      return [keyword, Object.fromEntries(entries)];
    }
    if (keyword === 'anyOf') return [keyword, (value as unknown[]).map((each) => mapForms(each, change))];
    return [keyword, ['items', 'additionalProperties'].includes(keyword) ? mapForms(value, change) : value];
  });
  return change(Object.fromEntries(mapped) as Schema);
}

/** Its objects have no fields but those of which it says something. */
const closed = (schema: Schema) =>
  mapForms(schema, (inner) => {
    const { additionalProperties: others = true } = inner;
    const isOpen = others === true || isDeepStrictEqual(others, {});
    return isOpen && [inner['type']].flat().includes('object')
      ? { ...inner, additionalProperties: false }
      : inner;
  }) as Schema;

const ajv = new Ajv2020({ strict: false, validateSchema: false, addUsedSchema: false });

function validated(schema: Schema): readonly unknown[] {
  const isValid = ajv.compile(schema);
  const valid = VALUES.filter((value) => isValid(value));
  ajv.removeSchema();
  return valid;
}

/** How many of the pairs say something: different forms, with no break, that allow some value and not all. */
function countTelling(direction: Direction): number {
  let telling = 0;
  fc.assert(
    fc.property(pair, ([older, newer]) => {
      if (isDeepStrictEqual(older, newer) || compare(older, newer, direction).length > 0) return;
      const [given, wanted] = direction === 'readers' ? [newer, older] : [closed(older), newer];
      const values = validated(given);
      const allowed = new Set(validated(wanted));
      expect(values.filter((value) => !allowed.has(value))).toEqual([]);
      if (values.length > 0 && allowed.size < VALUES.length) telling += 1;
    }),
    { numRuns: RUNS },
  );
  return telling;
}

test('a form that breaks no readers has only values that are valid by the older form', () => {
  expect(countTelling('readers')).toBeGreaterThan(RUNS / 20);
});

test('a form that breaks no senders takes all values that the older form named', () => {
  expect(countTelling('senders')).toBeGreaterThan(RUNS / 20);
});
