// The options of `tallyhook sandbox`, what `--help` prints of them, and the defaults that it names.

import { join } from 'node:path';
import { inRepository } from '../../terminal/environment.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { DEFAULT_SETTINGS, SCOPES } from '../index.ts';

export const LOCAL_FOLDER = '.local';
export const DATA_NAME = 'sandbox';
export const DEFAULT_DATA = join(LOCAL_FOLDER, `${DATA_NAME}.db`);
export const DEFAULT_ACCOUNT = 'default';
export const FILES_PORT = 8091;
export const FILES_FOLDER = join(LOCAL_FOLDER, 'sandbox-files');

const { host, port, jobs, webhooks } = DEFAULT_SETTINGS;
const { firstDelayMs, factor, maxDelayMs } = webhooks.retry;

const BEHAVIOUR = {
  engine: option('NAME', 'ffmpeg, simulated, or auto: ffmpeg if it is installed (auto)'),
  'max-jobs': option('N', `conversions at a time (${jobs.concurrent})`),
  'retry-first-ms': option('N', `time from a webhook's first attempt to its second (${firstDelayMs})`),
  'retry-factor': option('N', `each further wait is N times as long as the one before (${factor})`),
  'retry-max-ms': option('N', `the longest wait (${maxDelayMs})`),
  'log-level': option('LEVEL', 'debug, info, warn or error (info)'),
} as const;

const CHAOS = {
  'chaos-duplicates': option('P', 'a webhook is sent twice'),
  'chaos-reorder': option('P', 'a webhook is sent after the next one of its job'),
  'chaos-tamper': option('P', 'the body is changed after signing'),
  'chaos-wrong-secret': option('P', 'the body is signed with another secret'),
  'chaos-delay-ms': option('N', 'a webhook is sent up to N ms later'),
  'chaos-flood': option('N', 'N copies of each webhook follow it at once'),
} as const;

/** What `npm start -- --sandbox` passes on. The others it sets itself. */
export const PASSED_OPTIONS = { ...BEHAVIOUR, ...CHAOS } as const;

const PLACE = {
  host: option('HOST', `the address that it listens on (${host})`),
  port: option('N', `and the port; 0 takes a free one (${port}, or a free one if that is in use)`),
  data: option(
    'FILE',
    `its SQLite file, or ":memory:" (${DEFAULT_DATA}, or sandbox-2.db, … if that is in use)`,
  ),
  'allow-local': flag('jobs may use plain HTTP and all addresses of this machine'),
  'files-port': option('N', `the port of the file server; 0 takes a free one (${FILES_PORT}, or a free one)`),
  files: option('DIR', 'the folder of the file server (that of the data)'),
  receiver: option(
    'URL',
    "the address for webhooks that the dashboard proposes for a conversion (the relay's)",
  ),
} as const;
export const SERVE_OPTIONS = { ...PLACE, ...PASSED_OPTIONS } as const;

export const FILES_OPTIONS = {
  host: option('HOST', `the address that it listens on (${host})`),
  port: option('N', `and the port (${FILES_PORT})`),
  files: option('DIR', `its folder (${FILES_FOLDER})`),
  'log-level': BEHAVIOUR['log-level'],
} as const;

export const TOKEN_OPTIONS = {
  name: option('NAME', 'what it is for (required)'),
  test: flag('a test token instead of a live one'),
  scopes: option('LIST', `${SCOPES.join(',')} (all)`),
  expires: option('TIME', 'ISO 8601: 2027-01-31 or 2027-01-31T12:00:00Z (never)'),
} as const;

export const SETTING_OPTIONS = {
  tier: option('TIER', 'free, basic, pro or enterprise'),
  'webhook-url': option('URL', 'address for webhooks of jobs that have no webhook_url, or "none"'),
  events: option('LIST', 'which are sent: progress,completed,failed, or "none"'),
  attempts: option('N', 'how often each is tried'),
  'retry-first-ms': option('N', 'as for serve, for this account alone, as the next two'),
  'retry-factor': option('N', BEHAVIOUR['retry-factor'].help),
  'retry-max-ms': option('N', BEHAVIOUR['retry-max-ms'].help),
  'timeout-ms': option(
    'N',
    `how long a receiver may take to answer, up to 10000
"default" in these four: as the sandbox has it`,
  ),
  'secret-file': option('FILE', 'sign with the secret in this file'),
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
