import { expect, test } from 'vitest';
import {
  canonicalJson,
  decodeUtf8,
  inspectStructure,
  MAX_DEPTH,
  parseExactly,
  parseLoosely,
} from '../../../src/ledger/understanding/exact-json.ts';

const canonical = (text: string) => canonicalJson(parseExactly(text));
const nested = (depth: number, [open, close] = ['[', ']']) => open.repeat(depth) + close.repeat(depth);

test('the order of keys and white space make no difference, at any depth', () => {
  expect(canonical('{"b":{"y":[1,2],"x":null},"a":true}')).toBe(
    canonical(' {\n"a" : true ,\t"b":{ "x":null,"y":[ 1 , 2 ]}}\r\n'),
  );
});

test('the order of an array does make a difference', () => {
  expect(canonical('[1,2]')).not.toBe(canonical('[2,1]'));
});

test('escapes make no difference', () => {
  expect(canonical('{"\\u0061\\/":"\\u00e9"}')).toBe(canonical('{"a/":"é"}'));
});

test.for([
  ['1', '1.0', '10e-1', '1e0', '0.1E+1', '100e-2', '1.000'],
  ['0', '-0', '0.0', '0e99', '-0.000e-5'],
  ['100', '1e2', '1E+2', '100.0', '0.0001e6'],
  ['12345678901234567890', '1234567890123456789e1', '12345678901234567890.00', '1.234567890123456789e19'],
  ['1e400', '10e399', '0.1E401'],
  ['1e-400', '0.1e-399'],
  ['0.1', '1e-1', '0.10'],
])('%j are one number', (texts) => {
  expect(new Set(texts.map(canonical)).size).toBe(1);
});

test.for([
  ['9007199254740992', '9007199254740993'],
  ['0.1', '0.1000000000000000055511151231257827'],
  ['1e400', '1e401'],
  ['1e400', '-1e400'],
  ['1e-400', '0'],
  ['12345678901234567890', '12345678901234567891'],
  ['1', '"1"'],
  ['null', '"null"'],
  ['1', 'true'],
  ['[]', '{}'],
  ['""', 'null'],
  ['{"a":1}', '{"a":1,"b":null}'],
])('%s and %s differ', ([one, other]) => {
  expect(canonical(one as string)).not.toBe(canonical(other as string));
});

test('what a double would alter is written back as it came', () => {
  const text = '{"a":12345678901234567890.10,"b":[1e400,-0.1000000000000000055511151231257827],"c":1e-400}';

  expect(JSON.stringify(parseExactly(text))).toBe(text);
});

test('what a double holds is a plain number', () => {
  expect(parseExactly('[45.0,1e3,-7,0.5,9007199254740991]')).toEqual([45, 1000, -7, 0.5, 9007199254740991]);
});

test('keys with a special meaning in JavaScript are ordinary keys', () => {
  const text = '{"__proto__":{"a":1},"constructor":2,"toString":3,"hasOwnProperty":4}';

  expect(JSON.stringify(parseExactly(text))).toBe(text);
  expect(canonical(text)).toBe('{"__proto__":{"a":1},"constructor":2,"hasOwnProperty":4,"toString":3}');
  expect(inspectStructure(text).repeatsKey).toBe(false);
});

test.for([
  ['at the top', '{"a":1,"a":2}', ['a']],
  ['at the top, escaped', '{"job_id":1,"job\\u005fid":2}', ['job_id']],
  ['at the top, with a quote within', '{"a\\"":1,"a\\u0022":2}', ['a"']],
  ['at the top, with a backslash at the end', '{"a\\\\":1,"a\\\\":2}', ['a\\']],
  ['twice the empty key', '{"":1,"":2}', ['']],
  ['twice __proto__', '{"__proto__":1,"__proto__":2}', ['__proto__']],
  ['in an object within', '{"a":{"b":1,"b":2}}', []],
  ['in an object within an array', '{"a":[1,{"b":1,"c":[],"b":2}]}', []],
  ['after an object within', '{"a":{"b":1},"c":[{}],"a":2}', ['a']],
] as const)('a repeated key is seen %s', ([, text, ambiguous]) => {
  const structure = inspectStructure(text);

  expect(structure.repeatsKey).toBe(true);
  expect([...structure.ambiguous]).toEqual(ambiguous);
});

test.for([
  '{"a":{"a":{"a":1}}}',
  '{"a":"a","b":"a"}',
  '{"a":["a","a"],"b":[{"a":1},{"a":1}]}',
  '{"a":"{\\"a\\":1,\\"a\\":2}"}',
  '{"a":"\\\\","b":"\\\\\\""}',
  '{"a":1,"A":2,"á":3,"a\u0301":4}',
  '[]',
  '"a"',
  '{}',
])('%s repeats no key', (text) => {
  expect(inspectStructure(text)).toEqual({
    tooDeep: false,
    repeatsKey: false,
    ambiguous: new Set(),
    plainNumbers: true,
  });
});

test('the deepest nesting that is let through is 64 levels', () => {
  expect(inspectStructure(nested(MAX_DEPTH)).tooDeep).toBe(false);
  expect(inspectStructure(nested(MAX_DEPTH + 1)).tooDeep).toBe(true);
  expect(MAX_DEPTH).toBe(64);
});

test('bytes that are not UTF-8 are refused', () => {
  for (const bytes of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf0, 0x9f], [0xc0, 0x80]]) {
    expect(decodeUtf8(Buffer.from(bytes))).toBeUndefined();
  }
  expect(decodeUtf8(Buffer.from('é漢😀\0'))).toBe('é漢😀\0');
});

test('a byte order mark stays, and is no JSON', () => {
  const text = decodeUtf8(Buffer.from('\ufeff{}'));

  expect(text).toBe('\ufeff{}');
  expect(parseLoosely(text ?? '')).toBeUndefined();
});

test('text that is no JSON is a return value and not an exception', () => {
  for (const text of ['', '{', '{"a":1,}', "{'a':1}", 'NaN', '01', '1.', '[1 2]', '"\n"', 'undefined']) {
    expect(parseLoosely(text)).toBeUndefined();
  }
});
