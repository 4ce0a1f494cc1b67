// The first schema: the ledger (events, jobs, deliveries, publications, refusals), the outbox and the lease.
// Frozen once landed: a change to the schema is a new migration.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // One row a job, for timelines, for `late`, and to find jobs that never ended. Its row lock is also what
  // gives a job's events one order: the ledger takes it before it takes a sequence number.
  await sql`
    create table jobs (
      source text not null,
      job_id text not null,
      first_seen_at timestamptz not null,
      last_seen_at timestamptz not null,
      highest_progress smallint,
      completed_at timestamptz,
      failed_at timestamptz,
      terminal_at timestamptz generated always as (least(completed_at, failed_at)) stored,
      last_status text not null generated always as (
        case
          when completed_at is null and failed_at is null then 'processing'
          when failed_at is null or completed_at > failed_at then 'completed'
          else 'failed'
        end
      ) stored,
      primary key (source, job_id)
    ) with (fillfactor = 85)`.execute(db);

  // The dedup ledger: slim, not partitioned (a unique key cannot span time partitions), kept for good.
  await sql`
    create table events (
      sequence bigint generated always as identity primary key,
      source text not null,
      job_id text not null,
      status text not null check (status in ('processing', 'completed', 'failed')),
      progress_percentage smallint check ((progress_percentage is not null) = (status = 'processing')),
      late boolean not null,
      occurred_at timestamptz,
      recorded_at timestamptz not null,
      delivery_id uuid not null,
      content_hash bytea not null,
      repeats integer not null,
      constraint events_dedup_key unique nulls not distinct (source, job_id, status, progress_percentage)
    ) with (fillfactor = 90)`.execute(db);

  // The audit record of every request, with the body where the design keeps it. Partitioned by day, so that
  // old bodies go by dropping a table. No DEFAULT partition: it would make every new one scan it.
  await sql`
    create table deliveries (
      id uuid not null,
      received_at timestamptz not null,
      source text not null,
      outcome text not null check (
        outcome in ('accepted', 'duplicate', 'conflict', 'quarantined', 'malformed', 'unauthorized', 'refused')
      ),
      http_status smallint not null,
      reason text,
      job_id text,
      status text,
      progress_percentage smallint,
      event_sequence bigint,
      path text not null,
      remote_address text,
      headers text not null,
      secret_fingerprint text,
      body_bytes integer,
      body_sha256 bytea,
      body bytea,
      primary key (id, received_at)
    ) partition by range (received_at)`.execute(db);
  await sql`create index deliveries_job on deliveries (source, job_id, received_at)`.execute(db);

  // One row a publish attempt of the relay.
  await sql`
    create table publications (
      published_at timestamptz not null,
      event_sequence bigint not null,
      attempt integer not null,
      result text not null check (result in ('confirmed', 'returned', 'nacked', 'failed')),
      detail text,
      duration_ms integer not null,
      relay_id uuid not null
    ) partition by range (published_at)`.execute(db);
  await sql`create index publications_event on publications (event_sequence)`.execute(db);

  // Refused and unauthorized deliveries past the rate at which each gets a row of its own.
  await sql`
    create table refusals (
      minute timestamptz not null,
      source text not null,
      unauthorized bigint not null default 0,
      refused bigint not null default 0,
      primary key (minute, source)
    )`.execute(db);

  // Events still to be published. Rows come and go, so it is vacuumed by count and not by share.
  await sql`
    create table outbox (
      sequence bigint primary key,
      source text not null,
      job_id text not null,
      status text not null,
      progress_percentage smallint,
      late boolean not null,
      occurred_at text,
      recorded_at timestamptz not null,
      data text not null,
      state text not null default 'pending' check (state in ('pending', 'returned', 'parked')),
      attempts integer not null default 0,
      due_at timestamptz not null default now(),
      last_error text
    ) with (
      fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
      autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000
    )`.execute(db);
  await sql`create index outbox_pending on outbox (sequence) where state = 'pending'`.execute(db);
  // Few rows: those that failed at least once. Later events of their jobs wait behind them.
  await sql`
    create index outbox_troubled on outbox (source, job_id, sequence)
    where attempts > 0 and state <> 'returned'`.execute(db);

  // Who leads. Times are the database's, never a replica's.
  await sql`
    create table relay_lease (
      name text primary key,
      holder uuid not null,
      epoch bigint not null,
      expires_at timestamptz not null
    )`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table relay_lease, outbox, refusals, publications, deliveries, events, jobs`.execute(db);
}
