// A logger whose lines a test can read.

import { Writable } from 'node:stream';
import { pino } from 'pino';
import { tellLog } from './starts.ts';

export type TestLog = { readonly log: pino.Logger; readonly lines: Record<string, unknown>[] };

/** `lines`: what was logged so far, parsed. */
export function createTestLog(): TestLog {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split('\n')) {
        if (line !== '') lines.push(JSON.parse(line) as Record<string, unknown>);
      }
      done();
    },
  });
  tellLog(lines);
  return { log: pino({ level: 'debug' }, stream), lines };
}
