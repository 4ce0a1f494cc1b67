// `tallyhook sandbox tokens` and `account`: what one does in the service's dashboard. They write into the data file,
// beside a sandbox that runs from it, which sees it with the next request.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { UsageError } from '../errors.ts';
import {
  type Account,
  type Accounts,
  createAccounts,
  EVENT_KINDS,
  TIER_NAMES,
  SCOPES,
  urlFault,
  IN_MEMORY,
  openStore,
} from '../sandbox/index.ts';
import { oneOf, parse, someOf, whole } from './arguments.ts';
import { complain, paint, putBytes, say, toJson } from './output.ts';
import { DEFAULT_ACCOUNT, dataFile } from './sandbox-help.ts';

const NAME_MAX_LENGTH = 100;
const ATTEMPTS_MAX = 20;
/** Shorter ones can be guessed from one signed body. */
const SECRET_MIN_BYTES = 16;
const SECRET_MAX_BYTES = 256;
const NEW_SECRET_BYTES = 32;

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const WHERE = { data: text, account: text } as const;
type Where = { readonly data?: string | undefined; readonly account?: string | undefined };

export async function tokens(args: string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === 'create') return createToken(rest);
  if (command === 'list') return listTokens(rest);
  if (command === 'revoke') return revokeToken(rest);
  parse(args, {}, 0); // --help
  throw new UsageError('sandbox tokens takes create, list or revoke');
}

export async function account(args: string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === 'show') return showAccount(rest);
  if (command === 'set') return setAccount(rest);
  parse(args, {}, 0);
  throw new UsageError('sandbox account takes show or set');
}

/** The value alone on standard output, so that it can be taken into a variable. */
function createToken(args: string[]): number {
  const options = { ...WHERE, name: text, test: flag, scopes: text, expires: text } as const;
  const { values } = parse(args, options);
  const { name = '', test, scopes, expires } = values;
  if (!isName(name)) throw new UsageError(`--name takes 1 to ${NAME_MAX_LENGTH} printable characters`);
  const order = {
    name,
    environment: test === true ? 'test' : 'live',
    scopes: scopes === undefined ? SCOPES : someOf('--scopes', scopes, SCOPES),
    expiresAt: expires === undefined ? null : expiry(expires),
  } as const;
  return withAccount(values, (accounts, owner) => {
    const { token, value } = accounts.createToken({ account: owner, ...order });
    complain(`token ${token.id} for ${token.scopes.join(', ')}; it is shown only this once:`);
    say(value);
    return 0;
  });
}

function listTokens(args: string[]): number {
  const { values } = parse(args, WHERE);
  return withAccount(values, (accounts, owner) => {
    const found = accounts.tokens(owner.id);
    for (const token of found) {
      const { id, environment, name, scopes, expiresAt, revokedAt, lastUsedAt } = token;
      const state = revokedAt !== null ? 'revoked' : isPast(expiresAt) ? 'expired' : 'valid';
      const line = `${paint(state === 'valid' ? 'green' : 'red', state.padEnd(7))}  ${environment}  ${id}  ${name}`;
      const detail = `${scopes.join(' ')}  last used ${lastUsedAt ?? 'never'}`;
      say(process.stdout.isTTY ? `${line}  ${paint('dim', detail)}` : toJson({ ...token, state }));
    }
    if (found.length === 0) complain(`the account ${owner.name} has no tokens`);
    return 0;
  });
}

function revokeToken(args: string[]): number {
  const { values, positionals } = parse(args, WHERE, 1);
  const [id] = positionals;
  if (id === undefined)
    throw new UsageError('sandbox tokens revoke takes the id of a token: see tokens list');
  return withAccount(values, (accounts) => {
    const isRevoked = accounts.revokeToken(id);
    complain(isRevoked ? `${id} is revoked` : `there is no valid token ${id}`);
    return isRevoked ? 0 : 1;
  });
}

function showAccount(args: string[]): number {
  const { values } = parse(args, { ...WHERE, secret: flag });
  return withAccount(values, (accounts, owner) => {
    // Whoever takes it into a variable signs with it: byte for byte.
    if (values.secret === true) void putBytes(`${accounts.signingSecret(owner.id)}\n`);
    else say(shown(owner));
    return 0;
  });
}

function setAccount(args: string[]): number {
  const options = {
    ...WHERE,
    tier: text,
    'webhook-url': text,
    events: text,
    attempts: text,
    'secret-file': text,
    'new-secret': flag,
  } as const;
  const { values } = parse(args, options);
  const { tier, events, attempts } = values;
  const changes = {
    tier: tier === undefined ? undefined : oneOf('--tier', tier, 'free', TIER_NAMES),
    webhookUrl: values['webhook-url'] === undefined ? undefined : webhookUrl(values['webhook-url']),
    eventKinds:
      events === undefined ? undefined : events === 'none' ? [] : someOf('--events', events, EVENT_KINDS),
    maxAttempts:
      attempts === undefined ? undefined : whole('--attempts', attempts, 1, { min: 1, max: ATTEMPTS_MAX }),
    signingSecret: newSecret(values['secret-file'], values['new-secret']),
  };
  return withAccount(values, (accounts, owner) => {
    say(shown(accounts.change(owner, changes)));
    return 0;
  });
}

function withAccount(
  { data: given, account: name = DEFAULT_ACCOUNT }: Where,
  use: (accounts: Accounts, owner: Account) => number,
): number {
  const data = dataFile(given);
  if (data === IN_MEMORY) throw new UsageError('--data takes a file here: memory is not shared');
  if (!isName(name)) throw new UsageError(`--account takes 1 to ${NAME_MAX_LENGTH} printable characters`);
  const store = openStore(data);
  try {
    const accounts = createAccounts({ store: store.accounts, now: () => Date.now() });
    return use(accounts, accounts.open(name));
  } finally {
    store.close();
  }
}

/** Without the signing secret: that is shown to those who ask for it by name. */
function shown(owner: Account): string {
  return toJson(
    {
      account_id: owner.id,
      name: owner.name,
      tier: owner.tier,
      webhook_url: owner.webhookUrl,
      events: owner.eventKinds,
      attempts: owner.maxAttempts,
      created_at: owner.createdAt,
    },
    2,
  );
}

function isName(name: string): boolean {
  return name.length > 0 && name.length <= NAME_MAX_LENGTH && !/\p{C}/u.test(name);
}

/** The address is judged again, by the rules of the sandbox that sends to it. */
function webhookUrl(given: string): string | null {
  if (given === 'none') return null;
  const fault = urlFault(given, { allowLocal: true });
  if (fault !== undefined) throw new UsageError(`--webhook-url ${fault}`);
  return given;
}

function expiry(given: string): string {
  const isTime = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.test(given);
  const ms = isTime ? Date.parse(given) : Number.NaN;
  // Date takes the 31st of February for the 3rd of March.
  const [day = ''] = given.split('T');
  const isDay = !Number.isNaN(ms) && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
  if (!isDay) throw new UsageError('--expires takes a time in ISO 8601, such as 2027-01-31T12:00:00Z');
  if (ms <= Date.now()) throw new UsageError('--expires takes a time that is still to come');
  return new Date(ms).toISOString();
}

function isPast(time: string | null): boolean {
  return time !== null && Date.parse(time) <= Date.now();
}

/** From a file and not from the command line, which every user of the machine can read. */
function newSecret(file: string | undefined, isNew: boolean | undefined): string | undefined {
  if (file === undefined) {
    return isNew === true ? randomBytes(NEW_SECRET_BYTES).toString('base64url') : undefined;
  }
  if (isNew === true) throw new UsageError('--secret-file and --new-secret exclude each other');
  const secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  const bytes = Buffer.byteLength(secret);
  if (bytes < SECRET_MIN_BYTES || bytes > SECRET_MAX_BYTES) {
    throw new UsageError(`a signing secret has ${SECRET_MIN_BYTES} to ${SECRET_MAX_BYTES} bytes`);
  }
  return secret;
}
