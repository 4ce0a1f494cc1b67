// The generated types say what the zod schemas say. The compiler checks it: `npm test` fails where one has what the other lacks.

import { expect, test } from 'vitest';
import type { z } from 'zod';
import type {
  CompletedData,
  ConversionEvent,
  Envelope,
  envelope,
  eventSchemas,
  FailedData,
  ProgressData,
} from '../../../src/event/index.ts';

/** zod writes an optional field as one that may also be undefined; JSON has no undefined. Objects within are open, too. */
type Present<T> = { [Key in keyof T]: Within<Exclude<T[Key], undefined>> };
type Open<T> = Present<T> & { [field: string]: unknown };
type Within<T> = T extends readonly (infer Item)[] ? Within<Item>[] : T extends object ? Open<T> : T;
/** What the schema reads, with the fields that it does not know. */
type Read<T extends z.ZodType> = Open<z.infer<T>>;

/** `Omit` forgets the named fields of a type that has an index signature. */
type Without<T, Name> = { [Key in keyof T as Key extends Name ? never : Key]: T[Key] };

type IsSame<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;

test('the zod schemas and the generated types can be assigned to each other', () => {
  const same: readonly [
    IsSame<CompletedData, Read<typeof eventSchemas.completed>>,
    IsSame<FailedData, Read<typeof eventSchemas.failed>>,
    IsSame<ProgressData, Read<typeof eventSchemas.progress>>,
    IsSame<Envelope, Without<Read<typeof envelope>, 'type' | 'data'>>,
    [ConversionEvent] extends [Read<typeof envelope>] ? true : false,
  ] = [true, true, true, true, true];
  expect(same).not.toContain(false);
});

test('types that differ cannot be', () => {
  const different: readonly [
    IsSame<CompletedData, Read<typeof eventSchemas.failed>>,
    IsSame<ProgressData, Required<Read<typeof eventSchemas.progress>>>,
    IsSame<ProgressData, Without<ProgressData, 'status'>>,
  ] = [false, false, false];
  expect(different).not.toContain(true);
});
