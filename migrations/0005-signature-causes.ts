// Why a signature failed: the other source whose secret signed an unauthorized delivery. Apart from the reason, since only
// those may see it who see both sources.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table deliveries add column signed_by text`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table deliveries drop column signed_by`.execute(db);
}
