// `tallyhook sandbox`: the stand-in for the conversion service, and what stands in for its dashboard. It is configured by its
// options alone, so that a command line says all that a sandbox was started with.

import { UsageError } from '../errors.ts';
import { createLog, lastLines, type Logger } from '../log.ts';
import {
  DEFAULT_SETTINGS,
  type FileServer,
  findFfmpeg,
  startFileServer,
  startSandbox,
} from '../sandbox/index.ts';
import { oneOf, parse, TEXT } from './arguments.ts';
import type { Command } from './command.ts';
import { complain, paint } from './output.ts';
import { account } from './sandbox-account.ts';
import { CLIP, makeClips } from './sandbox-clips.ts';
import { FILES_FOLDER, FILES_PORT, HELP } from './sandbox-help.ts';
import { portOf, SERVE_OPTIONS, toSettings } from './sandbox-settings.ts';
import { tokens } from './sandbox-tokens.ts';
import { welcome } from './sandbox-welcome.ts';
import { onFirstSignal } from './signals.ts';

/** Room for the largest output of the largest input that the sandbox takes. */
const FILE_MAX_BYTES = 1024 * 1024 * 1024;
const FILES_OPTIONS = { host: TEXT, port: TEXT, files: TEXT, 'log-level': TEXT } as const;
const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

async function run(args: string[]): Promise<number> {
  const [first = '', ...others] = args;
  const [command, rest] = first === '' || first.startsWith('-') ? ['serve', args] : [first, others];
  switch (command) {
    case 'serve':
      return serve(rest);
    case 'files':
      return files(rest);
    case 'tokens':
      return tokens(rest);
    case 'account':
      return account(rest);
    default:
      throw new UsageError(`sandbox takes serve, files, tokens or account, not "${command}"`);
  }
}

async function serve(args: string[]): Promise<number> {
  const { values } = parse(args, SERVE_OPTIONS);
  const settings = toSettings(values);
  const { host } = settings;
  return untilSignal(values['log-level'], async (running, log) => {
    const sandbox = running.use(await startSandbox(settings, { log }));
    const filesPort = values['files-port'];
    const port = portOf('--files-port', filesPort, FILES_PORT);
    const fileServer =
      filesPort === undefined
        ? undefined
        : await startFiles(running, { host, port, folder: values.files, log });
    welcome(sandbox, settings, fileServer?.url);
  });
}

async function files(args: string[]): Promise<number> {
  const { values } = parse(args, FILES_OPTIONS);
  const { host = DEFAULT_SETTINGS.host, files: folder } = values;
  const port = portOf('--port', values.port, FILES_PORT);
  return untilSignal(values['log-level'], async (running, log) => {
    const { url } = await startFiles(running, { host, port, folder, log });
    complain(`${paint('bold', 'Files')}  ${url}/${CLIP}`);
  });
}

/** Runs what `start` starts until the first signal, and stops it in order. A second signal ends the program at once. */
async function untilSignal(
  logLevel: string | undefined,
  start: (running: AsyncDisposableStack, log: Logger) => Promise<void>,
): Promise<number> {
  const level = oneOf('--log-level', logLevel, 'info', LOG_LEVELS);
  const log = createLog({ level, pretty: process.stdout.isTTY });
  const signalled = onFirstSignal(['SIGTERM', 'SIGINT', 'SIGHUP'], () => () => process.exit(1));
  await using running = new AsyncDisposableStack();
  running.defer(() => lastLines(log));
  await start(running, log);
  await signalled;
  return 0;
}

async function startFiles(
  running: AsyncDisposableStack,
  options: { host: string; port: number; folder: string | undefined; log: Logger },
): Promise<FileServer> {
  const { folder = FILES_FOLDER } = options;
  const server = await startFileServer({ ...options, folder, maxBytes: FILE_MAX_BYTES });
  running.defer(server.stop);
  await makeClips({ folder, programs: await findFfmpeg() });
  return server;
}

export const sandboxCommand: Command = { help: HELP, run };
