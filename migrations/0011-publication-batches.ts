// Confirmed first attempts, which are nearly all publications, as one row for many of them. Frozen once landed: a change to the
// schema is a new migration.

import { type Kysely, sql } from 'kysely';

const NAME = '0011-publication-batches';

/** The functions of 0003, which make and drop the days of these tables. */
const PARENTS = ['deliveries', 'publications'];

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table publication_batches (
      published_at timestamptz not null,
      -- The id of its first publication; the others count up from it.
      id bigint not null default nextval('publications_id'),
      relay_id uuid not null,
      source text collate "C" not null,
      -- The lowest of sequences.
      first bigint not null,
      -- Of the events, ascending. All have the same sequence / 1,024: so there are at most 1,024 of them, and an event is found
      -- among few rows.
      sequences bigint[] not null,
      durations_ms integer[] not null
    ) partition by range (published_at)`.execute(db);
  await sql`create index publication_batches_time on publication_batches (published_at, id)`.execute(db);
  await sql`create index publication_batches_source on publication_batches (source, published_at, id)`.execute(
    db,
  );
  await sql`create index publication_batches_first on publication_batches (first)`.execute(db);
  // Each row has as many ids as it may have publications. A cursor between two of them belongs to one row.
  await sql`alter sequence publications_id increment by 1024`.execute(db);
  await partition(db, [...PARENTS, 'publication_batches']);
  // An older program would not show what the table has.
  await sql`insert into schema_requirements values (${NAME}, ${NAME})`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`delete from schema_requirements where migration = ${NAME}`.execute(db);
  await sql`
    insert into publications (published_at, id, event_sequence, attempt, result, duration_ms, relay_id, source)
    select published_at, id + place - 1, sequence, 1, 'confirmed', duration_ms, relay_id, source
    from publication_batches,
         unnest(sequences, durations_ms) with ordinality as u (sequence, duration_ms, place)`.execute(db);
  await sql`drop table publication_batches`.execute(db);
  await sql`alter sequence publications_id increment by 1`.execute(db);
  await partition(db, PARENTS);
}

/** As 0003 explains them. Whoever may call them still may. */
async function partition(db: Kysely<unknown>, parents: readonly string[]): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  const schema = rows[0]?.schema ?? 'public';
  const safely = sql`security definer set search_path = pg_catalog, ${sql.id(schema)}, pg_temp`;
  const isOurs = sql`parent in (${sql.join(parents.map((parent) => sql.lit(parent)))})`;
  const names = sql`
    home constant text := ${sql.lit(schema)};
    today constant date := (pg_catalog.now() at time zone 'UTC')::date;
    partition_name constant text := parent || pg_catalog.to_char(day::timestamp, '_YYYYMMDD');`;
  const isThere = sql`exists (
        select from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = pg_catalog.format('%I.%I', home, parent)::pg_catalog.regclass and c.relname = partition_name
      )`;
  await sql`
    create or replace function make_partition(parent text, day date) returns text language plpgsql ${safely} as $$
    declare ${names}
    begin
      if (${isOurs} and day between today - 1 and today + 31) is not true then
        raise exception 'no such partition is to be made' using errcode = 'invalid_parameter_value';
      end if;
      if ${isThere} then return null; end if;
      execute pg_catalog.format('create table %I.%I (like %I.%I including all)', home, partition_name, home, parent);
      execute pg_catalog.format(
        'alter table %I.%I attach partition %I.%I for values from (%L) to (%L)', home, parent, home, partition_name,
        pg_catalog.to_char(day::timestamp, 'YYYY-MM-DD 00:00:00+00'),
        pg_catalog.to_char((day + 1)::timestamp, 'YYYY-MM-DD 00:00:00+00')
      );
      return partition_name;
    end $$`.execute(db);
  await sql`
    create or replace function drop_partition(parent text, day date) returns text language plpgsql ${safely} as $$
    declare ${names}
    begin
      if (${isOurs} and day < today - 1) is not true then
        raise exception 'no such partition is to be dropped' using errcode = 'invalid_parameter_value';
      end if;
      if not ${isThere} then return null; end if;
      execute pg_catalog.format('drop table %I.%I', home, partition_name);
      return partition_name;
    end $$`.execute(db);
}
