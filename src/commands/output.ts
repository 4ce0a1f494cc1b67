// The one place where commands write. Colours only for a terminal that wants them.

import { styleText } from 'node:util';

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

type Format = Parameters<typeof styleText>[0];

/** Node itself leaves the colours out where standard output is no terminal or NO_COLOR is set. */
export function paint(format: Format, text: string): string {
  return styleText(format, text, { stream: process.stdout });
}
