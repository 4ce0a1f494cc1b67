// `tallyhook sandbox`: the stand-in for the conversion service, and what stands in for its dashboard. Configured by its
// options alone: a tool that is started by hand should say in one line what it was started with.

import { UsageError } from '../errors.ts';
import { createLog, lastLines, type Logger } from '../log.ts';
import {
  FLOOD_MAX_COPIES,
  NO_CHAOS,
  findFfmpeg,
  type FileServer,
  startFileServer,
  type Sandbox,
  startSandbox,
  DEFAULT_SETTINGS,
  ENGINE_CHOICES,
  type Settings,
  SCOPES,
} from '../sandbox/index.ts';
import { decimal, oneOf, parse, whole } from './arguments.ts';
import type { Command } from './command.ts';
import { complain, paint } from './output.ts';
import { CLIP, makeClips } from './sandbox-clips.ts';
import { account, tokens } from './sandbox-dashboard.ts';
import { onFirstSignal } from './signals.ts';
import { DEFAULT_ACCOUNT, dataFile, FILES_FOLDER, FILES_PORT, HELP } from './sandbox-help.ts';

/** Room for the largest output of the largest input that the sandbox takes. */
const FILE_MAX_BYTES = 1024 * 1024 * 1024;
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

export const sandboxCommand: Command = { help: HELP, run };

const text = { type: 'string' } as const;
const SERVE_OPTIONS = {
  host: text,
  port: text,
  data: text,
  engine: text,
  'allow-local': { type: 'boolean' },
  'max-jobs': text,
  'files-port': text,
  files: text,
  'retry-first-ms': text,
  'retry-factor': text,
  'retry-max-ms': text,
  'log-level': text,
  'chaos-duplicates': text,
  'chaos-reorder': text,
  'chaos-tamper': text,
  'chaos-wrong-secret': text,
  'chaos-delay-ms': text,
  'chaos-flood': text,
} as const;

type ServeValues = ReturnType<typeof parse<typeof SERVE_OPTIONS>>['values'];

async function serve(args: string[]): Promise<number> {
  const { values } = parse(args, SERVE_OPTIONS);
  const settings = settingsOf(values);
  const filesPort = values['files-port'];
  const log = logOf(values);
  const asked = untilAsked(); // from now on a signal ends it in order
  await using started = new AsyncDisposableStack();
  started.defer(() => lastLines(log));
  const running = await startSandbox(settings, { log });
  started.use(running);
  const fileServer =
    filesPort === undefined
      ? undefined
      : await startFiles({
          folder: values.files,
          host: settings.host,
          port: portOf('--files-port', filesPort, FILES_PORT),
          log,
        });
  if (fileServer !== undefined) started.defer(fileServer.stop);
  welcome(running, settings, fileServer);
  await asked;
  return 0;
}

async function files(args: string[]): Promise<number> {
  const { values } = parse(args, { host: text, port: text, files: text, 'log-level': text });
  const { host = DEFAULT_SETTINGS.host } = values;
  const port = portOf('--port', values.port, FILES_PORT);
  const asked = untilAsked();
  await using started = new AsyncDisposableStack();
  const log = logOf(values);
  started.defer(() => lastLines(log));
  const server = await startFiles({ folder: values.files, host, port, log });
  started.defer(server.stop);
  complain(`${paint('bold', 'Files')}  ${server.url}/${CLIP}`);
  await asked;
  return 0;
}

function settingsOf(values: ServeValues): Settings {
  const { jobs, webhooks } = DEFAULT_SETTINGS;
  const delay = { min: 1, max: 24 * 60 * 60 * 1_000 };
  return {
    ...DEFAULT_SETTINGS,
    host: values.host ?? DEFAULT_SETTINGS.host,
    port: portOf('--port', values.port, DEFAULT_SETTINGS.port),
    data: dataFile(values.data),
    engine: oneOf('--engine', values.engine, DEFAULT_SETTINGS.engine, ENGINE_CHOICES),
    allowLocal: values['allow-local'] ?? false,
    jobs: { ...jobs, ...concurrency(values['max-jobs']) },
    webhooks: {
      ...webhooks,
      retry: {
        ...webhooks.retry,
        firstDelayMs: whole('--retry-first-ms', values['retry-first-ms'], webhooks.retry.firstDelayMs, delay),
        factor: decimal('--retry-factor', values['retry-factor'], webhooks.retry.factor, { min: 1, max: 10 }),
        maxDelayMs: whole('--retry-max-ms', values['retry-max-ms'], webhooks.retry.maxDelayMs, delay),
      },
      chaos: chaosOf(values),
    },
  };
}

/** Nobody who asks for more has in mind that one account should not have it. */
function concurrency(given: string | undefined): Partial<Settings['jobs']> {
  if (given === undefined) return {};
  const count = whole('--max-jobs', given, 0, { min: 1, max: 64 });
  return { concurrent: count, concurrentPerAccount: count };
}

function chaosOf(values: ServeValues): Settings['webhooks']['chaos'] {
  const chance = (name: 'duplicates' | 'reorder' | 'tamper' | 'wrong-secret') =>
    decimal(`--chaos-${name}`, values[`chaos-${name}`], 0, { min: 0, max: 1 });
  return {
    ...NO_CHAOS,
    duplicates: chance('duplicates'),
    reorder: chance('reorder'),
    tamper: chance('tamper'),
    wrongSecret: chance('wrong-secret'),
    delayMs: whole('--chaos-delay-ms', values['chaos-delay-ms'], 0, { min: 0, max: 60_000 }),
    flood: whole('--chaos-flood', values['chaos-flood'], 0, { min: 0, max: FLOOD_MAX_COPIES }),
  };
}

/** 0 takes a free one. */
function portOf(name: string, given: string | undefined, fallback: number): number {
  return whole(name, given, fallback, { min: 0, max: 65_535 });
}

function logOf(values: { 'log-level'?: string | undefined }): Logger {
  const level = oneOf('--log-level', values['log-level'], 'info', LOG_LEVELS);
  return createLog({ level, pretty: process.stdout.isTTY });
}

async function startFiles(options: {
  folder: string | undefined;
  host: string;
  port: number;
  log: Logger;
}): Promise<FileServer> {
  const { folder = FILES_FOLDER, host, port, log } = options;
  const server = await startFileServer({ host, port, folder, maxBytes: FILE_MAX_BYTES, log });
  await makeClips({ folder, programs: await findFfmpeg() });
  return server;
}

/** On standard error, apart from the log: it shows the first token, which nothing else may. */
function welcome(
  { url, accounts, engine }: Sandbox,
  { allowLocal }: Settings,
  fileServer: FileServer | undefined,
): void {
  complain(
    `\n${paint('bold', 'The sandbox is ready.')} It stands in for the conversion service, and is not it.\n`,
  );
  complain(`  base_url   ${url}`);
  complain(
    `  engine     ${engine.kind === 'ffmpeg' ? `ffmpeg ${engine.version}` : 'simulated: nothing is converted'}`,
  );
  const filesUrl = (allowLocal ? fileServer?.url : undefined) ?? 'https://files.example.com';
  if (fileServer !== undefined) {
    const hint = allowLocal ? '' : '   (jobs may use it only with --allow-local)';
    complain(`  a clip     ${fileServer.url}/${CLIP}${hint}`);
  }
  const token = firstToken(accounts);
  if (token !== undefined) complain(`  token      ${token}   (shown only this once)`);
  const order = JSON.stringify({
    job_type: 'video',
    input_url: `${filesUrl}/${CLIP}`,
    output_url: `${filesUrl}/output.webm`,
    input_format: 'mp4',
    output_format: 'webm',
  });
  complain(`
  curl -i ${url}/conversion_jobs -H 'Content-Type: application/json' \\
    -H 'Authorization: Bearer ${token ?? '<token>'}' -d '${order}'
`);
}

/** Whoever runs it for the first time needs one, and in memory there is no other way to get it. */
function firstToken(accounts: Sandbox['accounts']): string | undefined {
  if (accounts.hasTokens()) return undefined;
  return accounts.createToken({
    account: accounts.open(DEFAULT_ACCOUNT),
    name: 'first token',
    environment: 'live',
    scopes: SCOPES,
    expiresAt: null,
  }).value;
}

/** Resolves on the first SIGTERM, SIGINT or SIGHUP; a second one ends the program at once. */
function untilAsked(): Promise<void> {
  return onFirstSignal(['SIGTERM', 'SIGINT', 'SIGHUP'], () => () => process.exit(1));
}
