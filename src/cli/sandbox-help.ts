// The options of `tallyhook sandbox`, what `--help` prints of them, and the defaults that it names.

import { join } from 'node:path';
import { SCOPES, DEFAULT_SETTINGS } from '../sandbox/index.ts';
import { inRepository } from './environment.ts';
import { flag, optionHelp, text } from './options.ts';

export const LOCAL_FOLDER = '.local';
export const DATA_NAME = 'sandbox';
export const DEFAULT_DATA = join(LOCAL_FOLDER, `${DATA_NAME}.db`);
export const DEFAULT_ACCOUNT = 'default';
export const FILES_PORT = 8091;
export const FILES_FOLDER = join(LOCAL_FOLDER, 'sandbox-files');

const { host, port, jobs, webhooks } = DEFAULT_SETTINGS;
const { firstDelayMs, factor, maxDelayMs } = webhooks.retry;

const BEHAVIOUR = {
  engine: text('NAME', 'ffmpeg, simulated, or auto: ffmpeg if it is installed (auto)'),
  'max-jobs': text('N', `conversions at a time (${jobs.concurrent})`),
  'retry-first-ms': text('N', `time from a webhook's first attempt to its second (${firstDelayMs})`),
  'retry-factor': text('N', `each further wait is N times as long as the one before (${factor})`),
  'retry-max-ms': text('N', `the longest wait (${maxDelayMs})`),
  'log-level': text('LEVEL', 'debug, info, warn or error (info)'),
} as const;

const CHAOS = {
  'chaos-duplicates': text('P', 'a webhook is sent twice'),
  'chaos-reorder': text('P', 'a webhook is sent after the next one of its job'),
  'chaos-tamper': text('P', 'the body is changed after signing'),
  'chaos-wrong-secret': text('P', 'the body is signed with another secret'),
  'chaos-delay-ms': text('N', 'a webhook is sent up to N ms later'),
  'chaos-flood': text('N', 'N copies of each webhook follow it at once'),
} as const;

/** What `npm start -- --sandbox` passes on. The others it sets itself. */
export const PASSED_OPTIONS = { ...BEHAVIOUR, ...CHAOS } as const;

const PLACE = {
  host: text('HOST', `the address that it listens on (${host})`),
  port: text('N', `and the port; 0 takes a free one (${port}, or a free one if that is in use)`),
  data: text(
    'FILE',
    `its SQLite file, or ":memory:" (${DEFAULT_DATA}, or sandbox-2.db, … if that is in use)`,
  ),
  'allow-local': flag('jobs may use plain HTTP and all addresses of this machine'),
  'files-port': text('N', `the port of the file server; 0 takes a free one (${FILES_PORT}, or a free one)`),
  files: text('DIR', 'the folder of the file server (that of the data)'),
  receiver: text(
    'URL',
    "the address for webhooks that the dashboard proposes for a conversion (the relay's)",
  ),
} as const;
export const SERVE_OPTIONS = { ...PLACE, ...PASSED_OPTIONS } as const;

export const FILES_OPTIONS = {
  host: text('HOST', `the address that it listens on (${host})`),
  port: text('N', `and the port (${FILES_PORT})`),
  files: text('DIR', `its folder (${FILES_FOLDER})`),
  'log-level': BEHAVIOUR['log-level'],
} as const;

export const TOKEN_OPTIONS = {
  name: text('NAME', 'what it is for (required)'),
  test: flag('a test token instead of a live one'),
  scopes: text('LIST', `${SCOPES.join(',')} (all)`),
  expires: text('TIME', 'ISO 8601: 2027-01-31 or 2027-01-31T12:00:00Z (never)'),
} as const;

export const SETTING_OPTIONS = {
  tier: text('TIER', 'free, basic, pro or enterprise'),
  'webhook-url': text('URL', 'address for webhooks of jobs that have no webhook_url, or "none"'),
  events: text('LIST', 'which are sent: progress,completed,failed, or "none"'),
  attempts: text('N', 'how often each is tried'),
  'retry-first-ms': text('N', 'as for serve, for this account alone, as the next two'),
  'retry-factor': text('N', BEHAVIOUR['retry-factor'].help),
  'retry-max-ms': text('N', BEHAVIOUR['retry-max-ms'].help),
  'timeout-ms': text(
    'N',
    `how long a receiver may take to answer, up to 10000
"default" in these four: as the sandbox has it`,
  ),
  'secret-file': text('FILE', 'sign with the secret in this file'),
  'new-secret': flag('sign with a new one'),
} as const;

const help = (table: Parameters<typeof optionHelp>[0]) => optionHelp(table, 25);

export const HELP = `Runs a stand-in for the conversion service, for development and tests (docs/sandbox.md).

Usage: tallyhook sandbox [command] [options]

  serve                     run it; the command may be left out
${help(PLACE)}
${help(BEHAVIOUR)}
    deliberate faults, to test a receiver. P is a probability from 0 to 1:
${help(CHAOS)}
    Without --data it runs the file server, and works with the relay of "${inRepository('npm start', 'serve')}" if that runs: webhooks are signed with
    the relay's secret, and jobs may use the addresses of both. With --data it runs the file server only with --files-port.
  files                     the file server alone, with a sample clip to convert
${help(FILES_OPTIONS)}
  tokens create             make a token; its value is printed once, on standard output
${help(TOKEN_OPTIONS)}
  tokens list               all of an account; NDJSON when piped
  tokens revoke ID
  account show              print an account's settings; with --secret only its signing secret
  account set               change them
${help(SETTING_OPTIONS)}

  dashboard                 print an address of the running sandbox's dashboard that signs in once

tokens, account and dashboard take --data FILE, and --account NAME (${DEFAULT_ACCOUNT}). A new account is created.`;
