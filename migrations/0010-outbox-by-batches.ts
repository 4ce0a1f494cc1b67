// The outbox by batches: one row for all events of a write that are still to be published, one table for the events that need
// more than that, and one for replays' copies. Frozen once landed: a change to the schema is a new migration.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';

/** Whoever writes waits behind the locks. So it gives up soon, and can be run again. */
const LOCK_TIMEOUT = '3s';

/** As long as the longest lease that a program can be given. */
const LEASE_MAX_MS = 60_000;

export async function up(db: Kysely<unknown>): Promise<void> {
  await awaitLeader(db);
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(db);
  // Old programs write no more from here on: they wait, and then there is no `outbox`. They lock `jobs` before it, so we do, too.
  await sql`lock table jobs in access exclusive mode`.execute(db);
  await sql`lock table outbox in access exclusive mode`.execute(db);
  await moveCopies(db);
  await holdWhatWaits(db);

  await sql`
    create table outbox_batches (
      -- Its lowest sequence when it was written; it stays when events leave the batch.
      first bigint primary key,
      -- Of the events that are still to be published, ascending.
      sequences bigint[] not null,
      -- Of these events' bodies, about.
      bytes integer not null,
      -- Who wrote it, and its number among the batches of this writer. Null: an operator, who released quarantined deliveries.
      writer bigint,
      number integer,
      recorded_at timestamptz not null default now(),
      xid xid8 not null default pg_current_xact_id()
    ) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
            autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000)`.execute(db);
  // What a load has not seen yet was written by a transaction that had not ended then (relay/pending.ts).
  await sql`create index outbox_batches_xid on outbox_batches (xid)`.execute(db);
  // A batch and its events have the same time, so that the batch of an event is found by it.
  await sql`create index outbox_batches_time on outbox_batches (recorded_at)`.execute(db);

  // One row. It changes when an operator takes an event out of a batch: the leader then forgets what waits in its memory.
  await sql`
    create table outbox_version (
      is_the_row boolean primary key default true check (is_the_row),
      version bigint not null default 0
    ) with (fillfactor = 50)`.execute(db);
  await sql`insert into outbox_version default values`.execute(db);

  await sql`
    insert into schema_requirements values ('0010-outbox-by-batches', '0010-outbox-by-batches')`.execute(db);
}

/**
 * Waits until no older program leads the relay. Its row is locked, so nobody renews the lease; and once it has expired by the
 * database's clock, its holder has stopped by its own. Programs from now on have a lease of another name: an older one that
 * takes this one finds no outbox, and publishes nothing.
 */
async function awaitLeader(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ leftMs: number }>`
    select extract(epoch from expires_at - clock_timestamp())::float8 * 1000 as "leftMs"
    from relay_lease where name = 'relay' for update`.execute(db);
  const leftMs = Math.ceil(rows[0]?.leftMs ?? 0);
  if (leftMs > 0) await sleep(Math.min(leftMs, LEASE_MAX_MS));
}

async function moveCopies(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table replay_copies (
      -- Drawn from the events' sequence under the lock of the job: the copy stands behind all that the job has by then.
      position bigint primary key,
      replay_id uuid not null,
      replay_of bigint not null,
      replayed_by text not null,
      queue text,
      source text collate "C" not null,
      job_id text collate "C" not null,
      status text not null,
      progress_percentage smallint,
      late boolean not null,
      occurred_at text,
      recorded_at timestamptz not null,
      data text not null,
      state text not null default 'pending' check (state in ('pending', 'returned')),
      attempts integer not null default 0,
      due_at timestamptz not null default now(),
      last_error text
    ) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
            autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000)`.execute(db);
  await sql`
    with copies as (delete from outbox where replay_id is not null returning *)
    insert into replay_copies (
      position, replay_id, replay_of, replayed_by, queue, source, job_id, status, progress_percentage, late, occurred_at,
      recorded_at, data, state, attempts, due_at, last_error
    )
    select sequence, replay_id, replay_of, replayed_by, queue, source, job_id, status, progress_percentage, late, occurred_at,
           recorded_at, data, state, attempts, due_at, last_error
    from copies`.execute(db);
  await sql`create index replay_copies_order on replay_copies (replay_id, position)`.execute(db);
  await sql`
    create index replay_copies_troubled on replay_copies (replay_id, source, job_id, position)
    where attempts > 0`.execute(db);
}

/** All live entries of the old outbox become held ones, with their states, attempts and data. No row is written for that. */
async function holdWhatWaits(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table jobs
      -- Who wrote its last delivery, and whether the one before was another.
      add column last_writer bigint,
      add column writer_changed boolean not null default false,
      -- 0: none of its events is held. Otherwise a number that changes with each delivery, so that nobody who has seen the
      -- last held event leave can set it to 0 when another has come since.
      add column hold integer not null default 0`.execute(db);
  await sql`drop index outbox_pending, outbox_replay, outbox_troubled, outbox_troubled_copies, outbox_waiting`.execute(
    db,
  );
  await sql`alter table outbox rename to outbox_held`.execute(db);
  await sql`alter index outbox_pkey rename to outbox_held_pkey`.execute(db);
  await sql`alter table outbox_held rename constraint outbox_state_check to outbox_held_state_check`.execute(
    db,
  );
  await sql`
    alter table outbox_held
      drop column replay_id, drop column replay_of, drop column replayed_by, drop column queue,
      -- Null: it is read from the body of the event's delivery.
      alter column data drop not null,
      -- Of an event that is not understood any more when the day of its delivery is dropped.
      add column body bytea`.execute(db);
  await sql`create index outbox_held_pending on outbox_held (sequence) where state = 'pending'`.execute(db);
  await sql`
    create index outbox_held_job on outbox_held (source, job_id, sequence) where state <> 'returned'`.execute(
    db,
  );
  // Before a day of deliveries is dropped, those that need its bodies are found.
  await sql`
    create index outbox_held_bodiless on outbox_held (recorded_at) where data is null and body is null`.execute(
    db,
  );
  await sql`create index outbox_held_waiting on outbox_held (state, sequence) where state <> 'pending'`.execute(
    db,
  );
  await sql`
    update jobs j set hold = 1
    from (select distinct source, job_id from outbox_held where state <> 'returned') h
    where j.source = h.source and j.job_id = h.job_id`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`delete from schema_requirements where migration = '0010-outbox-by-batches'`.execute(db);
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(db);
  const { rows } = await sql<{ some: boolean }>`
    select exists (select from outbox_batches) or exists (select from outbox_held where data is null) as some`.execute(
    db,
  );
  if (rows[0]?.some) throw new Error('events are still to be published: let the relay publish them first');
  await sql`drop table outbox_batches, outbox_version`.execute(db);
  await sql`drop index outbox_held_pending, outbox_held_job, outbox_held_bodiless, outbox_held_waiting`.execute(
    db,
  );
  await sql`alter table outbox_held rename to outbox`.execute(db);
  await sql`alter index outbox_held_pkey rename to outbox_pkey`.execute(db);
  await sql`alter table outbox rename constraint outbox_held_state_check to outbox_state_check`.execute(db);
  await sql`
    alter table outbox
      alter column data set not null, drop column body,
      add column replay_id uuid, add column replay_of bigint, add column replayed_by text, add column queue text,
      add constraint outbox_replay check (num_nonnulls(replay_id, replay_of, replayed_by) in (0, 3)),
      add constraint outbox_queue check (queue is null or replay_id is not null)`.execute(db);
  await sql`
    insert into outbox (
      sequence, replay_id, replay_of, replayed_by, queue, source, job_id, status, progress_percentage, late, occurred_at,
      recorded_at, data, state, attempts, due_at, last_error
    )
    select position, replay_id, replay_of, replayed_by, queue, source, job_id, status, progress_percentage, late, occurred_at,
           recorded_at, data, state, attempts, due_at, last_error
    from replay_copies`.execute(db);
  await sql`drop table replay_copies`.execute(db);
  await sql`create index outbox_replay on outbox (replay_id, sequence) where replay_id is not null`.execute(
    db,
  );
  await sql`create index outbox_waiting on outbox (state, sequence) where state <> 'pending'`.execute(db);
  await sql`create index outbox_pending on outbox (sequence) where state = 'pending' and replay_id is null`.execute(
    db,
  );
  await sql`
    create index outbox_troubled on outbox (source, job_id, sequence)
    where attempts > 0 and state <> 'returned' and replay_id is null`.execute(db);
  await sql`
    create index outbox_troubled_copies on outbox (replay_id, source, job_id, sequence)
    where attempts > 0 and replay_id is not null`.execute(db);
  await sql`alter table jobs drop column last_writer, drop column writer_changed, drop column hold`.execute(
    db,
  );
}
