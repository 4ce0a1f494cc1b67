// `tallyhook serve`: runs the service until a signal ends it.

import { type Env, loadConfig, misspeltVariables } from '../config.ts';
import { describeError } from '../base/errors.ts';
import { createLog, lastLines, type Logger } from '../base/log/log.ts';
import { createLogOutput } from '../base/log/log-output.ts';
import { type Service, startService } from '../service.ts';
import { parse } from '../terminal/arguments.ts';
import { setCollectorFlags } from './collector.ts';
import type { Command } from '../terminal/command.ts';
import { onFirstSignal } from '../terminal/signals.ts';

const help = `Runs the service until a signal ends it. Its settings are environment variables: see docs/configuration.md.

  serve`;

/** After the grace time, for what `stop` cannot bound by itself, such as a database that hangs. */
const STOP_SLACK_MS = 5_000;

/**
 * Resolves with the exit code: 0 after a clean stop.
 * First SIGTERM or SIGINT: stop in order. A second one: end at once. SIGHUP: read the files of secrets again.
 */
async function serve(env: Env): Promise<number> {
  const config = loadConfig(env);
  setCollectorFlags();
  const output = createLogOutput();
  const log = createLog({ ...config.log, output });
  for (const sentence of misspeltVariables(env)) log.warn(sentence);
  const aborted = new AbortController();
  const stopRequested = onFirstSignal(process, ['SIGTERM', 'SIGINT'], (signal) => {
    log.info({ signal }, 'asked to stop');
    aborted.abort(new Error('stopped before the start was through'));
    setTimeout(
      () => endAtOnce(log, 'the grace time is over'),
      config.shutdown.delayMs + config.shutdown.graceMs + STOP_SLACK_MS,
    ).unref();
    return () => endAtOnce(log, 'asked to stop a second time');
  });
  endOnUnexpectedError(log);
  // Set before the start: without a listener, SIGHUP would end a process that still waits for Postgres.
  let service: Service | undefined;
  process.on('SIGHUP', () => void service?.reload());

  try {
    service = await startService(config, {
      log,
      signal: aborted.signal,
      droppedLogLines: output.dropped,
    });
    await stopRequested;
    await service.stop();
    return 0;
  } catch (error) {
    if (aborted.signal.aborted) return 0;
    throw error;
  } finally {
    await lastLines(log);
  }
}

/** After a bug the state may be corrupt. A restart loses nothing that was acknowledged. */
function endOnUnexpectedError(log: Logger): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      const stack = error instanceof Error ? error.stack?.split('\n').slice(1, 8).join('\n') : undefined;
      log.fatal({ err: describeError(error), stack }, event);
      void end(log, 70);
    });
  }
}

function endAtOnce(log: Logger, why: string): void {
  log.warn(why);
  void end(log, 1);
}

async function end(log: Logger, code: number): Promise<never> {
  await lastLines(log);
  return process.exit(code);
}

export const serveCommand: Command = {
  help,
  run: (args, env) => {
    parse(args, {});
    return serve(env);
  },
};
