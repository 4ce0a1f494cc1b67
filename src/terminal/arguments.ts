// Reads a command's arguments. Unknown ones are wrong usage and are never ignored.

import { parseSpan } from '../base/time/moments.ts';
import { parseArgs } from 'node:util';
import { UsageError } from '../base/errors.ts';

type OptionTypes = Record<string, { readonly type: 'string' | 'boolean' }>;

/** The two kinds of options. */
export const TEXT = { type: 'string' } as const;
export const FLAG = { type: 'boolean' } as const;

/** Thrown for `--help` after a command: it ends the parsing at once. */
export class HelpAsked extends Error {
  override readonly name = 'HelpAsked';
}

/**
 * `max`: how many arguments a command takes at most, beside options.
 * @throws UsageError, HelpAsked
 */
export function parse<T extends OptionTypes>(args: string[], options: T, max = 0) {
  try {
    const parsed = parseArgs({
      args,
      options: { ...options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if ((parsed.values as { help?: boolean }).help) throw new HelpAsked();
    const surplus = parsed.positionals[max];
    if (surplus !== undefined) throw new UsageError(`unexpected argument "${surplus}"`);
    return parsed as ReturnType<typeof parseArgs<{ args: string[]; options: T; allowPositionals: true }>>;
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(explain(error), { cause: error });
    throw error;
  }
}

/** Without Node's further sentences about arguments that begin with a dash. */
function explain({ message }: TypeError): string {
  const [, option] = /^Option '(?:-\w, )?(--[\w-]+)[^']*' argument is ambiguous/.exec(message) ?? [];
  if (option === undefined) return message.split('. ')[0] ?? message;
  return `${option} has no value. Write a value that begins with "-" as ${option}=-…`;
}

/** The argument of a verb that needs one. @throws UsageError */
export function argumentOf([argument]: readonly string[], what: string): string {
  if (argument === undefined) throw new UsageError(`${what} is missing`);
  return argument;
}

type Range = { readonly min: number; readonly max: number };

/** @throws UsageError */
export function whole(name: string, text: string | undefined, fallback: number, range: Range): number {
  return text === undefined ? fallback : within(range, text, /^\d{1,9}$/, `${name} takes a whole number`);
}

/** A decimal number. @throws UsageError */
export function decimal(name: string, text: string | undefined, fallback: number, range: Range): number {
  const form = /^\d{1,9}(?:\.\d{1,9})?$/;
  return text === undefined ? fallback : within(range, text, form, `${name} takes a number`);
}

/** Seconds: `10`, `0.5`, `10s` or `2m`. @throws UsageError */
export function seconds(name: string, text: string | undefined, fallback: number, range: Range): number {
  const span = text === undefined ? undefined : parseSpan(text);
  return decimal(name, span === undefined ? text : String(span), fallback, range);
}

function within({ min, max }: Range, text: string, form: RegExp, takes: string): number {
  const value = Number(text);
  if (form.test(text) && value >= min && value <= max) return value;
  throw new UsageError(`${takes} from ${min} to ${max}`);
}

/** @throws UsageError */
export function oneOf<T extends string>(
  name: string,
  text: string | undefined,
  fallback: T,
  choices: readonly T[],
): T {
  if (text === undefined) return fallback;
  const found = choices.find((choice) => choice === text);
  if (found === undefined) throw new UsageError(`${name} takes one of ${choices.join(', ')}`);
  return found;
}

/** Several of `choices`, separated by commas. @throws UsageError */
export function someOf<T extends string>(name: string, text: string, choices: readonly T[]): readonly T[] {
  const given = text.split(',').map((word) => word.trim());
  const unknown = given.filter((word) => !choices.some((choice) => choice === word));
  if (unknown.length > 0) {
    throw new UsageError(`${name} takes ${choices.join(', ')}, not "${unknown.join(', ')}"`);
  }
  return choices.filter((choice) => given.includes(choice));
}
