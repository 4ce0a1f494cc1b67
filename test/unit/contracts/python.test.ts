// The generator of the Python types: what it writes for forms that no event has yet, and what it refuses.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { makePython } from '../../../scripts/contracts/python.ts';
import { toForm } from '../../../src/event/index.ts';

/** The lines of the module for an object with this one field. */
function linesFor(field: z.ZodType): string[] {
  const { properties, required = [] } = toForm(z.object({ a: field }), 'urn:x:1', 'Planted') as ReturnType<
    typeof toForm
  > & { properties: Record<string, object>; required?: string[] };
  const text = makePython([{ name: 'Planted', description: 'Planted.', properties, required }]);
  const [, body = ''] = /"""Planted\."""\n\n(.*?)\n\n\n/s.exec(text) ?? [];
  return body.split('\n');
}

const recursive: z.ZodType = z.object({
  get inner() {
    return recursive.optional();
  },
});

describe('the Python type', () => {
  test.for([
    ['an array', z.array(z.string()).max(10), 'list[str]'],
    ['an array of arrays', z.array(z.array(z.int())), 'list[list[int]]'],
    ['an array of objects', z.array(z.object({ b: z.string() })), 'list[dict[str, Any]]'],
    ['a union', z.union([z.string(), z.int()]), 'Union[str, int]'],
    ['a union of objects', z.union([z.object({}), z.object({ b: z.int() })]), 'Union[dict[str, Any]]'],
    ['null', z.string().nullable(), 'Union[str, None]'],
    ['an array or null', z.array(z.number()).nullable(), 'Union[list[float], None]'],
    ['literals, one of them null', z.literal(['x', 1, true, null]), 'Literal["x", 1, True, None]'],
    ['a record', z.record(z.string(), z.int()), 'dict[str, Any]'],
    ['anything', z.unknown(), 'Any'],
  ] as const)('of %s, required or not', ([, form, type]) => {
    expect(linesFor(form)).toEqual([`    a: ${type}`]);
    expect(linesFor(form.optional())).toEqual([`    a: NotRequired[${type}]`]);
  });

  test.for([
    [
      'alternatives of which one is right',
      z.discriminatedUnion('k', [z.object({ k: z.literal('x') })]),
      'oneOf',
    ],
    ['no value', z.never().optional(), 'not'],
    ['a tuple', z.tuple([z.string()]), 'prefixItems'],
    ['a tuple in an array', z.array(z.tuple([z.string()])), 'prefixItems'],
    ['a form that contains itself', recursive, '$ref'],
    ['a fraction', z.literal(1.5), 'a literal must be a whole number, not 1.5'],
  ] as const)('of %s is refused, and the field is named', ([, form, reason]) => {
    expect(() => linesFor(form)).toThrow(`Planted.a has no type in Python: ${reason}`);
  });
});

test('each line of a description is a comment', () => {
  expect(linesFor(z.string().describe('One.\nTwo.\r\n\r\nThree.'))).toEqual([
    '    # One.',
    '    # Two.',
    '    #',
    '    # Three.',
    '    a: str',
  ]);
});
