// The proxy that a delivery came through, and which addresses knock most.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Null where the sender connected itself.
  await sql`alter table deliveries add column peer_address text`.execute(db);

  // The busiest addresses of refused deliveries: a bounded number a source and flush, added up in memory before.
  await sql`
    create table refusal_addresses (
      minute timestamptz not null,
      source text collate "C" not null,
      address text collate "C" not null,
      count bigint not null,
      primary key (minute, source, address)
    ) with (fillfactor = 80)`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table refusal_addresses`.execute(db);
  await sql`alter table deliveries drop column peer_address`.execute(db);
}
