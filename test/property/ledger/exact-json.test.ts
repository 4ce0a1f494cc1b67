// Texts of a hostile size.

import { expect, test } from 'vitest';
import { promisedMs } from '../../support/patience.ts';
import {
  canonicalJson,
  inspectStructure,
  parseExactly,
} from '../../../src/ledger/understanding/exact-json.ts';

const canonical = (text: string) => canonicalJson(parseExactly(text));
const nested = (depth: number, [open, close] = ['[', ']']) => open.repeat(depth) + close.repeat(depth);

test.for([
  ['zeros within', `1${'0'.repeat(250_000)}1`],
  ['digits', '9'.repeat(250_000)],
  ['a fraction', `0.${'0'.repeat(250_000)}1`],
  ['an exponent', `1e${'9'.repeat(250_000)}`],
] as const)('a number with 250,000 characters of %s is read well within a second', ([, text]) => {
  const before = process.threadCpuUsage();

  expect(canonical(text)).toContain('e');
  expect(JSON.stringify(parseExactly(text))).toBe(text);
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(promisedMs(2_000));
});

test('100,000 levels are inspected without recursion, and what is around them is still seen', () => {
  const arrays = inspectStructure(`{"a":1,"x":${nested(100_000)},"a":2}`);
  const objects = inspectStructure(`{"a":1,"x":${'{"k":'.repeat(100_000)}1${'}'.repeat(100_000)},"a":2}`);

  for (const structure of [arrays, objects]) {
    expect(structure.tooDeep).toBe(true);
    expect([...structure.ambiguous]).toEqual(['a']);
  }
});
