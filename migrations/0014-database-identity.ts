// Tells a database that was restored, or that lost transactions in a failover, from the one that gave the last numbers: so that no
// `sequence` is on the bus twice. Frozen once landed: a change to the schema is a new migration.
//
// No single fact tells: a snapshot keeps every identifier, and a promotion raises the timeline and loses nothing. So whatever may be a
// loss counts as one, and the sequence leaves out numbers. It has gaps anyway.

import { type Kysely, sql } from 'kysely';

const NAME = '0014-database-identity';

/**
 * The sequence is raised to as many numbers for each second since 2026 began. So it is above all that was given before, if no more
 * than that were given in a second on average; and 63 bits are enough for 2.9 million years.
 */
const PER_SECOND = 100_000;

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  const home = rows[0]?.schema ?? 'public';
  const safely = sql`set search_path = pg_catalog, ${sql.id(home)}, pg_temp`;

  // What the database was when the sequence was raised last. A dump that is restored brings its own row along.
  await sql`
    create table database_identity (
      is_the_row boolean primary key default true check (is_the_row),
      -- Of the server's files; null where the server keeps it or the timeline to itself.
      system_identifier bigint,
      timeline text,
      database oid not null,
      events oid not null,
      -- When the server was started: no restore goes without it, but for those that make the tables or the database anew.
      started_at timestamptz not null
    ) with (fillfactor = 50)`.execute(db);

  // By functions that every role may call, unless the server's owner has revoked it, or has none of them.
  await sql`
    create function present_identity() returns ${sql.id(home)}.database_identity language plpgsql ${safely} as $$
    declare present ${sql.id(home)}.database_identity;
    begin
      begin
        select c.system_identifier into present.system_identifier from pg_control_system() c;
      exception when others then null;
      end;
      begin
        present.timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
      exception when others then null;
      end;
      present.is_the_row := true;
      present.database := (select oid from pg_database where datname = current_database());
      present.events := ${sql.lit(`${home}.events`)}::regclass::oid;
      present.started_at := pg_postmaster_start_time();
      return present;
    end $$`.execute(db);

  // With the rights of the tables' owner (see 0003), since the service's role may draw numbers and not set them. It can only raise the
  // sequence, and to no number of the caller's choice. Locks the row: of sessions that begin at once, the first one raises, and the
  // others find it done. Returns null if nothing has changed, or else when the newest event that is there was recorded.
  //
  // Older programs draw numbers without asking. So that none of these comes between the reading and the setting of the sequence, it is raised by
  // a second's numbers more.
  await sql`
    create function verify_identity(out has_changed boolean, out newest_at timestamptz) language plpgsql security definer ${safely} as $$
    declare
      former ${sql.id(home)}.database_identity;
      present constant ${sql.id(home)}.database_identity := ${sql.id(home)}.present_identity();
      least bigint := ${sql.lit(PER_SECOND)} * (1 + extract(epoch from clock_timestamp() - timestamptz '2026-01-01 00:00:00+00'));
    begin
      select * into former from ${sql.id(home)}.database_identity for update;
      has_changed := former is distinct from present;
      if not has_changed then return; end if;
      newest_at := (select recorded_at from ${sql.id(home)}.events order by sequence desc limit 1);
      perform setval(${sql.lit(`${home}.events_sequence_seq`)}::regclass, least)
      from ${sql.id(home)}.events_sequence_seq where last_value < least;
      insert into ${sql.id(home)}.database_identity select present.*
      on conflict (is_the_row) do update set
        system_identifier = excluded.system_identifier, timeline = excluded.timeline, database = excluded.database,
        events = excluded.events, started_at = excluded.started_at;
    end $$`.execute(db);
  await sql`revoke all on function present_identity(), verify_identity() from public`.execute(db);
  // Also a new ledger is perhaps not the first one of its subscribers.
  await sql`select from verify_identity()`.execute(db);
  // An older program works, and does not ask.
  await sql`insert into schema_requirements values (${NAME}, '0013-smaller-indexes')`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`delete from schema_requirements where migration = ${NAME}`.execute(db);
  await sql`drop function verify_identity(), present_identity()`.execute(db);
  await sql`drop table database_identity`.execute(db);
}
