// `tallyhook sandbox account`: shows and changes the settings of an account, as one does in the service's dashboard.

import { readFileSync } from 'node:fs';
import { UsageError } from '../../base/errors.ts';
import { decimal, FLAG, oneOf, parse, someOf, whole } from '../../terminal/arguments.ts';
import { type Io, toJson } from '../../terminal/io.ts';
import {
  ACCOUNT_RANGES,
  type Account,
  checkWebhookUrl,
  EVENT_KINDS,
  newSigningSecret,
  TIER_NAMES,
} from '../index.ts';
import { ACCOUNT_OPTIONS, withAccount } from './data.ts';
import { SETTING_OPTIONS } from './help.ts';

/** Shorter ones can be guessed from one signed body. */
const SECRET_MIN_BYTES = 16;
const SECRET_MAX_BYTES = 256;

export async function account(args: string[], io: Io): Promise<number> {
  const [command, ...rest] = args;
  if (command === 'show') return show(rest, io);
  if (command === 'set') return set(rest, io);
  parse(args, {}); // --help
  throw new UsageError('sandbox account takes show or set');
}

function show(args: string[], io: Io): number {
  const { values } = parse(args, { ...ACCOUNT_OPTIONS, secret: FLAG });
  return withAccount(values, (accounts, found) => {
    // Byte for byte: a shell variable with this text is used to sign.
    if (values.secret === true) void io.putBytes(`${accounts.signingSecret(found.id)}\n`);
    else io.say(settingsOf(found));
    return 0;
  });
}

function set(args: string[], io: Io): number {
  const { values } = parse(args, { ...ACCOUNT_OPTIONS, ...SETTING_OPTIONS });
  const changes = {
    tier: ifGiven(values.tier, (name) => oneOf('--tier', name, 'free', TIER_NAMES)),
    webhookUrl: ifGiven(values['webhook-url'], webhookUrl),
    eventKinds: ifGiven(values.events, (kinds) =>
      kinds === 'none' ? [] : someOf('--events', kinds, EVENT_KINDS),
    ),
    maxAttempts: ifGiven(values.attempts, (count) =>
      whole('--attempts', count, 1, ACCOUNT_RANGES.maxAttempts),
    ),
    retryFirstMs: ownOrDefault('--retry-first-ms', values['retry-first-ms'], whole, 'retryFirstMs'),
    retryFactor: ownOrDefault('--retry-factor', values['retry-factor'], decimal, 'retryFactor'),
    retryMaxMs: ownOrDefault('--retry-max-ms', values['retry-max-ms'], whole, 'retryMaxMs'),
    timeoutMs: ownOrDefault('--timeout-ms', values['timeout-ms'], whole, 'timeoutMs'),
    signingSecret: newSecret(values['secret-file'], values['new-secret']),
  };
  return withAccount(values, (accounts, found) => {
    io.say(settingsOf(accounts.change(found, changes)));
    return 0;
  });
}

function ifGiven<T>(text: string | undefined, read: (text: string) => T): T | undefined {
  return text === undefined ? undefined : read(text);
}

/** `default` gives back what the sandbox has. */
function ownOrDefault(
  option: string,
  given: string | undefined,
  read: typeof whole,
  name: keyof typeof ACCOUNT_RANGES,
): number | null | undefined {
  if (given === 'default') return null;
  return ifGiven(given, (text) => read(option, text, 0, ACCOUNT_RANGES[name]));
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
    retry_first_ms: found.retryFirstMs,
    retry_factor: found.retryFactor,
    retry_max_ms: found.retryMaxMs,
    timeout_ms: found.timeoutMs,
    created_at: found.createdAt,
  };
  return toJson(shown, 2);
}

function webhookUrl(given: string): string | null {
  return given === 'none' ? null : checkWebhookUrl('--webhook-url', given);
}

/** From a file and not from the command line, which every user of the machine can read. */
function newSecret(file: string | undefined, isNew = false): string | undefined {
  if (file === undefined) return isNew ? newSigningSecret() : undefined;
  if (isNew) throw new UsageError('--secret-file and --new-secret exclude each other');
  const secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  const bytes = Buffer.byteLength(secret);
  if (bytes < SECRET_MIN_BYTES || bytes > SECRET_MAX_BYTES) {
    throw new UsageError(`a signing secret has ${SECRET_MIN_BYTES} to ${SECRET_MAX_BYTES} bytes`);
  }
  return secret;
}
