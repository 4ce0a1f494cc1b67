// Sessions of the console, and the codes that begin one. Frozen once landed: a change to the schema is a new migration.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // A session ends with its token: it has no rights of its own. The value stands in a cookie, and here as its SHA-256.
  await sql`
    create table sessions (
      id text primary key,
      value_hash bytea not null unique,
      token_id text not null references tokens on delete cascade,
      created_at timestamptz not null default now(),
      last_used_at timestamptz not null default now(),
      expires_at timestamptz not null,
      ended_at timestamptz,
      remote_address text
    )`.execute(db);
  await sql`create index sessions_token on sessions (token_id, created_at)`.execute(db);

  // Each begins one session. A used code is deleted.
  await sql`
    create table sign_in_codes (
      value_hash bytea primary key,
      token_id text not null references tokens on delete cascade,
      expires_at timestamptz not null
    )`.execute(db);
  await sql`create index sign_in_codes_token on sign_in_codes (token_id, expires_at)`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table sign_in_codes, sessions`.execute(db);
}
