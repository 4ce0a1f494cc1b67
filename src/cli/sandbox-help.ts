// What `tallyhook sandbox --help` says, and the defaults that it names. `npm start -- --sandbox` uses the same data file.

import { join } from 'node:path';
import { SCOPES, DEFAULT_SETTINGS } from '../sandbox/index.ts';

export const DEFAULT_DATA = join('.local', 'sandbox.db');
export const DEFAULT_ACCOUNT = 'default';
export const FILES_PORT = 8091;
export const FILES_FOLDER = join('.local', 'sandbox-files');

const { host, port, jobs, webhooks } = DEFAULT_SETTINGS;
const { firstDelayMs, factor, maxDelayMs } = webhooks.retry;

export const HELP = `Runs a stand-in for the conversion service, for development and tests (docs/sandbox.md).

Usage: tallyhook sandbox [command] [options]

  serve                     run it; also without a command
    --host HOST               where it listens (${host})
    --port N                  and at which port, 0 for a free one (${port})
    --data FILE               its SQLite file, or ":memory:" (${DEFAULT_DATA})
    --engine NAME             ffmpeg, simulated, or auto: ffmpeg where it is installed (auto)
    --allow-local             plain HTTP and loopback addresses may be used
    --max-jobs N              conversions at a time (${jobs.concurrent})
    --files-port N            run the file server beside it
    --files DIR               its folder (${FILES_FOLDER})
    --retry-first-ms N        from a webhook's first attempt to its second (${firstDelayMs})
    --retry-factor N          each wait is so many times the one before (${factor})
    --retry-max-ms N          but no longer than this (${maxDelayMs})
    --log-level LEVEL         debug, info, warn or error (info)
    trouble on purpose, as probabilities from 0 to 1:
    --chaos-duplicates P      a webhook is sent twice
    --chaos-reorder P         the job's next webhook overtakes it
    --chaos-tamper P          its body is changed after signing
    --chaos-wrong-secret P    it is signed with another secret
    --chaos-delay-ms N        it is put off by up to so much
    --chaos-flood N           so many copies follow it at once
  files                     the file server alone, with a sample clip to convert
    --host HOST --port N      where it listens (${host}, ${FILES_PORT})
    --files DIR               its folder
  tokens create             make a token; its value is printed once, on standard output
    --name NAME               what it is for (required)
    --test                    a test token instead of a live one
    --scopes LIST             ${SCOPES.join(',')} (all)
    --expires TIME            ISO 8601: 2027-01-31 or 2027-01-31T12:00:00Z (never)
  tokens list               all of an account; NDJSON when piped
  tokens revoke ID
  account show              an account's settings; with --secret its signing secret, and nothing else
  account set               change them
    --tier TIER               free, basic, pro or enterprise
    --webhook-url URL         where webhooks of jobs without an address of their own go, or "none"
    --events LIST             which are sent: progress,completed,failed, or "none"
    --attempts N              how often each is tried
    --secret-file FILE        sign with the secret in this file
    --new-secret              sign with a new one

tokens and account take --data FILE, and --account NAME (${DEFAULT_ACCOUNT}), which is made when it is new.`;
