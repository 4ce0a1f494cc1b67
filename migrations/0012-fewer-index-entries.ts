// Fewer index entries and bytes for an event. Frozen once landed: a change to the schema is a new migration.

import { type Kysely, type RawBuilder, sql } from 'kysely';

const NAME = '0012-fewer-index-entries';

/** Whoever writes waits behind the locks. So it gives up soon, and can be run again. */
const LOCK_TIMEOUT = '3s';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(db);
  // The lists of all sources are merged from the parts of events_source and jobs_source. In the order in which writers lock.
  await sql`drop index jobs_time`.execute(db);
  await sql`drop index events_time`.execute(db);
  // From now on body_sha256 is null where the body is kept (ledger/body-hash.ts). Rows from before stay as they are, and are read by
  // the same expression.
  await correctContentHash(db, sql`body_sha256 = coalesce(body_sha256, sha256(body)), body = null`);
  // An older program works. It shows no hash of a new delivery, and a page of all sources takes it longer.
  await sql`insert into schema_requirements values (${NAME}, '0011-publication-batches')`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`delete from schema_requirements where migration = ${NAME}`.execute(db);
  await sql`update deliveries set body_sha256 = sha256(body) where body is not null and body_sha256 is null`.execute(
    db,
  );
  await correctContentHash(db, sql`body = null`);
  await sql`create index events_time on events (recorded_at, sequence)`.execute(db);
  await sql`create index jobs_time on jobs (first_seen_at, source, job_id)`.execute(db);
}

/** As 0003 explains it. `forgetBody`: of a delivery that becomes a duplicate. Whoever may call it still may. */
async function correctContentHash(db: Kysely<unknown>, forgetBody: RawBuilder<unknown>): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  const schema = rows[0]?.schema ?? 'public';
  await sql`
    create or replace function correct_content_hash(event bigint, wrong bytea, correct bytea, conflicts uuid[])
    returns boolean language plpgsql security definer set search_path = pg_catalog, ${sql.id(schema)}, pg_temp as $$
    begin
      update ${sql.id(schema)}.events set content_hash = correct
      where sequence = event and content_hash in (wrong, correct) and exists (
        select from ${sql.id(schema)}.deliveries d
        where d.id = events.delivery_id and d.received_at <= events.recorded_at
          and position('\\x5c'::bytea in d.body) > 0
      );
      if not found then return false; end if;
      update ${sql.id(schema)}.deliveries set outcome = 'duplicate', ${forgetBody}
      where id = any(conflicts) and outcome = 'conflict' and event_sequence = event;
      return true;
    end $$`.execute(db);
}
