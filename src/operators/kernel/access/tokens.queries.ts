// The tokens of the operators' API in the database: makes, lists, finds and revokes them. A token's value is returned
// once, when the token is made; rows keep its hash alone. Callers check the permission to do so, not this file.

import { randomBytes } from 'node:crypto';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { Database, DatabaseConnection, Statement } from '../../../ledger/index.ts';
import { MAX_TOKENS } from '../../tokens/contract.ts';
import type { TokenRole } from './roles.ts';
import { type Environment, hashToken, isSameHash, newTokenValue } from './token-value.ts';

export type Token = {
  readonly id: string;
  readonly name: string;
  readonly environment: Environment;
  readonly role: TokenRole;
  /** The sources that it is limited to; null for all. */
  readonly sources: readonly string[] | null;
  readonly createdAt: Date;
  readonly createdBy: string;
  readonly expiresAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
};

export type NewToken = {
  readonly name: string;
  readonly role: TokenRole;
  readonly environment: Environment;
  readonly sources: readonly string[] | null;
  readonly expiresAt: Date | null;
  readonly createdBy: string;
};

/** Invalid tokens are deleted after this time, so that they do not use up MAX_TOKENS. The operator log keeps their history. */
const INVALID_KEPT_DAYS = 90;

/** The key of an advisory lock, unique in this project. Tokens are made one after the other, or MAX_TOKENS could be exceeded. */
const CREATE_LOCK = 7_461_195;

/** Conditions on a row, by the database's clock: replicas' clocks may differ. */
const IS_VALID = '(revoked_at is null and (expires_at is null or expires_at > now()))';
/** The same of a row that a statement calls `t`. */
export const IS_TOKEN_VALID = '(t.revoked_at is null and (t.expires_at is null or t.expires_at > now()))';
const IS_USE_UNNOTED = "(last_used_at is null or last_used_at < now() - interval '1 minute')";

/** In the caller's transaction. @returns 'full' if there are MAX_TOKENS. */
export async function makeToken(
  trx: Kysely<Database>,
  { sources, ...wanted }: NewToken,
): Promise<{ token: Token; value: string } | 'full'> {
  await sql`select pg_advisory_xact_lock(${CREATE_LOCK})`.execute(trx);
  const longAgo = sql<Date>`now() - make_interval(days => ${INVALID_KEPT_DAYS})`;
  await trx
    .deleteFrom('tokens')
    .where((token) => token.or([token('revoked_at', '<', longAgo), token('expires_at', '<', longAgo)]))
    .execute();
  const { count } = await trx
    .selectFrom('tokens')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_TOKENS) return 'full';
  const value = newTokenValue(wanted.environment);
  const row = await trx
    .insertInto('tokens')
    .values({
      id: `tok_${randomBytes(9).toString('hex')}`,
      name: wanted.name,
      role: wanted.role,
      environment: wanted.environment,
      sources: withoutRepeats(sources),
      value_hash: hashToken(value),
      created_at: sql<Date>`now()`,
      created_by: wanted.createdBy,
      expires_at: wanted.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { token: toToken(row), value };
}

/** All tokens, newest first. */
export async function listTokens(db: Kysely<Database>): Promise<Token[]> {
  const rows = await db
    .selectFrom('tokens')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(MAX_TOKENS)
    .execute();
  return rows.map(toToken);
}

/** Idempotent: `changed` is false if it was revoked before. @returns undefined if there is no such token. */
export async function revokeToken(
  db: Kysely<Database>,
  id: string,
): Promise<{ token: Token; changed: boolean } | undefined> {
  const revoked = await db
    .updateTable('tokens')
    .set({ revoked_at: sql<Date>`now()` })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  if (revoked !== undefined) return { token: toToken(revoked), changed: true };
  const found = await db.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirst();
  return found === undefined ? undefined : { token: toToken(found), changed: false };
}

export type TokenRow = Selectable<Database['tokens']>;

/** By the unique index on value_hash. */
const FIND: Statement = {
  name: 'find token',
  text: `
    select *, ${IS_VALID} as is_valid, ${IS_USE_UNNOTED} as is_use_unnoted from tokens where value_hash = $1`,
};

/** The valid token with this hash. */
export async function findToken(
  connection: Pick<DatabaseConnection, 'execute'>,
  hash: Buffer,
): Promise<{ token: Token; isUseUnnoted: boolean } | undefined> {
  const [row] = await connection.execute<TokenRow & { is_valid: boolean; is_use_unnoted: boolean }>(FIND, [
    hash,
  ]);
  if (row === undefined || !isSameHash(row.value_hash, hash) || !row.is_valid) return undefined;
  return { token: toToken(row), isUseUnnoted: row.is_use_unnoted };
}

/** Scans the whole table: it has MAX_TOKENS rows at most. */
const READ_VALID: Statement = {
  name: 'valid tokens',
  text: `select * from tokens where environment = $1 and ${IS_VALID} order by created_at desc limit ${MAX_TOKENS}`,
};

/** All valid tokens of an environment, with their hashes. */
export async function readValidTokens(
  connection: Pick<DatabaseConnection, 'execute'>,
  environment: Environment,
): Promise<{ hash: Buffer; token: Token }[]> {
  const rows = await connection.execute<TokenRow>(READ_VALID, [environment]);
  return rows.map((row) => ({ hash: row.value_hash, token: toToken(row) }));
}

/** By the primary key. */
const CHECK: Statement = {
  name: 'check token',
  text: `select from tokens where id = $1 and ${IS_VALID}`,
};

/** Whether a token that was found before is still valid: for streams, which last longer than the check of their request. */
export async function isTokenValid(
  connection: Pick<DatabaseConnection, 'execute'>,
  id: string,
): Promise<boolean> {
  return (await connection.execute(CHECK, [id])).length > 0;
}

/** At most once a minute for a token: noting each use would update the row of a busy token all the time. */
const NOTE_USE: Statement = {
  name: 'note use of token',
  text: `update tokens set last_used_at = now() where id = $1 and ${IS_USE_UNNOTED}`,
};

export async function noteUse(connection: Pick<DatabaseConnection, 'execute'>, id: string): Promise<void> {
  await connection.execute(NOTE_USE, [id]);
}

/** Reads query one source after the other, so a source named twice would show its rows twice. */
function withoutRepeats(sources: readonly string[] | null): string[] | null {
  return sources === null ? null : [...new Set(sources)];
}

export function toToken(row: TokenRow): Token {
  return {
    id: row.id,
    name: row.name,
    environment: row.environment,
    role: row.role,
    sources: withoutRepeats(row.sources),
    createdAt: row.created_at,
    createdBy: row.created_by,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  };
}

/** As the API and the command line show it: without its value, and times in RFC 3339. */
export function shownToken(token: Token) {
  return {
    id: token.id,
    name: token.name,
    environment: token.environment,
    role: token.role,
    sources: token.sources,
    created_at: token.createdAt.toISOString(),
    created_by: token.createdBy,
    expires_at: token.expiresAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    revoked_at: token.revokedAt?.toISOString() ?? null,
  };
}
