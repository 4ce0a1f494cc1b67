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
  if (error instanceof UsageError) {
    io.complain(`${error.message}\nTry "${help}".`);
    return 2;
  }
  const { because, ...described } = describeError(error);
  // The text may come from a service that is not ours.
  io.complain(maskInvisibleInLines([described, ...(because ? [because] : [])].map(line).join('\n  ')));
  if (error instanceof AnswerError) {
    const hint = HINTS[error.httpStatus];
    if (hint !== undefined) io.complain(hint);
    if (error.httpStatus !== BAD_REQUEST) return 1;
    io.complain(`Try "${help}".`);
    return 2;
  }
  return error instanceof ConfigError || error instanceof SchemaError ? 78 : 1;
}

const line = ({ name, code, message }: ErrorDescription): string => `${code ?? name}: ${message}`;
