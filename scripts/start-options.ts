// The options of `npm start`: `--sandbox`, and those that it passes on to the sandbox. All are checked before anything starts.

import { FLAG, parse } from '../src/terminal/arguments.ts';
import { PASSED_OPTIONS } from '../src/sandbox/command/help.ts';
import { logLevelOf, toSettings } from '../src/sandbox/command/settings.ts';
import { UsageError } from '../src/base/errors.ts';

export type StartOptions = {
  /** Undefined without `--sandbox`. */
  readonly sandbox:
    | {
        readonly engine: string | undefined;
        /** For `tallyhook sandbox serve`. */
        readonly args: readonly string[];
      }
    | undefined;
};

/** @throws UsageError */
export function readStartOptions(args: string[]): StartOptions {
  const { sandbox, ...passed } = parse(args, { sandbox: FLAG, ...PASSED_OPTIONS }).values;
  toSettings(passed);
  logLevelOf(passed['log-level']);
  const given = Object.entries(passed).map(([name, value]) => [`--${name}`, value] as const);
  const [first] = given;
  if (sandbox === true) return { sandbox: { engine: passed.engine, args: given.flat() } };
  if (first === undefined) return { sandbox: undefined };
  throw new UsageError(`${first[0]} is an option of the sandbox: add --sandbox`);
}
