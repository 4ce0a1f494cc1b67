// What the service may do to tables that it does not own, by functions that run with the rights of whoever owns them: upkeep
// of the daily partitions, and the correction of a hash. So its own role need not own anything. Frozen once landed: a change
// to the schema is a new migration.
//
// Whoever may call them must not gain more by it: upkeep takes one of two parents and a day, never a name, and the
// search_path is fixed, with pg_temp last. Every table and function in them is named with its schema all the same.

import { type Kysely, sql } from 'kysely';

const FUNCTIONS =
  'make_partition(text, date), drop_partition(text, date), correct_content_hash(bigint, bytea, bytea, uuid[])';

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  const schema = rows[0]?.schema ?? 'public';
  const safely = sql`security definer set search_path = pg_catalog, ${sql.id(schema)}, pg_temp`;
  const names = sql`
    home constant text := ${sql.lit(schema)};
    today constant date := (pg_catalog.now() at time zone 'UTC')::date;
    partition_name constant text := parent || pg_catalog.to_char(day::timestamp, '_YYYYMMDD');`;
  const isThere = sql`exists (
        select from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = pg_catalog.format('%I.%I', home, parent)::pg_catalog.regclass and c.relname = partition_name
      )`;

  // From yesterday to a month ahead: nobody fills the disk with empty tables. ATTACH locks the parent only against other
  // changes of its form; CREATE … PARTITION OF would stop writers.
  await sql`
    create function make_partition(parent text, day date) returns text language plpgsql ${safely} as $$
    declare ${names}
    begin
      if (parent in ('deliveries', 'publications') and day between today - 1 and today + 31) is not true then
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

  // Never what the shortest RETENTION_DAYS, one, would keep. Locks the parent against all: alone in its transaction.
  await sql`
    create function drop_partition(parent text, day date) returns text language plpgsql ${safely} as $$
    declare ${names}
    begin
      if (parent in ('deliveries', 'publications') and day < today - 1) is not true then
        raise exception 'no such partition is to be dropped' using errcode = 'invalid_parameter_value';
      end if;
      if not ${isThere} then return null; end if;
      execute pg_catalog.format('drop table %I.%I', home, partition_name);
      return partition_name;
    end $$`.execute(db);

  // An event whose hash was made from mangled keys, and the deliveries that conflict with it only for that: they become
  // the duplicates that they are, which keep no body. A key can have been mangled only where the body that the event came
  // by holds a backslash. A hash that is neither of the two has been corrected otherwise.
  await sql`
    create function correct_content_hash(event bigint, wrong bytea, correct bytea, conflicts uuid[]) returns boolean
    language plpgsql ${safely} as $$
    begin
      update ${sql.id(schema)}.events set content_hash = correct
      where sequence = event and content_hash in (wrong, correct) and exists (
        select from ${sql.id(schema)}.deliveries d
        where d.id = events.delivery_id and d.received_at <= events.recorded_at
          and position('\\x5c'::bytea in d.body) > 0
      );
      if not found then return false; end if;
      update ${sql.id(schema)}.deliveries set outcome = 'duplicate', body = null
      where id = any(conflicts) and outcome = 'conflict' and event_sequence = event;
      return true;
    end $$`.execute(db);

  await sql`revoke all on function ${sql.raw(FUNCTIONS)} from public`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop function ${sql.raw(FUNCTIONS)}`.execute(db);
}
