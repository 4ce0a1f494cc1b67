// Sessions of the console in the database. A session stands for a token, which a browser must not keep: it has the token's
// rights, ends with it, and ends by itself when it is idle or old. Its value is in a cookie; rows keep the hash alone.

import { randomBytes } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { Database, DatabaseConnection, Statement } from '../../../ledger/index.ts';
import { type Environment, hashToken } from './token-value.ts';
import { IS_TOKEN_VALID, type Token, type TokenRow, toToken } from './tokens.queries.ts';

/** Without a request for so long, somebody else may sit there. */
export const SESSION_IDLE_MINUTES = 120;
/** A working day. */
export const SESSION_HOURS = 12;
/** Of one token. The oldest one ends when another begins. */
export const SESSIONS_PER_TOKEN_MAX = 20;
export const CODE_MINUTES = 10;
/** Of one token, waiting to be used. */
const CODES_PER_TOKEN_MAX = 20;

const VALUE_BYTES = 32;
const VALUE_FORM = /^[\w-]{43}$/;

export type Session = {
  readonly id: string;
  readonly tokenId: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date;
  readonly expiresAt: Date;
  readonly remoteAddress: string | null;
};

/** Conditions on a row, by the database's clock. */
const IS_OPEN = `(s.ended_at is null and s.expires_at > now()
  and s.last_used_at > now() - interval '${SESSION_IDLE_MINUTES} minutes')`;

/** Undefined for text that is no value of a session or code. */
export function hashOf(value: string | undefined): Buffer | undefined {
  return value !== undefined && VALUE_FORM.test(value) ? hashToken(value) : undefined;
}

/** @returns the value for the cookie, which is stored nowhere, and the session */
export async function beginSession(
  trx: Kysely<Database>,
  { tokenId, remoteAddress }: { tokenId: string; remoteAddress: string | null },
): Promise<{ value: string; id: string }> {
  const value = randomBytes(VALUE_BYTES).toString('base64url');
  const id = `ses_${randomBytes(9).toString('hex')}`;
  // So many rows of a token at most, those that have ended included. Of two that begin at once neither sees the other: then
  // there is one more.
  await sql`
    delete from sessions where id in (
      select s.id from sessions s where s.token_id = ${tokenId}
      order by ${sql.raw(IS_OPEN)} desc, s.created_at desc offset ${SESSIONS_PER_TOKEN_MAX - 1})`.execute(
    trx,
  );
  await trx
    .insertInto('sessions')
    .values({
      id,
      value_hash: hashToken(value),
      token_id: tokenId,
      expires_at: sql<Date>`now() + make_interval(hours => ${SESSION_HOURS})`,
      ended_at: null,
      remote_address: remoteAddress,
    })
    .execute();
  return { value, id };
}

/** By the unique index on value_hash. */
const FIND: Statement = {
  name: 'find session',
  text: `
    select t.*, s.id as session_id, s.last_used_at < now() - interval '1 minute' as is_use_unnoted
    from sessions s join tokens t on t.id = s.token_id
    where s.value_hash = $1 and t.environment = $2 and ${IS_OPEN} and ${IS_TOKEN_VALID}`,
};

/** The open session with this hash, and its token. */
export async function findSession(
  connection: Pick<DatabaseConnection, 'execute'>,
  hash: Buffer,
  environment: Environment,
): Promise<{ id: string; token: Token; isUseUnnoted: boolean } | undefined> {
  const [row] = await connection.execute<TokenRow & { session_id: string; is_use_unnoted: boolean }>(FIND, [
    hash,
    environment,
  ]);
  return row && { id: row.session_id, token: toToken(row), isUseUnnoted: row.is_use_unnoted };
}

/** By the primary key. At most once a minute for a session. */
const NOTE_USE: Statement = {
  name: 'note use of session',
  text: `update sessions set last_used_at = now() where id = $1 and last_used_at < now() - interval '1 minute'`,
};

export async function noteSessionUse(
  connection: Pick<DatabaseConnection, 'execute'>,
  id: string,
): Promise<void> {
  await connection.execute(NOTE_USE, [id]);
}

/** By the primary key. */
const CHECK: Statement = {
  name: 'check session',
  text: `select from sessions s where s.id = $1 and ${IS_OPEN}`,
};

/** Whether a session is still open, without its token: for streams, which last longer than the check of their request. */
export async function isSessionOpen(
  connection: Pick<DatabaseConnection, 'execute'>,
  id: string,
): Promise<boolean> {
  return (await connection.execute(CHECK, [id])).length > 0;
}

/** Open sessions, the newest first. */
export async function listSessions(
  db: Kysely<Database>,
  { limit }: { limit: number },
): Promise<(Session & { readonly tokenName: string })[]> {
  const { rows } = await sql<Session & { tokenName: string }>`
    select s.id, s.token_id as "tokenId", t.name as "tokenName", s.created_at as "createdAt",
      s.last_used_at as "lastUsedAt", s.expires_at as "expiresAt", s.remote_address as "remoteAddress"
    from sessions s join tokens t on t.id = s.token_id
    where ${sql.raw(IS_OPEN)} and ${sql.raw(IS_TOKEN_VALID)}
    order by s.created_at desc, s.id limit ${limit}`.execute(db);
  return rows;
}

/** Idempotent: `changed` is false if it had ended. @returns undefined if there is no such session */
export async function endSession(
  db: Kysely<Database>,
  id: string,
): Promise<{ changed: boolean } | undefined> {
  const { rows } = await sql<{ changed: boolean }>`
    with ended as (
      update sessions set ended_at = now() where id = ${id} and ended_at is null and expires_at > now() returning id
    )
    select exists (select from ended) as changed from sessions where id = ${id}`.execute(db);
  return rows[0];
}

/** @returns the code, which is stored nowhere; 'full' if too many wait */
export async function makeCode(
  trx: Kysely<Database>,
  tokenId: string,
): Promise<{ code: string; expiresAt: Date } | 'full'> {
  await sql`delete from sign_in_codes where token_id = ${tokenId} and expires_at < now()`.execute(trx);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from sign_in_codes where token_id = ${tokenId}`.execute(trx);
  if ((rows[0]?.count ?? 0) >= CODES_PER_TOKEN_MAX) return 'full';
  const code = randomBytes(VALUE_BYTES).toString('base64url');
  const made = await trx
    .insertInto('sign_in_codes')
    .values({
      value_hash: hashToken(code),
      token_id: tokenId,
      expires_at: sql<Date>`now() + make_interval(mins => ${CODE_MINUTES})`,
    })
    .returning('expires_at')
    .executeTakeFirstOrThrow();
  return { code, expiresAt: made.expires_at };
}

/** Uses the code up. @returns its token; undefined if the code is unknown, used or expired, or its token is not valid */
export async function useCode(
  trx: Kysely<Database>,
  hash: Buffer,
  environment: Environment,
): Promise<Token | undefined> {
  const { rows } = await sql<TokenRow>`
    with used as (
      delete from sign_in_codes where value_hash = ${hash} returning token_id, expires_at
    )
    select t.* from used u join tokens t on t.id = u.token_id
    where u.expires_at > now() and t.environment = ${environment} and ${sql.raw(IS_TOKEN_VALID)}`.execute(
    trx,
  );
  return rows[0] && toToken(rows[0]);
}
