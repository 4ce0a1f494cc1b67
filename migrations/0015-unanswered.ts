// A delivery can be recorded and its answer still not reach its sender: why is kept with the delivery. Frozen once landed: a change
// to the schema is a new migration.

import { type Kysely, sql } from 'kysely';

const NAME = '0015-unanswered';

/** Whoever writes waits behind the lock. So it gives up soon, and can be run again. */
const LOCK_TIMEOUT = '3s';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(db);
  // Without a check of its values, for which all rows would be read. Null for nearly all, so a row takes no more room than before.
  await sql`alter table deliveries add column unanswered text`.execute(db);
  // An older program works, and sets none.
  await sql`insert into schema_requirements values (${NAME}, '0013-smaller-indexes')`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`delete from schema_requirements where migration = ${NAME}`.execute(db);
  await sql`alter table deliveries drop column unanswered`.execute(db);
}
