// What is wrong with what was asked, in plain words: the only place that words the faults for which a schema has no words of its
// own. The API and the command line show them with the parameter's name, the console with the field's label.

import type { z } from 'zod';
import { ApiError } from './operation.ts';

const FAULTS_SHOWN = 5;
const MAX_MESSAGE_LENGTH = 500;

/** `name`: of a parameter, or the place in a body (`filter.kind`, `ids.0`); empty for what is about the whole. */
export type InputFault = { readonly name: string; readonly message: string };

/** Its message has all faults; a page shows each beside its field. */
export class InputError extends ApiError {
  readonly faults: readonly InputFault[];

  constructor(faults: readonly InputFault[]) {
    const lines = faults.map(({ name, message }) => (name === '' ? message : `${name}: ${message}`));
    super(400, 'invalid_request', clip(lines.join('; ')));
    this.faults = faults;
  }
}

export const clip = (text: string): string =>
  text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}…` : text;

/** The faults that a schema found. It was asked with `inPlainWords`. */
export const faultsOf = ({ issues }: z.ZodError, unknown = 'unknown parameter'): readonly InputFault[] =>
  issues
    .slice(0, FAULTS_SHOWN)
    .map((issue) =>
      issue.code === 'unrecognized_keys'
        ? { name: '', message: `${unknown}: ${issue.keys.slice(0, FAULTS_SHOWN).join(', ')}` }
        : { name: issue.path.map(String).join('.'), message: issue.message },
    );

/** Of any error of the API: those that it lists, or the one that its message names first. */
export function faultsIn(error: ApiError): readonly InputFault[] {
  if (error instanceof InputError) return error.faults;
  const [, name = '', message = error.message] = /^(\w+): (.*)$/s.exec(error.message) ?? [];
  return [{ name, message }];
}

const TYPES: Readonly<Record<string, string>> = {
  object: 'a JSON object',
  array: 'a JSON array',
  string: 'text',
  boolean: 'true or false',
  int: 'a whole number',
  number: 'a number',
};

/** For a parse: of the faults for which its schema has no words. */
export function inPlainWords(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return ofType(issue);
  if (issue.code === 'invalid_value')
    return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_format')
    return issue.format === 'uuid' ? 'must be a UUID' : 'is not in the form that it must have';
  if (issue.code === 'too_big') return `must be at most ${sized(issue.origin, issue.maximum)}`;
  if (issue.code !== 'too_small') return undefined;
  const isEmpty = Number(issue.minimum) === 1 && isSized(issue.origin);
  return isEmpty ? 'must not be empty' : `must be at least ${sized(issue.origin, issue.minimum)}`;
}

function ofType({
  expected,
  input,
}: {
  readonly expected: string;
  readonly input?: unknown;
}): string | undefined {
  if (input === undefined) return 'must be given';
  return TYPES[expected] && `must be ${TYPES[expected]}`;
}

const isSized = (origin: string) => origin === 'string' || origin === 'array';

function sized(origin: string, bound: number | bigint): string {
  const shown = bound.toLocaleString('en-US');
  if (origin === 'string') return `${shown} characters`;
  return origin === 'array' ? `${shown} in one request` : shown;
}
