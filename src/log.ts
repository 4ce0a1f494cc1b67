// The program's log: JSON lines on standard output, or readable ones for a person. Loggers are passed in as
// dependencies; nothing here holds one.

import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { escapeUnseen, maskUnseenInJson } from './unseen.ts';

export type { Logger };

/**
 * Redaction is the second line of defence and not the first: nothing may be logged that holds a secret. Paths
 * are case-sensitive and reach just the level they name.
 */
const NEVER_LOGGED = [
  'signature',
  'authorization',
  'secret',
  'secrets',
  'body',
  'headers',
  '*.signature',
  '*.body',
];

export function createLog(options: { level: string; pretty: boolean; name?: string }): Logger {
  const settings = {
    level: options.level,
    base: options.name === undefined ? {} : { name: options.name },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: NEVER_LOGGED, remove: true },
    formatters: { level: (label: string) => ({ level: label }) },
    // Senders choose some of what is logged, and logs are read on terminals.
    hooks: { streamWrite: options.pretty ? maskUnseenInJson : escapeUnseen },
  };
  // As a stream and not as a worker thread: a log that is lost at exit is worth less than a little time.
  return options.pretty
    ? pino(settings, pretty({ colorize: process.stdout.isTTY, sync: true }))
    : pino(settings);
}
