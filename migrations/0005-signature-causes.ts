// Why a signature failed: the other source whose secret signed an unauthorized delivery. Apart from the reason, since only
// those may see it who see both sources.

import { type Kysely, sql } from 'kysely';

/** A new column locks the table. If a long statement holds it, the migration gives up soon and can be run again. */
const LOCK_TIMEOUT = '3s';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(db);
  await sql`alter table deliveries add column signed_by text`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table deliveries drop column signed_by`.execute(db);
}
