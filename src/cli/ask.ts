// Asks whether to go on, before something is done to many things at once.

import { createInterface } from 'node:readline/promises';
import { UsageError } from '../errors.ts';
import { paint } from './output.ts';

export const CONFIRM_OPTIONS = { 'dry-run': { type: 'boolean' }, yes: { type: 'boolean' } } as const;

/** @param verb past tense: `replayed`. @throws UsageError if somebody would have to be asked, and nobody is there */
export function requireSomebody(
  given: { 'dry-run'?: boolean | undefined; yes?: boolean | undefined },
  verb: string,
): void {
  if (given['dry-run'] === true || given.yes === true) return;
  if (hasSomebody()) return;
  throw new UsageError(
    `there is no terminal to ask on: say --yes, or --dry-run to see what would be ${verb}`,
  );
}

/** Whether there is a terminal to ask on. */
export const hasSomebody = (): boolean => process.stdin.isTTY && process.stderr.isTTY;

/** On standard error. Ctrl-C and the end of the input mean no. */
export async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([terminal.question(`${paint('bold', question)} [y/N] `), closed]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
