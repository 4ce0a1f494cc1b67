// The running replicas: which program each one is, and when it was last heard of. Frozen once landed: a change to the schema is
// a new migration.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // No index but the primary key: a heartbeat then changes none, and the table has some hundred rows at most.
  await sql`
    create table replicas (
      id uuid primary key,
      version text not null,
      host text not null,
      started_at timestamptz not null,
      seen_at timestamptz not null
    ) with (fillfactor = 50)`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table replicas`.execute(db);
}
