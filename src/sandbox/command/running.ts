// What the commands that run the sandbox and its file server share: the log, the end on a signal, and ports.

import { createLog, type Logger, lastLines } from '../../base/log/log.ts';
import { createLogOutput, writerOf } from '../../base/log/log-output.ts';
import type { Io } from '../../terminal/io.ts';
import { onFirstSignal } from '../../terminal/signals.ts';
import { type FileServer, startFileServer } from '../index.ts';

/** Room for the largest output of the largest input that the sandbox takes. */
const FILE_MAX_BYTES = 1024 * 1024 * 1024;

/** Runs what `start` starts until the first signal, and stops it in order. A second signal ends the program at once. */
export async function untilSignal(
  io: Io,
  level: string,
  start: (running: AsyncDisposableStack, log: Logger) => Promise<void>,
): Promise<number> {
  const log = createLog({ level, pretty: io.stdout.isTTY, output: createLogOutput(writerOf(io.stdout)) });
  const signalled = onFirstSignal(io.signals, ['SIGTERM', 'SIGINT', 'SIGHUP'], () => () => io.exit(1));
  await using running = new AsyncDisposableStack();
  running.defer(() => lastLines(log));
  await start(running, log);
  await signalled;
  return 0;
}

export async function startFiles(
  running: AsyncDisposableStack,
  options: { host: string; port: number; folder: string; log: Logger },
): Promise<FileServer> {
  const server = await startFileServer({ ...options, maxBytes: FILE_MAX_BYTES });
  running.defer(server.stop);
  return server;
}

/** Starts something at `port`. If that is only the usual one, and in use, at a free one. */
export async function startAt<T>(
  io: Io,
  { port, isUsual }: { port: number; isUsual: boolean },
  start: (port: number) => Promise<T>,
): Promise<T> {
  try {
    return await start(port);
  } catch (error) {
    if (!isUsual || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    io.complain(`port ${port} is in use: a free one is taken`);
    return start(0);
  }
}
