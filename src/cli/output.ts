// The one place where commands write. Colours only for a terminal that wants them. Whatever is written here is text
// without controls: text for people has a mark in their place, JSON has them escaped, which changes no value. Only what
// `putBytes` writes is as it was sent.

import { once } from 'node:events';
import { styleText } from 'node:util';
import { escapeUnseen, maskUnseenInColours } from '../unseen.ts';

export function say(line: string): void {
  process.stdout.write(`${maskUnseenInColours(line)}\n`);
}

export function complain(line: string): void {
  process.stderr.write(`${maskUnseenInColours(line)}\n`);
}

/** As `say`, for output of any length and without a line's end: resolves when a slow reader is ready for more. */
export function put(text: string): Promise<void> {
  return putBytes(maskUnseenInColours(text));
}

/** One line. */
export function putJson(item: unknown): Promise<void> {
  return putBytes(`${toJson(item)}\n`); // escaped already
}

/** As it is. Never what others wrote, to a terminal. */
export async function putBytes(chunk: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}

export function toJson(item: unknown, indent?: number): string {
  return escapeUnseen(JSON.stringify(item, undefined, indent));
}

/**
 * A reader that leaves the pipe, as `head` does, has what it wanted: the program ends, quietly and with 0. Where output
 * cannot go, as onto a full disk, it ends with 1.
 */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    complain(`standard output: ${error.message}`);
    process.exit(1);
  });
}

export type Format = Parameters<typeof styleText>[0];

/** Node itself leaves the colours out where standard output is no terminal or NO_COLOR is set. */
export function paint(format: Format, text: string): string {
  return styleText(format, text, { stream: process.stdout });
}
