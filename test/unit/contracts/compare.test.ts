// The check that finds breaks: each of its rules with a planted break, in the direction where it is one, and nothing in the other.

import { describe, expect, test } from 'vitest';
import { compare, type Direction, RULES } from '../../../scripts/contracts/compare.ts';

type Schema = { readonly [keyword: string]: unknown };

/** An object with one field `a` of this form. */
const field = (form: unknown, more: Schema = {}): Schema => ({
  type: 'object',
  properties: { a: form },
  additionalProperties: true,
  ...more,
});
const empty: Schema = { type: 'object', properties: {}, additionalProperties: true };
const text = { type: 'string' };
const number = { type: 'number' };

const found = (older: Schema, newer: Schema, direction: Direction) =>
  compare(older, newer, direction).map(({ path, rule }) => `${path} ${rule}`);

/**
 * What breaks readers when the first becomes the second. It breaks senders, under the other name, when the second becomes the
 * first: what the one may not gain, the other may not lose.
 */
const CHANGES: readonly (readonly [
  name: string,
  narrow: Schema,
  wide: Schema,
  readers: string,
  senders: string,
])[] = [
  [
    'required',
    field(text, { required: ['a'] }),
    field(text),
    '/a required made optional',
    '/a newly required',
  ],
  ['a type', field({ type: 'integer' }), field(number), '/a type widened', '/a type narrowed'],
  ['another type', field(number), field(text), '/a type widened', '/a type narrowed'],
  ['no type', field(text), field({}), '/a type widened', '/a type narrowed'],
  [
    'a list of types',
    field(text),
    field({ type: ['string', 'boolean'] }),
    '/a type widened',
    '/a type narrowed',
  ],
  [
    'null in a list of types',
    field(text),
    field({ type: ['string', 'null'] }),
    '/a null allowed',
    '/a null no longer allowed',
  ],
  [
    'null in anyOf',
    field(text),
    field({ anyOf: [text, { type: 'null' }] }),
    '/a null allowed',
    '/a null no longer allowed',
  ],
  [
    'an alternative',
    field({ anyOf: [text, { type: 'boolean' }] }),
    field({ anyOf: [text, { type: 'boolean' }, { type: 'array' }] }),
    '/a type widened',
    '/a type narrowed',
  ],
  [
    'an enum',
    field({ type: 'string', enum: ['x'] }),
    field({ type: 'string', enum: ['x', 'y'] }),
    '/a enum widened',
    '/a enum narrowed',
  ],
  ['no enum', field({ type: 'string', enum: ['x'] }), field(text), '/a enum widened', '/a enum narrowed'],
  [
    'a const',
    field({ type: 'string', const: 'x' }),
    field({ type: 'string', const: 'y' }),
    '/a const changed',
    '/a const changed',
  ],
  ['no const', field({ type: 'string', const: 'x' }), field(text), '/a const changed', '/a const changed'],
  ...['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'].flatMap((keyword) => [
    range(keyword, 2, 1),
    range(keyword, 2, undefined),
  ]),
  ...['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'].flatMap((keyword) => [
    range(keyword, 1, 2),
    range(keyword, 1, undefined),
  ]),
  range('multipleOf', 2, undefined),
  [
    'multipleOf 2, then 3',
    field({ multipleOf: 2 }),
    field({ multipleOf: 3 }),
    '/a range changed',
    '/a range changed',
  ],
  range('uniqueItems', true, undefined),
  [
    'a pattern',
    field({ type: 'string', pattern: '^x' }),
    field(text),
    '/a pattern removed',
    '/a pattern added',
  ],
  [
    'another pattern',
    field({ type: 'string', pattern: '^x' }),
    field({ type: 'string', pattern: 'x' }),
    '/a pattern changed',
    '/a pattern changed',
  ],
  [
    'a format',
    field({ type: 'string', format: 'date-time' }),
    field(text),
    '/a format removed',
    '/a format added',
  ],
  [
    'another format',
    field({ type: 'string', format: 'date-time' }),
    field({ type: 'string', format: 'date' }),
    '/a format changed',
    '/a format changed',
  ],
  [
    'other fields',
    { ...empty, additionalProperties: false },
    empty,
    '/* other fields allowed',
    '/* other fields refused',
  ],
  [
    'a form for all other fields',
    { ...empty, additionalProperties: { type: 'integer' } },
    { ...empty, additionalProperties: number },
    '/* type widened',
    '/* type narrowed',
  ],
  [
    'a field of a closed object',
    { ...empty, additionalProperties: false },
    field(text, { additionalProperties: false }),
    '/a other fields allowed',
    '/a other fields refused',
  ],
  [
    'the items of an array',
    field({ type: 'array', items: { type: 'integer' } }),
    field({ type: 'array', items: number }),
    '/a/* type widened',
    '/a/* type narrowed',
  ],
  [
    'an object in an object',
    field(field(text, { required: ['a'] })),
    field(field(text)),
    '/a/a required made optional',
    '/a/a newly required',
  ],
  [
    'a referred form',
    { ...field({ $ref: '#/$defs/one' }), $defs: { one: { type: 'integer' } } },
    { ...field({ $ref: '#/$defs/one' }), $defs: { one: number } },
    '/a type widened',
    '/a type narrowed',
  ],
  [
    'a name with a slash and a tilde',
    { ...empty, properties: { 'a/b~c': { type: 'integer' } } },
    { ...empty, properties: { 'a/b~c': number } },
    '/a~1b~0c type widened',
    '/a~1b~0c type narrowed',
  ],
];

/** Without a type, so that one table does for all keywords. */
function range(keyword: string, narrow: unknown, wide: unknown) {
  return [
    `${keyword} ${String(narrow)}, then ${String(wide)}`,
    field({ [keyword]: narrow }),
    field(wide === undefined ? {} : { [keyword]: wide }),
    '/a range loosened',
    '/a range tightened',
  ] as const;
}

describe('a planted break', () => {
  test.for(CHANGES)('%s breaks readers when it is widened', ([, narrow, wide, readers]) => {
    expect(found(narrow, wide, 'readers')).toEqual([readers]);
  });

  test.for(CHANGES)('%s breaks senders when it is narrowed', ([, narrow, wide, , senders]) => {
    expect(found(wide, narrow, 'senders')).toEqual([senders]);
  });

  test('a removed field breaks readers. Senders may still send it where other fields are allowed', () => {
    expect(found(field(text), empty, 'readers')).toEqual(['/a field removed']);
    expect(found(field(text), empty, 'senders')).toEqual([]);
    const closed = { ...empty, additionalProperties: false };
    expect(found(field(text), closed, 'senders')).toEqual([
      '/a other fields refused',
      '/* other fields refused',
    ]);
  });

  test('the message has the old value and the new one, in this order', () => {
    const [hundred, more] = [field({ maximum: 100 }), field({ maximum: 200 })];
    expect(compare(hundred, more, 'readers')).toEqual([
      { path: '/a', rule: 'range loosened', message: 'maximum was 100, is 200' },
    ]);
    expect(compare(more, hundred, 'senders')).toEqual([
      { path: '/a', rule: 'range tightened', message: 'maximum was 200, is 100' },
    ]);
    expect(compare(field(text), field({ type: ['string', 'null'] }), 'readers')).toEqual([
      { path: '/a', rule: 'null allowed', message: 'type was ["string"], is ["string","null"]' },
    ]);
  });

  test('there is one for each rule', () => {
    const planted = CHANGES.map(([, , , readers]) => readers.slice(readers.indexOf(' ') + 1));
    const elsewhere = [RULES.field.readers, RULES.unjudged.readers];
    expect(new Set([...planted, ...elsewhere])).toEqual(
      new Set(Object.values(RULES).map(({ readers }) => readers)),
    );
  });

  test('all breaks are found, not only the first', () => {
    const older = { ...empty, properties: { a: text, b: { maximum: 1 } }, required: ['a'] };
    expect(found(older, { ...empty, properties: { b: { maximum: 2 } } }, 'readers')).toEqual([
      '/a required made optional',
      '/a field removed',
      '/b range loosened',
    ]);
  });
});

const EXACT_KEYWORDS = new Set(['a const', 'another type', 'another pattern', 'another format']);

describe('no break', () => {
  /** A change to something else, which is neither wider nor narrower, is a break whichever way it goes. */
  const oneWay = CHANGES.filter(
    ([name]) => !EXACT_KEYWORDS.has(name) && !name.startsWith('multipleOf 2, then 3'),
  );

  test.for(oneWay)('%s: readers may get less, and senders may send more', ([name, narrow, wide]) => {
    const removal = name === 'a field of a closed object' ? ['/a field removed'] : [];
    expect(found(wide, narrow, 'readers')).toEqual(removal);
    expect(found(narrow, wide, 'senders')).toEqual([]);
  });

  test.for(['readers', 'senders'] as const)('a new optional field is right for %s', (direction) => {
    expect(found(empty, field(text), direction)).toEqual([]);
    expect(found(field(empty), field(field(text)), direction)).toEqual([]);
  });

  test('a new required field is right for readers, and breaks senders', () => {
    expect(found(empty, field(text, { required: ['a'] }), 'readers')).toEqual([]);
    expect(found(empty, field(text, { required: ['a'] }), 'senders')).toEqual(['/a newly required']);
  });

  test.for(['readers', 'senders'] as const)('what only explains may change: %s', (direction) => {
    const explained = { ...field({ ...text, title: 'A', description: 'x', default: 'y' }), $id: 'urn:x:2' };
    expect(found({ ...field(text), $id: 'urn:x:1' }, explained, direction)).toEqual([]);
    expect(found(explained, field(text), direction)).toEqual([]);
  });

  test.for(['readers', 'senders'] as const)('the same alternatives in another order: %s', (direction) => {
    const one = field({ anyOf: [text, { type: 'null' }] });
    expect(found(one, field({ anyOf: [{ type: 'null' }, text] }), direction)).toEqual([]);
    expect(found(one, field({ type: ['null', 'string'] }), direction)).toEqual([]);
  });
});

describe('what cannot be judged', () => {
  const unjudged = [
    ['allOf', { ...text, allOf: [text] }],
    ['oneOf', { ...text, oneOf: [text] }],
    ['not', { ...text, not: text }],
    ['if', { ...text, if: text }],
    ['patternProperties', { ...text, patternProperties: { x: text } }],
    ['prefixItems', { ...text, prefixItems: [text] }],
    ['contentEncoding', { type: 'string', contentEncoding: 'base64' }],
    ['$dynamicRef', { ...text, $dynamicRef: '#x' }],
    ['anyOf beside other keywords', { type: 'string', anyOf: [text] }],
    ['a reference beside other keywords', { type: 'string', $ref: '#/$defs/x' }],
    ['a reference to another file', { $ref: 'other.json' }],
    ['a reference to nothing', { $ref: '#/$defs/nothing' }],
    ['an $id inside', { ...text, $id: 'urn:x' }],
    ['a keyword that nobody knows', { ...text, surprise: 1 }],
  ] as const;

  test.for(unjudged)('%s is never passed', ([, form]) => {
    for (const direction of ['readers', 'senders'] as const) {
      expect(found(field(text), field(form), direction)).toEqual(['/a cannot be judged']);
      expect(found(field(form), field(text), direction)).toEqual(['/a cannot be judged']);
    }
  });

  test('a form that contains itself is refused, and ends', () => {
    const loop = { ...field({ $ref: '#/$defs/a' }), $defs: { a: field({ $ref: '#/$defs/a' }) } };
    expect(new Set(compare(loop, loop, 'readers').map(({ rule }) => rule))).toEqual(
      new Set(['cannot be judged']),
    );
    const ring = { ...field({ $ref: '#/$defs/a' }), $defs: { a: { $ref: '#/$defs/a' } } };
    expect(compare(ring, ring, 'readers').map(({ rule }) => rule)).toEqual(['cannot be judged']);
  });

  test('what did not change is passed', () => {
    expect(found(field({ oneOf: [text] }), field({ oneOf: [text] }), 'readers')).toEqual([]);
  });
});
