// What a cluster of Postgres needs: when another server was promoted. A lease may be older there than the one that the former server
// gave out last, so nobody takes it for as long as a lease lasts. It only adds, so programs that know the first release alone run on it as before.

import { type Kysely, sql } from 'kysely';

const NAME = '0003-clusters';
const OLDEST_PROGRAM = '0001-first-release';

type Db = Kysely<unknown>;

export async function up(db: Db): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  const home = rows[0]?.schema ?? 'public';
  // The locks on both tables wait for statements of some milliseconds. An attempt on the lease waits for them.
  await sql`set local lock_timeout = '3s'`.execute(db);
  await sql`alter table relay_lease add column promoted_at timestamptz`.execute(db);
  await sql`comment on column relay_lease.promoted_at is 'When another server, or another timeline of it, was first seen'`.execute(
    db,
  );
  // It runs within verify_identity(), with its rights.
  await sql`
    create function note_promotion() returns trigger language plpgsql
    set search_path = pg_catalog, ${sql.id(home)}, pg_temp as $$
    begin
      update ${sql.id(home)}.relay_lease set promoted_at = clock_timestamp();
      return null;
    end $$`.execute(db);
  await sql`revoke all on function note_promotion() from public`.execute(db);
  // A server that keeps its timeline to itself may have been promoted each time that it was started.
  await sql`
    create trigger database_identity_promoted after update on database_identity for each row
    when (new.timeline is null
      or (old.system_identifier, old.timeline) is distinct from (new.system_identifier, new.timeline))
    execute function note_promotion()`.execute(db);
  await sql`insert into schema_requirements values (${NAME}, ${OLDEST_PROGRAM})`.execute(db);
}

export async function down(db: Db): Promise<void> {
  await sql`drop trigger database_identity_promoted on database_identity`.execute(db);
  await sql`drop function note_promotion()`.execute(db);
  await sql`alter table relay_lease drop column promoted_at`.execute(db);
  await sql`delete from schema_requirements where migration = ${NAME}`.execute(db);
}
