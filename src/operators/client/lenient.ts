// Makes of the contract's schema of an answer the schema that the client reads it by. Answers of newer and older services
// pass: unknown fields are kept, enumerated words may be any text, and formats, minima and maxima are not checked.

import { z } from 'zod';

/** Fields that an answer may lack: older services do not send them, or no user of the client needs them. */
const MAY_BE_MISSING = [
  'peer_address',
  'discarded_at',
  'discarded_by',
  'discard_note',
  'unanswered',
  'busiest_refused_addresses',
  'headers',
  'body_sha256',
  'skips',
  'event_ids',
  'filter',
  'relay_id',
  'token_id',
  'detail',
  'remaining',
  'total',
  'waits',
  'is_held',
  'matched_before',
  'queue_state',
  'loss',
] as const;
type MayBeMissing = (typeof MAY_BE_MISSING)[number];

/** What `lenient` reads where the contract says T. Of a union, an answer may be none: test for a field with `in`. */
export type Lenient<T> = unknown extends T
  ? T
  : T extends string
    ? string
    : T extends readonly (infer Item)[]
      ? readonly Lenient<Item>[]
      : T extends object
        ? LenientObject<T>
        : T;
type LenientObject<T> = { readonly [K in keyof T as Exclude<K, MayBeMissing>]: Lenient<T[K]> } & {
  readonly [K in keyof T as Extract<K, MayBeMissing>]?: Lenient<T[K]> | undefined;
};

/** @throws TypeError for a kind of schema that no answer of the contract has so far */
export function lenient<T>(schema: z.ZodType<T>): z.ZodType<Lenient<T>> {
  return relax(schema) as z.ZodType<Lenient<T>>;
}

function relax(schema: unknown): z.ZodType {
  if (schema instanceof z.ZodObject) return relaxObjects([schema]);
  if (schema instanceof z.ZodDiscriminatedUnion) return relaxObjects(schema.options as z.ZodObject[]);
  if (schema instanceof z.ZodNullable) return relax(schema.unwrap()).nullable();
  if (schema instanceof z.ZodOptional) return relax(schema.unwrap()).optional();
  if (schema instanceof z.ZodArray) return z.array(relax(schema.element));
  if (schema instanceof z.ZodRecord) return z.record(z.string(), relax(schema.valueType));
  if (schema instanceof z.ZodString || schema instanceof z.ZodStringFormat) return z.string();
  if (schema instanceof z.ZodLiteral && typeof schema.value === 'boolean') return z.boolean();
  if (schema instanceof z.ZodEnum || schema instanceof z.ZodLiteral) return z.string();
  if (schema instanceof z.ZodNumber) return z.number();
  if (schema instanceof z.ZodBoolean) return z.boolean();
  if (schema instanceof z.ZodUnknown) return z.unknown();
  throw new TypeError(`no lenient form is known of a schema of type ${(schema as z.ZodType).type}`);
}

/** One object for all: it must have the fields that all of them have, and may have those of some. */
function relaxObjects(objects: readonly z.ZodObject[]): z.ZodType {
  const shapes = objects.map(({ shape }) => shape);
  const names = new Set(shapes.flatMap((shape) => Object.keys(shape)));
  const fields = [...names].map((name): [string, z.ZodType] => {
    const field = relax(shapes.find((shape) => name in shape)?.[name]);
    const isSure =
      shapes.every((shape) => name in shape) && !MAY_BE_MISSING.some((missing) => missing === name);
    return [name, isSure ? field : field.optional()];
  });
  return z.looseObject(Object.fromEntries(fields));
}
