// What a command is, and how one that has verbs finds the verb.

import { UsageError } from '../base/errors.ts';
import type { Env } from '../config.ts';
import { parse } from './arguments.ts';
import type { Io } from './io.ts';

/** @returns an exit code. @throws UsageError, and HelpAsked where `--help` is among the arguments */
export type Verb = (args: string[], env: Env, io: Io) => Promise<number>;

export type Command = {
  /** For `tallyhook <command> --help`. */
  readonly help: string;
  readonly run: Verb;
  /** Reports an error, where it is not reported as those of the other commands are. @returns an exit code */
  readonly report?: (io: Io, error: unknown) => number;
};

/** A command with verbs: `list`, `show`, … Without a verb, or with an option first, `otherwise` runs. */
export function nounCommand(
  noun: string,
  { help, verbs, otherwise }: { help: string; verbs: Readonly<Record<string, Verb>>; otherwise?: Verb },
): Command {
  return {
    help,
    run: (args, env, io) => {
      const [first = '', ...rest] = args;
      const verb = Object.hasOwn(verbs, first) ? verbs[first] : undefined;
      if (verb !== undefined) return verb(rest, env, io);
      if (otherwise !== undefined && (first === '' || first.startsWith('-'))) return otherwise(args, env, io);
      if (first.startsWith('-')) parse(args, {}); // --help
      throw new UsageError(
        `${noun} takes ${Object.keys(verbs).join(', ')}${first === '' ? '' : `, not "${first}"`}`,
      );
    },
  };
}
