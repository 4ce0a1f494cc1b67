// The program's log: JSON lines on standard output, or readable ones for a person. Loggers are passed in as
// dependencies; nothing here holds one.

import { type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { createLogOutput, type LogOutput } from './log-output.ts';
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

/** `output`: to standard output, if not given. What was dropped there is told by a line as soon as lines flow again. */
export function createLog(options: {
  level: string;
  pretty: boolean;
  name?: string;
  output?: LogOutput;
}): Logger {
  const { output = createLogOutput() } = options;
  // A function and not a stream: what a stream holds back has no limit.
  const prettify = options.pretty ? prettyFactory({ colorize: process.stdout.isTTY }) : undefined;
  const log = pino(
    {
      level: options.level,
      base: options.name === undefined ? {} : { name: options.name },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: NEVER_LOGGED, remove: true },
      formatters: { level: (label: string) => ({ level: label }) },
      // Senders choose some of what is logged, and logs are read on terminals.
      hooks: { streamWrite: options.pretty ? maskUnseenInJson : escapeUnseen },
    },
    prettify === undefined ? output : { ...output, write: (line: string) => output.write(prettify(line)) },
  );
  output.onFlowing((dropped) => log.warn({ dropped }, `${dropped} log lines dropped`));
  return log;
}

/** The last lines are on their way at once unless nobody reads, and that must keep nobody from ending. */
const LAST_LINES_MS = 1_000;

/** Resolves when all lines so far are out, or when nobody seems to read them. */
export function lastLines(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LAST_LINES_MS);
    log.flush(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
