// `tallyhook sandbox account`: shows and changes the settings of an account, as one does in the service's dashboard.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { UsageError } from '../errors.ts';
import { type Account, EVENT_KINDS, TIER_NAMES, urlFault } from '../sandbox/index.ts';
import { FLAG, oneOf, parse, someOf, TEXT, whole } from './arguments.ts';
import { putBytes, say, toJson } from './output.ts';
import { ACCOUNT_OPTIONS, withAccount } from './sandbox-data.ts';

const ATTEMPTS_MAX = 20;
/** Shorter ones can be guessed from one signed body. */
const SECRET_MIN_BYTES = 16;
const SECRET_MAX_BYTES = 256;
const NEW_SECRET_BYTES = 32;

const SETTINGS = {
  tier: TEXT,
  'webhook-url': TEXT,
  events: TEXT,
  attempts: TEXT,
  'secret-file': TEXT,
  'new-secret': FLAG,
} as const;

export async function account(args: string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === 'show') return show(rest);
  if (command === 'set') return set(rest);
  parse(args, {}); // --help
  throw new UsageError('sandbox account takes show or set');
}

function show(args: string[]): number {
  const { values } = parse(args, { ...ACCOUNT_OPTIONS, secret: FLAG });
  return withAccount(values, (accounts, found) => {
    // Byte for byte: a shell variable with this text is used to sign.
    if (values.secret === true) void putBytes(`${accounts.signingSecret(found.id)}\n`);
    else say(settingsOf(found));
    return 0;
  });
}

function set(args: string[]): number {
  const { values } = parse(args, { ...ACCOUNT_OPTIONS, ...SETTINGS });
  const changes = {
    tier: ifGiven(values.tier, (name) => oneOf('--tier', name, 'free', TIER_NAMES)),
    webhookUrl: ifGiven(values['webhook-url'], webhookUrl),
    eventKinds: ifGiven(values.events, (kinds) =>
      kinds === 'none' ? [] : someOf('--events', kinds, EVENT_KINDS),
    ),
    maxAttempts: ifGiven(values.attempts, (count) =>
      whole('--attempts', count, 1, { min: 1, max: ATTEMPTS_MAX }),
    ),
    signingSecret: newSecret(values['secret-file'], values['new-secret']),
  };
  return withAccount(values, (accounts, found) => {
    say(settingsOf(accounts.change(found, changes)));
    return 0;
  });
}

function ifGiven<T>(text: string | undefined, read: (text: string) => T): T | undefined {
  return text === undefined ? undefined : read(text);
}

/** Without the signing secret, which only `--secret` shows. */
function settingsOf(found: Account): string {
  const shown = {
    account_id: found.id,
    name: found.name,
    tier: found.tier,
    webhook_url: found.webhookUrl,
    events: found.eventKinds,
    attempts: found.maxAttempts,
    created_at: found.createdAt,
  };
  return toJson(shown, 2);
}

/** Checked again at each webhook, by the rules of the sandbox that sends it. */
function webhookUrl(given: string): string | null {
  if (given === 'none') return null;
  const fault = urlFault(given, { allowLocal: true });
  if (fault !== undefined) throw new UsageError(`--webhook-url ${fault}`);
  return given;
}

/** From a file and not from the command line, which every user of the machine can read. */
function newSecret(file: string | undefined, isNew = false): string | undefined {
  if (file === undefined) return isNew ? randomBytes(NEW_SECRET_BYTES).toString('base64url') : undefined;
  if (isNew) throw new UsageError('--secret-file and --new-secret exclude each other');
  const secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  const bytes = Buffer.byteLength(secret);
  if (bytes < SECRET_MIN_BYTES || bytes > SECRET_MAX_BYTES) {
    throw new UsageError(`a signing secret has ${SECRET_MIN_BYTES} to ${SECRET_MAX_BYTES} bytes`);
  }
  return secret;
}
