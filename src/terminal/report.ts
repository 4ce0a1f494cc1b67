// Reports an error to the user, and maps it to an exit code.

import {
  AnswerError,
  ConfigError,
  describeError,
  type ErrorDescription,
  SchemaError,
  UsageError,
} from '../base/errors.ts';
import { maskInvisibleInLines } from '../base/text/invisible-characters.ts';
import type { Io } from './io.ts';

const HINTS: Readonly<Record<number, string>> = {
  401: 'Check that TALLYHOOK_TOKEN is complete, of this service, not expired and not revoked: see "tallyhook tokens list".',
  403: 'Your token\'s role or source limit does not allow this. Ask for a token that allows it ("tallyhook tokens create").',
};
const BAD_REQUEST = 400;

/** `command`: the name of the one that failed, whose help is suggested. @returns the exit code */
export function reportError(io: Io, error: unknown, command: string | undefined): number {
  const help = command === undefined ? 'tallyhook --help' : `tallyhook ${command} --help`;
  const { lines, exitCode } = describeFailure(error, help);
  for (const each of lines) io.complain(each);
  return exitCode;
}

/** What is said of an error, and the exit code of most commands. `help`: the command that shows the help. */
export function describeFailure(
  error: unknown,
  help: string,
): { readonly lines: readonly string[]; readonly exitCode: number } {
  const tryHelp = `Try "${help}".`;
  if (error instanceof UsageError) return { lines: [error.message, tryHelp], exitCode: 2 };
  const { because, ...described } = describeError(error);
  // The text may come from a service that is not ours.
  const said = maskInvisibleInLines([described, ...(because ? [because] : [])].map(line).join('\n  '));
  if (error instanceof AnswerError) {
    const hint = HINTS[error.httpStatus];
    const isWrong = error.httpStatus === BAD_REQUEST;
    const lines = [said, ...(hint === undefined ? [] : [hint]), ...(isWrong ? [tryHelp] : [])];
    return { lines, exitCode: isWrong ? 2 : 1 };
  }
  const exitCode = error instanceof ConfigError || error instanceof SchemaError ? 78 : 1;
  return { lines: [said], exitCode };
}

const line = ({ name, code, message }: ErrorDescription): string => `${code ?? name}: ${message}`;
