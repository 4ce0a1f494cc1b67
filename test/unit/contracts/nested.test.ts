// A form says as much as the code that checks, also inside: so a break in a record or an object within is found.

import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { compare } from '../../../scripts/contracts/compare.ts';
import { toForm } from '../../../src/event/index.ts';

const form = (schema: z.ZodType) => toForm(schema, 'urn:x:1', 'Planted');
const within = (field: z.ZodType) => form(z.object({ a: field.optional() }));

const price = z.string();
const other = z.union([z.int(), z.null()]);

/** What allows less, what allows more, and what the change is called in each direction. */
const CHANGES = [
  [
    'the values of a record',
    z.record(price, price),
    z.record(price, z.union([price, z.null()])),
    '/a/* null allowed',
    '/a/* null no longer allowed',
  ],
  [
    'an object that is strict',
    z.strictObject({ b: price }),
    z.object({ b: price }),
    '/a/* other fields allowed',
    '/a/* other fields refused',
  ],
  [
    'a catchall',
    z.object({}).catchall(z.int()),
    z.object({}).catchall(z.number()),
    '/a/* type widened',
    '/a/* type narrowed',
  ],
  [
    'an object in an array',
    z.array(z.strictObject({})),
    z.array(z.looseObject({})),
    '/a/*/* other fields allowed',
    '/a/*/* other fields refused',
  ],
] as const;

const found = (older: object, newer: object, direction: 'readers' | 'senders') =>
  compare(older as never, newer as never, direction).map(({ path, rule }) => `${path} ${rule}`);

test.for(CHANGES)('%s: a break is found in both directions', ([, narrow, wide, readers, senders]) => {
  expect(found(within(narrow), within(wide), 'readers')).toEqual([readers]);
  expect(found(within(wide), within(narrow), 'senders')).toEqual([senders]);
  expect(found(within(wide), within(narrow), 'readers')).toEqual([]);
  expect(found(within(narrow), within(wide), 'senders')).toEqual([]);
});

test('a record with values of another type breaks readers and senders', () => {
  const [older, newer] = [within(z.record(price, price)), within(z.record(price, other))];
  expect(found(older, newer, 'readers')).not.toEqual([]);
  expect(found(older, newer, 'senders')).not.toEqual([]);
});

test('the form itself may be strict, too', () => {
  const [strict, open] = [form(z.strictObject({ a: price })), form(z.object({ a: price }))];
  expect(found(strict, open, 'readers')).toEqual(['/* other fields allowed']);
  expect(found(open, strict, 'senders')).toEqual(['/* other fields refused']);
});

test.for([
  ['an object', z.object({ a: price }), true],
  ['a loose object', z.looseObject({ a: price }), true],
  ['a strict object', z.strictObject({ a: price }), false],
  ['an object that checks its other fields', z.object({ a: price }).catchall(z.int()), false],
  ['a record', z.record(price, price), false],
] as const)('%s takes the same values as its form', ([, schema, isOpen]) => {
  const isValid = new Ajv2020({ strict: true }).compile(form(schema));
  const value = { a: 'x', unknown: { b: 1 } };
  expect([isValid(value), schema.safeParse(value).success]).toEqual([isOpen, isOpen]);
});
