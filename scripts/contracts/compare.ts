// Whether a new form breaks somebody who relies on an older one. Those who read must find every new value valid by the older
// form, too; what senders were allowed to send, the new form must accept. So in one direction the new form may only allow less,
// in the other only more. A field that is new and optional is right in both. What cannot be judged counts as a break. Pure.

import { isDeepStrictEqual } from 'node:util';
import { NOTES } from './meaning.ts';

/** Who relies on the older form: those who read the values, or those who send them. */
export type Direction = 'readers' | 'senders';

/** `path` is a JSON pointer to the value; `*` stands for each item of an array, and for each field without a name. */
export type Break = { readonly path: string; readonly rule: string; readonly message: string };

type Schema = { readonly [keyword: string]: unknown };

/** `inner` is the form that must allow no more than the other, `outer`. */
type Run = { readonly direction: Direction; readonly innerDefs: Schema; readonly outerDefs: Schema };

export const RULES = {
  field: { readers: 'field removed', senders: 'field removed' },
  others: { readers: 'other fields allowed', senders: 'other fields refused' },
  required: { readers: 'required made optional', senders: 'newly required' },
  type: { readers: 'type widened', senders: 'type narrowed' },
  null: { readers: 'null allowed', senders: 'null no longer allowed' },
  enum: { readers: 'enum widened', senders: 'enum narrowed' },
  const: { readers: 'const changed', senders: 'const changed' },
  range: { readers: 'range loosened', senders: 'range tightened' },
  otherRange: { readers: 'range changed', senders: 'range changed' },
  pattern: { readers: 'pattern removed', senders: 'pattern added' },
  otherPattern: { readers: 'pattern changed', senders: 'pattern changed' },
  format: { readers: 'format removed', senders: 'format added' },
  otherFormat: { readers: 'format changed', senders: 'format changed' },
  unjudged: { readers: 'cannot be judged', senders: 'cannot be judged' },
} as const;

const LOWER = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const UPPER = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
/**
 * Their values are not weighed against each other: one may not come, or go, or become another. The first rule is for where the
 * keyword is missing, the second for another value.
 */
const EXACT = {
  pattern: ['pattern', 'otherPattern'],
  format: ['format', 'otherFormat'],
  multipleOf: ['range', 'otherRange'],
  uniqueItems: ['range', 'range'],
} as const;
const STRUCTURE = ['type', 'const', 'enum', 'properties', 'required', 'additionalProperties', 'items'];
const KNOWN = new Set([...LOWER, ...UPPER, ...Object.keys(EXACT), ...STRUCTURE, ...NOTES]);

/** Deeper forms are refused, and with them those that contain themselves. */
const DEPTH_MAX = 20;

/**
 * @param older a released form: a JSON Schema as plain JSON
 * @returns all that breaks; nothing if whoever relies on `older` may rely on `newer`
 */
export function compare(older: Schema, newer: Schema, direction: Direction): readonly Break[] {
  const [inner, outer] =
    direction === 'readers' ? [rootOf(newer), rootOf(older)] : [rootOf(older), rootOf(newer)];
  return within(inner.form, outer.form, '', { direction, innerDefs: inner.defs, outerDefs: outer.defs });
}

const rootOf = ({ $schema: _draft, $id: _name, $defs = {}, ...form }: Schema) => ({
  form,
  defs: $defs as Schema,
});

/** What `inner` allows and `outer` does not. */
function within(inner: unknown, outer: unknown, path: string, run: Run): Break[] {
  const ones = alternatives(inner, run.innerDefs);
  const others = alternatives(outer, run.outerDefs);
  if (ones === undefined || others === undefined || path.split('/').length > DEPTH_MAX)
    return [toBreak('unjudged', 'the form', path, [inner, outer], run)];
  if (others.some(isAnything) || ones.length === 0) return [];
  if (others.length === 0) return [toBreak('others', 'the value', path, [inner, outer], run)];
  return ones.flatMap((one) => {
    const found = others
      .filter((other) => isOfType(one, other))
      .map((other) => beyond(one, other, path, run));
    if (found.some((breaks) => breaks.length === 0)) return [];
    const rule = one['type'] === 'null' ? 'null' : 'type';
    return found[0] ?? [toBreak(rule, 'type', path, [typesOf(ones), typesOf(others)], run)];
  });
}

/** Each way to be valid, with at most one type; none for `false`. Undefined if the schema cannot be taken apart. */
function alternatives(schema: unknown, defs: Schema, depth = 0): Schema[] | undefined {
  if (schema === false) return [];
  if (schema === true || schema === undefined) return [{}];
  if (depth > DEPTH_MAX) return undefined;
  const { $ref, anyOf, ...rest } = schema as Schema;
  if ($ref === undefined && anyOf === undefined) {
    const { type } = rest;
    return Array.isArray(type) ? type.map((one: unknown) => ({ ...rest, type: one })) : [rest];
  }
  if (!isAnything(rest) || ($ref !== undefined && anyOf !== undefined)) return undefined;
  if (Array.isArray(anyOf)) {
    const branches = anyOf.map((branch: unknown) => alternatives(branch, defs, depth + 1));
    return branches.includes(undefined) ? undefined : branches.flatMap((branch) => branch ?? []);
  }
  const [, name = ''] = /^#\/\$defs\/([^/~%]+)$/.exec(String($ref)) ?? [];
  return Object.hasOwn(defs, name) ? alternatives(defs[name], defs, depth + 1) : undefined;
}

/** What `one` allows beyond `other`. Neither has `anyOf`, `$ref` or more than one type; `one` is of the type of `other`. */
function beyond(one: Schema, other: Schema, path: string, run: Run): Break[] {
  if (isDeepStrictEqual(one, other) && !/"\$\w*ref"/i.test(JSON.stringify(one))) return [];
  const found = (rule: keyof typeof RULES) => (keyword: string) =>
    toBreak(rule, keyword, path, [one[keyword], other[keyword]], run);
  const unknown = Object.keys({ ...one, ...other }).filter((keyword) => !KNOWN.has(keyword));
  if (unknown.length > 0) return unknown.map(found('unjudged'));
  const exceeds = (isWithin: (limit: number, outer: number) => boolean) => (keyword: string) => {
    const [limit, outer] = [one[keyword], other[keyword]];
    return typeof outer === 'number' && !(typeof limit === 'number' && isWithin(limit, outer));
  };
  return [
    ...(['const', 'enum'] as const)
      .filter((keyword) => hasMoreValues(one, other, keyword))
      .flatMap((keyword) => found(keyword)(keyword)),
    ...LOWER.filter(exceeds((limit, outer) => limit >= outer)).map(found('range')),
    ...UPPER.filter(exceeds((limit, outer) => limit <= outer)).map(found('range')),
    ...Object.entries(EXACT)
      .filter(([keyword]) => (other[keyword] ?? false) !== false && one[keyword] !== other[keyword])
      .map(([keyword, [missing, another]]) => found(one[keyword] === undefined ? missing : another)(keyword)),
    ...beyondFields(one, other, path, run),
    ...within(one['items'], other['items'], `${path}/*`, run),
  ];
}

function hasMoreValues(one: Schema, other: Schema, keyword: 'const' | 'enum'): boolean {
  if (other[keyword] === undefined) return false;
  const allowed = keyword === 'const' ? [other['const']] : (other['enum'] as unknown[]);
  const values = one['const'] === undefined ? (one['enum'] as unknown[] | undefined) : [one['const']];
  return !values?.every((value) => allowed.some((each) => isDeepStrictEqual(each, value)));
}

function beyondFields(one: Schema, other: Schema, path: string, run: Run): Break[] {
  const fields = (one['properties'] ?? {}) as Schema;
  const outerFields = (other['properties'] ?? {}) as Schema;
  const { additionalProperties: rest = true } = one;
  const { additionalProperties: outerRest = true } = other;
  const required = (one['required'] ?? []) as string[];
  const at = (name: string) => `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const fieldOf = (name: string): Break[] => {
    if (!Object.hasOwn(outerFields, name)) return within(fields[name], outerRest, at(name), run);
    if (Object.hasOwn(fields, name)) return within(fields[name], outerFields[name], at(name), run);
    if (run.direction === 'readers')
      return [toBreak('field', 'the field', at(name), [undefined, outerFields[name]], run)];
    // A new optional field. An object that allowed any other field promised nothing of this one.
    return one['type'] === 'object' && isAnything(rest) ? [] : within(rest, outerFields[name], at(name), run);
  };
  return [
    ...((other['required'] ?? []) as string[])
      .filter((name) => !required.includes(name))
      .map((name) => toBreak('required', 'required', at(name), [false, true], run)),
    ...Object.keys({ ...outerFields, ...fields }).flatMap(fieldOf),
    ...within(rest, outerRest, `${path}/*`, run),
  ];
}

const isAnything = (schema: unknown): boolean =>
  schema === true || Object.keys(schema as Schema).every((keyword) => NOTES.includes(keyword));

const isOfType = ({ type }: Schema, { type: outer }: Schema): boolean =>
  outer === undefined || type === outer || (type === 'integer' && outer === 'number');

const typesOf = (schemas: readonly Schema[]): unknown[] => [
  ...new Set(schemas.map(({ type }) => type ?? 'any')),
];

function toBreak(
  rule: keyof typeof RULES,
  keyword: string,
  path: string,
  [inner, outer]: readonly [unknown, unknown],
  { direction }: Run,
): Break {
  const [is, was] = (direction === 'readers' ? [inner, outer] : [outer, inner]).map(
    (value) => JSON.stringify(value) ?? 'none',
  );
  return { path, rule: RULES[rule][direction], message: `${keyword} was ${was}, is ${is}` };
}
