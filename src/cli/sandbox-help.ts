// What `tallyhook sandbox --help` prints, and the defaults that it names.

import { join } from 'node:path';
import { SCOPES, DEFAULT_SETTINGS } from '../sandbox/index.ts';
import { inRepository } from './environment.ts';

export const LOCAL_FOLDER = '.local';
export const DATA_NAME = 'sandbox';
export const DEFAULT_DATA = join(LOCAL_FOLDER, `${DATA_NAME}.db`);
export const DEFAULT_ACCOUNT = 'default';
export const FILES_PORT = 8091;
export const FILES_FOLDER = join(LOCAL_FOLDER, 'sandbox-files');

const { host, port, jobs, webhooks } = DEFAULT_SETTINGS;
const { firstDelayMs, factor, maxDelayMs } = webhooks.retry;

/** The options that `npm start -- --sandbox` takes, too. */
const SERVING_HELP = `    --engine NAME             ffmpeg, simulated, or auto: ffmpeg if it is installed (auto)
    --max-jobs N              conversions at a time (${jobs.concurrent})
    --retry-first-ms N        time from a webhook's first attempt to its second (${firstDelayMs})
    --retry-factor N          each further wait is N times as long as the one before (${factor})
    --retry-max-ms N          the longest wait (${maxDelayMs})
    --log-level LEVEL         debug, info, warn or error (info)
    deliberate faults, to test a receiver. P is a probability from 0 to 1:
    --chaos-duplicates P      a webhook is sent twice
    --chaos-reorder P         a webhook is sent after the next one of its job
    --chaos-tamper P          the body is changed after signing
    --chaos-wrong-secret P    the body is signed with another secret
    --chaos-delay-ms N        a webhook is sent up to N ms later
    --chaos-flood N           N copies of each webhook follow it at once`;

export const HELP = `Runs a stand-in for the conversion service, for development and tests (docs/sandbox.md).

Usage: tallyhook sandbox [command] [options]

  serve                     run it; the command may be left out
    --host HOST               the address that it listens on (${host})
    --port N                  and the port; 0 takes a free one (${port}, or a free one if that is in use)
    --data FILE               its SQLite file, or ":memory:" (${DEFAULT_DATA}, or sandbox-2.db, … if that is in use)
    --allow-local             jobs may use plain HTTP and all addresses of this machine
    --files-port N            the port of the file server; 0 takes a free one (${FILES_PORT}, or a free one)
    --files DIR               the folder of the file server (that of the data)
    --receiver URL            the address for webhooks that the dashboard proposes for a conversion (the relay's)
${SERVING_HELP}
    Without --data it runs the file server, and works with the relay of "${inRepository('npm start', 'serve')}" if that runs: webhooks are signed with
    the relay's secret, and jobs may use the addresses of both. With --data it runs the file server only with --files-port.
  files                     the file server alone, with a sample clip to convert
    --host HOST --port N      where it listens (${host}, ${FILES_PORT})
    --files DIR               its folder (${FILES_FOLDER})
  tokens create             make a token; its value is printed once, on standard output
    --name NAME               what it is for (required)
    --test                    a test token instead of a live one
    --scopes LIST             ${SCOPES.join(',')} (all)
    --expires TIME            ISO 8601: 2027-01-31 or 2027-01-31T12:00:00Z (never)
  tokens list               all of an account; NDJSON when piped
  tokens revoke ID
  account show              print an account's settings; with --secret only its signing secret
  account set               change them
    --tier TIER               free, basic, pro or enterprise
    --webhook-url URL         address for webhooks of jobs that have no webhook_url, or "none"
    --events LIST             which are sent: progress,completed,failed, or "none"
    --attempts N              how often each is tried
    --retry-first-ms N        and --retry-factor N, --retry-max-ms N: as for serve, for this account alone
    --timeout-ms N            how long a receiver may take to answer, up to 10000
                              "default" in these four: as the sandbox has it
    --secret-file FILE        sign with the secret in this file
    --new-secret              sign with a new one

  dashboard                 print an address of the running sandbox's dashboard that signs in once

tokens, account and dashboard take --data FILE, and --account NAME (${DEFAULT_ACCOUNT}). A new account is created.`;
