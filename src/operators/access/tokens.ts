// The tokens that open the operators' side: made, listed, found and revoked. A token's value leaves here once, when it
// is made; rows keep its hash. Nobody's right to do so is checked here.

import { randomBytes } from 'node:crypto';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { DatabaseConnection, Statement, Database } from '../../ledger/index.ts';
import { MAX_TOKENS } from '../contract/tokens.ts';
import type { TokenRole } from './roles.ts';
import { type Environment, hashToken, isSameHash, newTokenValue } from './token-value.ts';

export type Token = {
  readonly id: string;
  readonly name: string;
  readonly environment: Environment;
  readonly role: TokenRole;
  /** Null for all. */
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

/** Who did what with a token stands in the operator log for good; the row of one long dead is in the way. */
const DEAD_KEPT_DAYS = 90;

/** Any constant of ours will do: those who make tokens at once take turns, so that the limit holds. */
const MAKING_LOCK = 7_461_195;

/** Makes one, in the caller's transaction. @returns 'full' with MAX_TOKENS there. */
export async function makeToken(
  trx: Kysely<Database>,
  { sources, ...wanted }: NewToken,
): Promise<{ token: Token; value: string } | 'full'> {
  await sql`select pg_advisory_xact_lock(${MAKING_LOCK})`.execute(trx);
  const longAgo = sql<Date>`now() - make_interval(days => ${DEAD_KEPT_DAYS})`;
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
      sources: eachOnce(sources),
      value_hash: hashToken(value),
      created_at: sql<Date>`now()`,
      created_by: wanted.createdBy,
      expires_at: wanted.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { token: toToken(row), value };
}

/** All there are, newest first. */
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

/** Idempotent: `changed` is false for one that was revoked before. @returns undefined if there is none. */
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

type Row = Selectable<Database['tokens']>;

/** By the unique index on value_hash. Whether it still holds is told by the database's clock. */
const FIND: Statement = {
  name: 'token',
  text: `
    select *, (revoked_at is null and (expires_at is null or expires_at > now())) as holds,
      (last_used_at is null or last_used_at < now() - interval '1 minute') as use_is_news
    from tokens where value_hash = $1`,
};

export async function findToken(
  connection: Pick<DatabaseConnection, 'execute'>,
  hash: Buffer,
): Promise<{ token: Token; useIsNews: boolean } | undefined> {
  const [row] = await connection.execute<Row & { holds: boolean; use_is_news: boolean }>(FIND, [hash]);
  if (row === undefined || !isSameHash(row.value_hash, hash) || !row.holds) return undefined;
  return { token: toToken(row), useIsNews: row.use_is_news };
}

/** The whole table, which has MAX_TOKENS rows at most. Told by the database's clock, as above. */
const HOLDING: Statement = {
  name: 'tokens that hold',
  text: `
    select * from tokens
    where environment = $1 and revoked_at is null and (expires_at is null or expires_at > now())
    order by created_at desc
    limit ${MAX_TOKENS}`,
};

/** All tokens of an environment that open anything now, with their hashes. */
export async function readHoldingTokens(
  connection: Pick<DatabaseConnection, 'execute'>,
  environment: Environment,
): Promise<{ hash: Buffer; token: Token }[]> {
  const rows = await connection.execute<Row>(HOLDING, [environment]);
  return rows.map((row) => ({ hash: row.value_hash, token: toToken(row) }));
}

/** By the primary key. Told by the database's clock, as above. */
const HOLDS: Statement = {
  name: 'token holds',
  text: 'select from tokens where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())',
};

/** Whether a token that was found before still opens anything: for what goes on longer than a request. */
export async function tokenHolds(
  connection: Pick<DatabaseConnection, 'execute'>,
  id: string,
): Promise<boolean> {
  return (await connection.execute(HOLDS, [id])).length > 0;
}

/** At most once a minute a token, whoever asks: a busy one would be a row that never rests. */
const NOTE_USE: Statement = {
  name: 'token used',
  text: `
    update tokens set last_used_at = now()
    where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
};

export async function noteUse(connection: Pick<DatabaseConnection, 'execute'>, id: string): Promise<void> {
  await connection.execute(NOTE_USE, [id]);
}

/** A source named twice would show each of its rows twice: reads go from source to source. */
function eachOnce(sources: readonly string[] | null): string[] | null {
  return sources === null ? null : [...new Set(sources)];
}

function toToken(row: Row): Token {
  return {
    id: row.id,
    name: row.name,
    environment: row.environment,
    role: row.role,
    sources: eachOnce(row.sources),
    createdAt: row.created_at,
    createdBy: row.created_by,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  };
}
