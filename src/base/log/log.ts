// Makes the program's log: JSON lines on standard output, or readable lines for a person. Loggers are passed on as
// dependencies; there is no global one.

import { type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { escapeInvisible, maskInvisibleInJson } from '../text/invisible-characters.ts';
import { createLogOutput, type LogOutput } from './log-output.ts';

export type { Logger };

/**
 * The second line of defence: no code may log a secret in the first place. Paths are case-sensitive and reach only the level
 * that they name.
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

/** @param options.output standard output by default. When it drops lines, the log says how many as soon as it writes again. */
export function createLog(options: {
  level: string;
  pretty: boolean;
  name?: string;
  output?: LogOutput;
}): Logger {
  const { output = createLogOutput() } = options;
  // A function and not pino-pretty's stream: a stream buffers without limit.
  const prettify = options.pretty ? prettyFactory({ colorize: process.stdout.isTTY }) : undefined;
  const log = pino(
    {
      level: options.level,
      base: options.name === undefined ? {} : { name: options.name },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: NEVER_LOGGED, remove: true },
      formatters: { level: (label: string) => ({ level: label }) },
      // Errors are described already (base/errors.ts). Pino would add a type and a stack, which such a description has not.
      serializers: { err: (described: unknown) => described },
      // Senders choose some of the texts in the log, and logs are read on terminals.
      hooks: { streamWrite: options.pretty ? maskInvisibleInJson : escapeInvisible },
    },
    prettify === undefined ? output : { ...output, write: (line: string) => output.write(prettify(line)) },
  );
  output.onResumed((dropped) => log.warn({ dropped }, `${dropped} log lines dropped`));
  return log;
}

/** Enough if somebody reads the output. If nobody does, the program must end all the same. */
const LAST_LINES_MS = 1_000;

/** Resolves when all lines so far are written, or when nobody seems to read them. */
export function lastLines(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LAST_LINES_MS);
    log.flush(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
