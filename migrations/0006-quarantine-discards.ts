// Deliveries in quarantine can be discarded: who did it, when and why is kept with the delivery. Frozen once landed: a change
// to the schema is a new migration.

import { type Kysely, sql } from 'kysely';

/**
 * The new columns lock the table against all, and whoever comes after this migration waits behind it. So it gives up soon
 * where a long statement holds the table, and can be run again.
 */
const LOCK_TIMEOUT = '3s';

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  const schema = rows[0]?.schema ?? 'public';
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(db);
  await sql`
    alter table deliveries
      add column discarded_at timestamptz,
      -- Names the token, also after it is gone.
      add column discarded_by text,
      add column discard_note text`.execute(db);

  // What waits for an operator, without what was discarded. Few rows each, but each is built by a
  // scan of all deliveries, and readers and writers wait for that.
  await sql`drop index deliveries_quarantine`.execute(db);
  await sql`
    create index deliveries_quarantine on deliveries (received_at, id)
    where outcome = 'quarantined' and released_at is null and discarded_at is null`.execute(db);
  await sql`
    create index deliveries_discarded on deliveries (received_at, id)
    where outcome = 'quarantined' and discarded_at is not null`.execute(db);

  // With the rights of the tables' owner (see 0003): the service's role may discard what waits, and can neither take a
  // discard back nor change who did it and why. Takes the primary keys. Deliveries that another transaction has locked are
  // left alone: of a discard and a release at once, one wins.
  await sql`
    create function discard_quarantined(ids uuid[], times timestamptz[], who text, why text) returns setof uuid
    language sql security definer set search_path = pg_catalog, ${sql.id(schema)}, pg_temp as $$
      with waiting as materialized (
        select d.id, d.received_at
        from unnest(ids, times) as k (id, at)
        join ${sql.id(schema)}.deliveries d on d.id = k.id and d.received_at = k.at
        where d.outcome = 'quarantined' and d.released_at is null and d.discarded_at is null
        for update of d skip locked
      )
      update ${sql.id(schema)}.deliveries d set discarded_at = now(), discarded_by = who, discard_note = why
      from waiting w where d.id = w.id and d.received_at = w.received_at
      returning d.id
    $$`.execute(db);
  await sql`revoke all on function discard_quarantined(uuid[], timestamptz[], text, text) from public`.execute(
    db,
  );
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop function discard_quarantined(uuid[], timestamptz[], text, text)`.execute(db);
  await sql`drop index deliveries_discarded, deliveries_quarantine`.execute(db);
  await sql`
    alter table deliveries drop column discarded_at, drop column discarded_by, drop column discard_note`.execute(
    db,
  );
  await sql`
    create index deliveries_quarantine on deliveries (received_at, id)
    where outcome = 'quarantined' and released_at is null`.execute(db);
}
