// In a process whose JSON.parse mangles keys with escapes (nodejs/node#63785). Each property counts the texts that
// JSON.parse does read wrong: without them it would show nothing.

import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../only-in-all.ts';
import { parseJson } from '../../src/base/json/json.ts';
import { type ExactValue, poison, readExactly } from '../support/exact-json.ts';
import { understood } from '../support/records.ts';
import { completed } from '../support/sender.ts';

/** Between the quotes. `object`: members by their escaped keys. */
type Model = { readonly text: string } | { readonly items: Model[] } | { readonly object: [string, Model][] };

const unit = (code: number) => `\\u${code.toString(16).padStart(4, '0')}`;
const shortEscape = fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t');
const codeUnit = fc.integer({ min: 0, max: 0xffff }).map(unit);
const pair = fc
  .integer({ min: 0x1_0000, max: 0x10_ffff })
  .map((code) => String.fromCodePoint(code))
  .map((text) => unit(text.charCodeAt(0)) + unit(text.charCodeAt(1)));
const anyEscape = fc.oneof(shortEscape, codeUnit, codeUnit.map(upperHex), pair);
// The bug is in texts of Latin characters alone: the others are there to be read, too.
const plain = fc.oneof(
  { weight: 30, arbitrary: fc.stringMatching(/^[a-z]{0,3}$/) },
  { weight: 1, arbitrary: fc.stringMatching(/^[é漢]{1,3}$/) },
);
const escapedKey = fc.oneof(
  { weight: 9, arbitrary: fc.tuple(plain, anyEscape, plain).map((parts) => parts.join('')) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('\\u005f_proto__', '\\u0030', 'x\\u002d', '\\\\\\\\', '\\\\u0041'),
  },
);
const decoded = (escaped: string) => readExactly(`"${escaped}"`) as string;

function upperHex(escape: string): string {
  return `\\u${escape.slice(2).toUpperCase()}`;
}

function membersOf(value: fc.Arbitrary<Model>): fc.Arbitrary<[string, Model][]> {
  return fc.uniqueArray(fc.tuple(escapedKey, value), {
    selector: ([key]) => decoded(key),
    minLength: 1,
    maxLength: 2,
  });
}
const { value } = fc.letrec<{ value: Model }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.oneof(fc.nat(), fc.constantFrom('true', 'null', '0.5')).map((text) => ({ text: String(text) })),
    fc.tuple(plain, anyEscape).map(([start, escape]) => ({ text: `"${start}${escape}"` })),
    fc.array(tie('value'), { maxLength: 2 }).map((items) => ({ items })),
    membersOf(tie('value')).map((object) => ({ object })),
  ),
}));

let anchors = 0;

function write(model: Model): string {
  if ('text' in model) return model.text;
  if ('items' in model) return `[${model.items.map(write).join(',')}]`;
  return writeObject(model.object);
}

/** Behind what no other object begins with, so that JSON.parse now reads another key for the first one. */
function writeObject(members: readonly [string, Model][], start = ''): string {
  const before = `${start}"anchor_${anchors++}":1`;
  poison(before, members[0]?.[0] ?? '');
  return `{${[before, ...members.map(([key, inner]) => `"${key}":${write(inner)}`)].join(',')}}`;
}

const known = `${JSON.stringify(completed('job_1')).slice(1, -1)},`;
const notification = membersOf(value).map((members) => () => writeObject(members, known));

/** The same as plain values. */
function toPlain(exact: ExactValue): unknown {
  if (exact instanceof Map) {
    return Object.fromEntries([...exact].map(([key, inner]) => [key, toPlain(inner)]));
  }
  if (Array.isArray(exact)) return exact.map(toPlain);
  if (typeof exact === 'object' && exact !== null) return Number(`${exact.coefficient}e${exact.exponent}`);
  return exact;
}

/** Whether JSON.parse itself reads other keys than there are. */
function isMangled(text: string): boolean {
  return JSON.stringify(JSON.parse(text)) !== JSON.stringify(toPlain(readExactly(text)));
}

function eventOf(text: string): { data: string; contentHash: Buffer } {
  const understanding = understood(text);
  if (understanding.outcome === 'event') return understanding.event;
  throw new Error(`${understanding.outcome}: ${understanding.reason}`);
}

const RUNS = runs(150);

test('property: keys with any escape, at any depth, are published as they were signed', () => {
  let mangled = 0;
  fc.assert(
    fc.property(notification, (build) => {
      const text = build();
      if (isMangled(text)) mangled += 1;
      expect(readExactly(eventOf(text).data)).toEqual(readExactly(text));
    }),
    { numRuns: RUNS },
  );
  expect(mangled).toBeGreaterThan(RUNS / 4);
});

test('property: the content hash of such keys is that of RFC 8785', () => {
  let mangled = 0;
  fc.assert(
    fc.property(notification, (build) => {
      const text = build();
      fc.pre(JSON.stringify(toPlain(readExactly(text))).search(/\\ud[89a-f]/) === -1); // it knows no half characters
      if (isMangled(text)) mangled += 1;
      const canonical = canonicalize(toPlain(readExactly(text))) ?? '';
      expect(eventOf(text).contentHash).toEqual(createHash('sha256').update(canonical).digest());
    }),
    { numRuns: RUNS },
  );
  expect(mangled).toBeGreaterThan(RUNS / 4);
});

test('property: a text with no escape in a key is read right, whatever its values hold', () => {
  const inValue = fc.tuple(plain, anyEscape, plain).map((parts) => parts.join(''));
  fc.assert(
    fc.property(plain, inValue, (key, content) => {
      const [anchor, inner] = [`anchor_${anchors++}`, `anchor_${anchors++}`];
      for (const each of [anchor, inner]) poison(`"${each}":1`, content);
      const text = `{"${anchor}":1,"${key}":{"${inner}":["${content}"],"${key}":"${content}"}}`;
      expect(parseJson(text)).toEqual(toPlain(readExactly(text)));
    }),
    { numRuns: RUNS },
  );
});
