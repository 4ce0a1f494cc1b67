// `tallyhook tokens`: makes, lists and revokes tokens in the database itself, since the API needs a token to make one. The
// operator log names the actor of each change "command line".

import { z } from 'zod';
import { UsageError } from '../../base/errors.ts';
import { createLog } from '../../base/log/log.ts';
import { createLogOutput, writerOf } from '../../base/log/log-output.ts';
import { parseExpiry } from '../../base/time/moments.ts';
import { toUtc } from '../../base/time/utc.ts';
import { type Env, loadTokensConfig } from '../../config.ts';
import { connectDatabase, type DatabaseConnection } from '../../ledger/index.ts';
import { HelpAsked, parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import { withLocalRun } from '../../terminal/environment.ts';
import { type Io, toJson } from '../../terminal/io.ts';
import { option, optionHelp } from '../../terminal/options.ts';
import { type Column, renderTable, terminalWidth } from '../../terminal/table.ts';
import {
  appendToLog,
  canBeLimited,
  isTokenRole,
  type LogEntry,
  listTokens,
  MAX_TOKENS,
  makeToken,
  revokeToken,
  shownToken,
  TOKEN_ROLES,
  type Token,
  tokenName,
} from '../index.ts';
import { nameColumn, textColumn, timeColumn } from '../kernel/list/looks.command.ts';

const TIMEOUT_MS = 10_000;
const COMMAND_LINE = { tokenId: null, name: 'command line', role: 'admin', remoteAddress: null } as const;

const iso = (value: Date | null) => value?.toISOString();
const day = (value: Date | null) => iso(value)?.slice(0, 10);
export const TOKEN_COLUMNS: readonly Column<Token>[] = [
  { head: 'id', text: ({ id }) => id, colour: () => 'dim' },
  nameColumn('name', ({ name }) => name),
  { head: 'role', text: ({ role }) => role },
  textColumn('sources', ({ sources }) => sources?.join(', ') ?? 'all'),
  { head: 'environment', text: ({ environment }) => environment, drop: true },
  timeColumn('last used (UTC)', ({ lastUsedAt }) => iso(lastUsedAt)),
  { ...timeColumn('expires', ({ expiresAt }) => iso(expiresAt)), brief: ({ expiresAt }) => day(expiresAt) },
  {
    ...timeColumn('revoked', ({ revokedAt }) => iso(revokedAt)),
    brief: ({ revokedAt }) => day(revokedAt),
    below: 'last',
    colour: () => 'red',
  },
];

const OPTIONS = {
  name: option('NAME', 'who or what uses it'),
  role: option('ROLE', TOKEN_ROLES.join(', ')),
  source: option('NAMES', 'limit the token to these sources, comma-separated'),
  expires: option('TIME', 'in how long, or a day or a time in UTC: 90d, 2027-01-31, 2027-01-31T12:00:00Z'),
} as const;

const HELP = `Usage: tallyhook tokens create --name NAME --role ROLE [--source NAMES] [--expires TIME]
       tallyhook tokens list
       tallyhook tokens revoke ID

Writes to the database itself (DATABASE_URL), so it needs no token.
${optionHelp(OPTIONS)}
The token's value is printed once, on standard output. It is stored nowhere and cannot be shown again.`;

export const tokens: Command = { help: HELP, run: (args, env, io) => run(args, withLocalRun(env), io) };

/** Exit code 1 if there is no such token to revoke, or too many to make another. @throws UsageError, HelpAsked */
async function run(args: string[], env: Env, io: Io): Promise<number> {
  const [verb, ...rest] = args;
  switch (verb) {
    case 'create':
      return create(rest, env, io);
    case 'list':
      parse(rest, {});
      return withDatabase(env, io, (database) => list(io, database));
    case 'revoke':
      return revoke(rest, env, io);
    case '--help':
    case '-h':
      throw new HelpAsked();
    case undefined:
    default:
      throw new UsageError(
        `tokens takes create, list or revoke${verb === undefined ? '' : `, not "${verb}"`}`,
      );
  }
}

async function create(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, OPTIONS);
  const name = nameOf(values.name);
  const role = values.role ?? '';
  if (!isTokenRole(role)) throw new UsageError(`--role takes one of ${TOKEN_ROLES.join(', ')}`);
  const sources = sourcesOf(values.source);
  if (sources !== null && !canBeLimited(role)) {
    throw new UsageError(`--source is not for a ${role}: metrics are of all sources`);
  }
  const expiresAt = expiryOf(values.expires);
  const { environment } = loadTokensConfig(env);

  return withDatabase(env, io, async ({ db }) => {
    const made = await db.transaction().execute(async (trx) => {
      const wanted = { name, role, environment, sources, expiresAt, createdBy: COMMAND_LINE.name };
      const result = await makeToken(trx, wanted);
      if (result === 'full') return result;
      const { id } = result.token;
      const entry: LogEntry = {
        action: 'token.create',
        subject: id,
        detail: { name, role, sources, expires_at: expiresAt },
      };
      await appendToLog(trx, COMMAND_LINE, entry);
      return result;
    });
    if (made === 'full') {
      io.complain(`there are ${MAX_TOKENS} tokens: revoke some first`);
      return 1;
    }
    if (io.stdout.isTTY) {
      io.say(made.value);
      io.complain(io.paint('dim', `${made.token.id}: this is the only time that its value is shown`));
    } else {
      io.say(toJson({ ...shownToken(made.token), value: made.value }));
    }
    return 0;
  });
}

async function list(io: Io, { db }: DatabaseConnection): Promise<number> {
  const found = await listTokens(db);
  if (!io.stdout.isTTY) {
    for (const token of found) io.say(toJson(shownToken(token)));
    return 0;
  }
  if (found.length === 0) io.complain('there are no tokens');
  else io.say(renderTable(found, TOKEN_COLUMNS, { width: terminalWidth(io), paint: io.paint }));
  return 0;
}

async function revoke(args: string[], env: Env, io: Io): Promise<number> {
  const { positionals } = parse(args, {}, 1);
  const [id] = positionals;
  if (id === undefined) throw new UsageError('tokens revoke takes the id of a token: see "tokens list"');
  return withDatabase(env, io, async ({ db }) => {
    const revoked = await db.transaction().execute(async (trx) => {
      const result = await revokeToken(trx, id);
      if (result?.changed === true) {
        const detail = { name: result.token.name };
        await appendToLog(trx, COMMAND_LINE, { action: 'token.revoke', subject: id, detail });
      }
      return result;
    });
    if (revoked === undefined) {
      io.complain(`there is no token "${id}"`);
      return 1;
    }
    io.say(io.stdout.isTTY ? `${id} is revoked` : toJson(shownToken(revoked.token)));
    return 0;
  });
}

/** @throws UsageError */
function nameOf(text = ''): string {
  const { data, error } = tokenName.safeParse(text);
  if (error === undefined) return data;
  const faults = error.issues.map(({ message }) => message).join(', and ');
  throw new UsageError(`--name ${faults}: say who or what will use the token`);
}

function sourcesOf(text: string | undefined): string[] | null {
  if (text === undefined) return null;
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new UsageError('--source takes names, separated by commas');
  return names;
}

/** A day means its beginning: 2027-01-31 is 2027-01-31T00:00:00Z. `90d` is in so long. */
function expiryOf(text: string | undefined): Date | null {
  if (text === undefined) return null;
  const { data } = z.iso.datetime({ offset: true }).safeParse(parseExpiry(text, Date.now()));
  const utc = data === undefined ? undefined : toUtc(data);
  if (utc === undefined) {
    throw new UsageError(
      '--expires takes a day or a time before the year 10000, or in how long: 2027-01-31, 2027-01-31T12:00:00Z, 90d',
    );
  }
  const expiresAt = new Date(utc);
  if (expiresAt.getTime() <= Date.now()) throw new UsageError('--expires takes a time that is still to come');
  return expiresAt;
}

async function withDatabase<T>(
  env: Env,
  io: Io,
  use: (database: DatabaseConnection) => Promise<T>,
): Promise<T> {
  const database = connectDatabase({
    url: loadTokensConfig(env).databaseUrl,
    name: 'tokens command',
    connections: 1,
    statementTimeoutMs: TIMEOUT_MS,
    lockTimeoutMs: TIMEOUT_MS,
    queryTimeoutMs: TIMEOUT_MS,
    log: createLog({
      level: 'error',
      pretty: false,
      output: createLogOutput(writerOf(io.stdout)),
    }),
  });
  try {
    return await use(database);
  } finally {
    await database.close();
  }
}
