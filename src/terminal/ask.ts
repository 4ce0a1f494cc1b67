// Asks whether to go on, before something is done to many things at once.

import { createInterface } from 'node:readline/promises';
import { UsageError } from '../base/errors.ts';
import type { Io } from './io.ts';
import { flag } from './options.ts';

export const CONFIRM_OPTIONS = {
  'dry-run': flag('only count them and show some'),
  yes: flag('do not ask'),
} as const;

/** @param verb past tense: `replayed`. @throws UsageError if somebody would have to be asked, and nobody is there */
export function requireSomebody(
  io: Io,
  given: { 'dry-run'?: boolean | undefined; yes?: boolean | undefined },
  verb: string,
): void {
  if (given['dry-run'] === true || given.yes === true) return;
  if (hasSomebody(io)) return;
  throw new UsageError(
    `there is no terminal to ask on: say --yes, or --dry-run to see what would be ${verb}`,
  );
}

/** Whether there is a terminal to ask on. */
export const hasSomebody = (io: Io): boolean => io.stdin.isTTY && io.stderr.isTTY;

/** On standard error. Ctrl-C and the end of the input mean no. */
export async function confirm(io: Io, question: string): Promise<boolean> {
  const terminal = createInterface({ input: io.stdin, output: io.stderr });
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([terminal.question(`${io.paint('bold', question)} [y/N] `), closed]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
