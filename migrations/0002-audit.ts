// The operators' side: tokens, the operator log, replays, and what the audit's lists need of the ledger. Frozen
// once landed: a change to the schema is a new migration.
//
// Every index on `deliveries`, `events` and `publications` ends in the order of its list (newest first), so that a
// page costs the same wherever it is; and all but the last column take few values, so that new rows go to few pages.
// What nearly every row has (accepted, completed, confirmed) is in no index but that of time: each index is some 4 us of
// every delivery, and such rows are met at once in the order of the list.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Made anew below, in the whole order of the list: with a sort to add, the planner may read all that a job has.
  await sql`drop index deliveries_job`.execute(db);
  // Names and ids are compared as bytes: it is cheaper, and the indexes that are there already find a prefix.
  for (const table of ['jobs', 'events', 'deliveries', 'outbox']) {
    await sql`
      alter table ${sql.id(table)}
        alter column source type text collate "C", alter column job_id type text collate "C"`.execute(db);
  }

  await sql`
    alter table deliveries
      add column error_code text,
      -- When an operator had a quarantined one understood after all.
      add column released_at timestamptz`.execute(db);
  await sql`alter table events add column error_code text`.execute(db);
  // The answered code stands in the body alone until now. What has no plain one stays without.
  await sql`
    update deliveries set error_code = substring(convert_from(body, 'UTF8') from '"error_code"\\s*:\\s*"([^"\\\\]{1,256})"')
    where outcome in ('accepted', 'conflict') and status = 'failed'`.execute(db);
  await sql`
    update events e set error_code = d.error_code from deliveries d
    where d.event_sequence = e.sequence and d.id = e.delivery_id and d.error_code is not null`.execute(db);

  await sql`create index deliveries_job on deliveries (source, job_id, received_at, id)`.execute(db);
  await sql`create index deliveries_time on deliveries (received_at, id)`.execute(db);
  await sql`create index deliveries_source on deliveries (source, received_at, id)`.execute(db);
  await sql`
    create index deliveries_outcome on deliveries (outcome, received_at, id) where outcome <> 'accepted'`.execute(
    db,
  );
  await sql`
    create index deliveries_status on deliveries (status, received_at, id)
    where status not in ('processing', 'completed')`.execute(db);
  await sql`create index deliveries_secret on deliveries (secret_fingerprint, received_at, id)`.execute(db);
  await sql`create index deliveries_remote on deliveries (remote_address, received_at, id)`.execute(db);
  await sql`
    create index deliveries_error on deliveries (error_code, received_at, id) where error_code is not null`.execute(
    db,
  );
  await sql`
    create index deliveries_quarantine on deliveries (received_at, id)
    where outcome = 'quarantined' and released_at is null`.execute(db);
  // Few rows: the delivery of an event that was released, which its time alone does not find.
  await sql`
    create index deliveries_released on deliveries (event_sequence) where released_at is not null`.execute(
    db,
  );

  // Few rows each.
  await sql`
    create index deliveries_released_time on deliveries (received_at, id)
    where outcome = 'quarantined' and released_at is not null`.execute(db);
  await sql`create index events_late on events (recorded_at, sequence) where late`.execute(db);
  await sql`create index events_time on events (recorded_at, sequence)`.execute(db);
  await sql`create index events_source on events (source, recorded_at, sequence)`.execute(db);
  await sql`
    create index events_status on events (status, recorded_at, sequence) where status = 'failed'`.execute(db);
  await sql`
    create index events_error on events (error_code, recorded_at, sequence) where error_code is not null`.execute(
    db,
  );

  // By when a job was first seen, which never changes: a progress event then touches no index (HOT).
  await sql`create index jobs_time on jobs (first_seen_at, source, job_id)`.execute(db);
  await sql`create index jobs_source on jobs (source, first_seen_at, job_id)`.execute(db);
  await sql`
    create index jobs_status on jobs (last_status, first_seen_at, source, job_id)
    where last_status <> 'completed'`.execute(db);

  await sql`create sequence publications_id`.execute(db);
  await sql`
    alter table publications
      add column id bigint not null default nextval('publications_id'),
      add column source text collate "C",
      -- Both null for what the relay published of its own accord.
      add column replay_id uuid,
      add column queue text`.execute(db);
  await sql`
    update publications p set source = e.source from events e where e.sequence = p.event_sequence`.execute(
    db,
  );
  await sql`create index publications_time on publications (published_at, id)`.execute(db);
  await sql`create index publications_source on publications (source, published_at, id)`.execute(db);
  await sql`
    create index publications_result on publications (result, published_at, id) where result <> 'confirmed'`.execute(
    db,
  );
  await sql`
    create index publications_replay on publications (replay_id, published_at, id) where replay_id is not null`.execute(
    db,
  );

  // A replay's copy of an event is an entry of its own, behind all that its job had in the outbox then.
  await sql`
    alter table outbox
      add column replay_id uuid,
      add column replay_of bigint,
      add column replayed_by text,
      add column queue text,
      add constraint outbox_replay check (num_nonnulls(replay_id, replay_of, replayed_by) in (0, 3)),
      add constraint outbox_queue check (queue is null or replay_id is not null)`.execute(db);
  await sql`create index outbox_replay on outbox (replay_id, sequence) where replay_id is not null`.execute(
    db,
  );
  await sql`create index outbox_waiting on outbox (state, sequence) where state <> 'pending'`.execute(db);
  // Live entries are looked for as if there were no copies.
  await sql`drop index outbox_pending`.execute(db);
  await sql`create index outbox_pending on outbox (sequence) where state = 'pending' and replay_id is null`.execute(
    db,
  );
  // A replay must not hold a job's live events back, and a copy that failed holds back those of its own replay alone.
  await sql`drop index outbox_troubled`.execute(db);
  await sql`
    create index outbox_troubled on outbox (source, job_id, sequence)
    where attempts > 0 and state <> 'returned' and replay_id is null`.execute(db);
  await sql`
    create index outbox_troubled_copies on outbox (replay_id, source, job_id, sequence)
    where attempts > 0 and replay_id is not null`.execute(db);

  // What an operator asked to be published again. The outbox holds a bounded number of its copies at a time.
  await sql`
    create table replays (
      id uuid primary key,
      created_at timestamptz not null,
      -- Names the token, also after it is gone.
      created_by text not null,
      note text,
      -- The sources it may touch; null for all.
      sources text[],
      -- What was asked, as JSON: {"event_ids": [...]} or {"filter": {...}}.
      selection text not null,
      -- Events accepted later are not meant.
      up_to_sequence bigint not null,
      queue text,
      rate_per_second integer not null,
      state text not null check (state in ('running', 'paused', 'cancelled', 'finished')),
      paused_because text,
      matched bigint not null,
      -- False: there are at least as many.
      matched_exactly boolean not null default true,
      cursor_sequence bigint not null default 0,
      queued bigint not null default 0,
      confirmed bigint not null default 0,
      returned bigint not null default 0,
      failed bigint not null default 0,
      skipped bigint not null default 0,
      updated_at timestamptz not null,
      finished_at timestamptz
    )`.execute(db);
  await sql`create index replays_state on replays (created_at, id) where state in ('running', 'paused')`.execute(
    db,
  );
  await sql`create index replays_time on replays (created_at, id)`.execute(db);

  // Events that a replay left out, and why: the first ones of each, the count stands in the replay.
  await sql`
    create table replay_skips (
      replay_id uuid not null references replays on delete cascade,
      event_sequence bigint not null,
      reason text not null,
      at timestamptz not null default now(),
      primary key (replay_id, event_sequence)
    )`.execute(db);
  await sql`create index replay_skips_event on replay_skips (event_sequence)`.execute(db);

  // Who may ask. The value is shown once and kept as its SHA-256.
  await sql`
    create table tokens (
      id text primary key,
      name text not null,
      environment text not null check (environment in ('live', 'test')),
      role text not null check (role in ('scraper', 'viewer', 'auditor', 'operator', 'admin')),
      sources text[],
      value_hash bytea not null unique,
      created_at timestamptz not null,
      created_by text not null,
      expires_at timestamptz,
      last_used_at timestamptz,
      revoked_at timestamptz
    )`.execute(db);

  // What operators did and looked at. Nobody may change it, not even we.
  await sql`
    create table operator_log (
      id bigint generated always as identity primary key,
      at timestamptz not null default now(),
      token_id text,
      actor text not null,
      role text not null,
      action text not null,
      source text,
      subject text,
      detail text,
      remote_address text
    )`.execute(db);
  await sql`create index operator_log_time on operator_log (at, id)`.execute(db);
  await sql`create index operator_log_actor on operator_log (actor, at, id)`.execute(db);
  await sql`create index operator_log_token on operator_log (token_id, at, id)`.execute(db);
  await sql`create index operator_log_action on operator_log (action, at, id)`.execute(db);
  await sql`create index operator_log_subject on operator_log (subject, at, id)`.execute(db);
  await sql`create index operator_log_source on operator_log (source, at, id)`.execute(db);
  await sql`
    create function operator_log_is_append_only() returns trigger language plpgsql as
    $$ begin raise exception 'operator_log is append-only'; end $$`.execute(db);
  await sql`
    create trigger operator_log_is_append_only before update or delete or truncate on operator_log
    for each statement execute function operator_log_is_append_only()`.execute(db);

  // The answers that repeated requests get again.
  await sql`
    create table idempotency_keys (
      token_id text not null,
      key text not null,
      request_hash bytea not null,
      http_status smallint,
      answer text,
      created_at timestamptz not null,
      primary key (token_id, key)
    )`.execute(db);
  await sql`create index idempotency_keys_time on idempotency_keys (created_at)`.execute(db);

  // Counts for statistics, one row a minute, source, result and bucket of time; added up in memory before.
  await sql`
    create table rollups (
      minute timestamptz not null,
      measure text not null check (measure in ('answer', 'lag')),
      source text collate "C" not null,
      result text not null,
      bucket smallint not null,
      count bigint not null,
      primary key (minute, measure, source, result, bucket)
    ) with (fillfactor = 80)`.execute(db);
  // The same of two days ago and before, by the hour: a year of minutes would be too many to add up for an answer.
  await sql`
    create table rollups_hourly (
      hour timestamptz not null,
      measure text not null check (measure in ('answer', 'lag')),
      source text collate "C" not null,
      result text not null,
      bucket smallint not null,
      count bigint not null,
      primary key (hour, measure, source, result, bucket)
    )`.execute(db);

  // Fields and statuses that authentic bodies had and our schemas do not know.
  await sql`
    create table drift (
      source text collate "C" not null,
      kind text not null check (kind in ('field', 'status')),
      status text not null,
      name text not null,
      value_type text not null,
      count bigint not null,
      first_seen_at timestamptz not null,
      last_seen_at timestamptz not null,
      sample_delivery_id uuid not null,
      primary key (source, kind, status, name)
    )`.execute(db);

  // Kept beyond the deliveries: when did the old secret match last?
  await sql`
    create table secret_matches (
      source text collate "C" not null,
      fingerprint text collate "C" not null,
      last_matched_at timestamptz not null,
      primary key (source, fingerprint)
    )`.execute(db);
  await sql`
    insert into secret_matches (source, fingerprint, last_matched_at)
    select source, secret_fingerprint, max(received_at) from deliveries
    where secret_fingerprint is not null group by source, secret_fingerprint`.execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table secret_matches, drift, rollups_hourly, rollups, idempotency_keys, operator_log, tokens, replay_skips, replays`.execute(
    db,
  );
  await sql`drop function operator_log_is_append_only()`.execute(db);
  await sql`delete from outbox where replay_id is not null`.execute(db);
  await sql`
    alter table outbox drop column replay_id, drop column replay_of, drop column replayed_by, drop column queue`.execute(
    db,
  );
  await sql`drop index outbox_waiting`.execute(db);
  await sql`create index outbox_pending on outbox (sequence) where state = 'pending'`.execute(db);
  await sql`
    create index outbox_troubled on outbox (source, job_id, sequence)
    where attempts > 0 and state <> 'returned'`.execute(db);
  await sql`drop index publications_time`.execute(db);
  await sql`
    alter table publications drop column id, drop column source, drop column replay_id, drop column queue`.execute(
    db,
  );
  await sql`drop sequence publications_id`.execute(db);
  await sql`drop index jobs_time, jobs_source, jobs_status, events_time, events_source, events_status, events_late`.execute(
    db,
  );
  await sql`alter table events drop column error_code`.execute(db);
  await sql`
    drop index deliveries_job, deliveries_time, deliveries_source, deliveries_outcome, deliveries_status,
      deliveries_secret, deliveries_remote`.execute(db);
  await sql`create index deliveries_job on deliveries (source, job_id, received_at)`.execute(db);
  await sql`alter table deliveries drop column error_code, drop column released_at`.execute(db);
  for (const table of ['jobs', 'events', 'deliveries', 'outbox']) {
    await sql`
      alter table ${sql.id(table)}
        alter column source type text collate "default", alter column job_id type text collate "default"`.execute(
      db,
    );
  }
}
