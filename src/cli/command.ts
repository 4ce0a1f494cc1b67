// What a command is: what it does, and what it says of itself.

import type { Env } from '../config.ts';

export type Command = {
  /** For `tallyhook <command> --help`. */
  readonly help: string;
  /** @returns an exit code. @throws HelpAsked where `--help` stands among the arguments */
  readonly run: (args: string[], env: Env) => Promise<number>;
};

/** What a noun of the command line knows to do: `list`, `show`, … */
export type Verbs = Readonly<Record<string, (args: string[], env: Env) => Promise<number>>>;
