// The one place where commands write. Colours only for a terminal that wants them.

import { once } from 'node:events';
import { styleText } from 'node:util';

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** As `say`, for output of any length: resolves when a slow reader is ready for more. */
export async function put(chunk: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
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
