// The one place where commands write. Control characters never reach the output: text for people has a mark in their
// place, and JSON has them escaped, which changes no value. Only `putBytes` writes what it is given.

import { once } from 'node:events';
import { styleText } from 'node:util';
import { escapeUnseen, maskUnseenInColours } from '../unseen.ts';

export function say(line: string): void {
  process.stdout.write(`${maskUnseenInColours(line)}\n`);
}

export function complain(line: string): void {
  process.stderr.write(`${maskUnseenInColours(line)}\n`);
}

/** As `say`, but without a line's end. Resolves when the reader is ready for more, so that output may be of any length. */
export function put(text: string): Promise<void> {
  return putBytes(maskUnseenInColours(text));
}

/** One line. */
export function putJson(item: unknown): Promise<void> {
  return putBytes(`${toJson(item)}\n`); // escaped already
}

/** Unchanged. Not for text of others on a terminal. */
export async function putBytes(chunk: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}

export function toJson(item: unknown, indent?: number): string {
  return escapeUnseen(JSON.stringify(item, undefined, indent));
}

/**
 * Ends the program when nothing more can be written: with 0 and no message if the reader closed the pipe, as `head` does,
 * and with 1 otherwise, as on a full disk.
 */
export function exitWhenOutputCloses(): void {
  process.stdout.on('error', exitNow);
}

/** Instead of an exit at once: for a command that has something to clean up. `end` gets the exit code. */
export function whenOutputCloses(end: (code: number) => void): void {
  process.stdout.off('error', exitNow);
  process.stdout.on('error', (error) => end(codeOf(error)));
}

const exitNow = (error: NodeJS.ErrnoException) => process.exit(codeOf(error));

function codeOf(error: NodeJS.ErrnoException): number {
  if (error.code === 'EPIPE') return 0;
  complain(`standard output: ${error.message}`);
  return 1;
}

export type Format = Parameters<typeof styleText>[0];

/** Without colours if standard output is no terminal or NO_COLOR is set: Node sees to it. */
export function paint(format: Format, text: string): string {
  return styleText(format, text, { stream: process.stdout });
}
