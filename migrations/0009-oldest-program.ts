// The oldest program that may run on each migration, from this one on. Frozen once landed: a change to the schema is a new
// migration.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // A program is named by the newest migration that it knows: not each change of the schema has a version of its own. So
  // ('0012-b', '0010-a') says: on 0012-b may run whoever knows 0010-a. Without a row, only who knows the migration itself.
  await sql`
    create table schema_requirements (
      migration text primary key,
      oldest_program text not null
    )`.execute(db);
  // Programs before this one refuse each schema that is newer than they are, and do not read this table.
  await sql`insert into schema_requirements values ('0009-oldest-program', '0009-oldest-program')`.execute(
    db,
  );
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table schema_requirements`.execute(db);
}
