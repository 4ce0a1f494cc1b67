create sequence publications_id;

CREATE OR REPLACE FUNCTION public.discard_quarantined(ids uuid[], times timestamp with time zone[], who text, why text)
 RETURNS SETOF uuid
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
      with waiting as materialized (
        select d.id, d.received_at
        from unnest(ids, times) as k (id, at)
        join "public".deliveries d on d.id = k.id and d.received_at = k.at
        where d.outcome = 'quarantined' and d.released_at is null and d.discarded_at is null
        for update of d skip locked
      )
      update "public".deliveries d set discarded_at = now(), discarded_by = who, discard_note = why
      from waiting w where d.id = w.id and d.received_at = w.received_at
      returning d.id
    $function$;

CREATE OR REPLACE FUNCTION public.drop_partition(parent text, day date)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    declare 
    home constant text := 'public';
    today constant date := (pg_catalog.now() at time zone 'UTC')::date;
    partition_name constant text := parent || pg_catalog.to_char(day::timestamp, '_YYYYMMDD');
    begin
      if (parent in ('deliveries', 'publications', 'publication_batches') and day < today - 1) is not true then
        raise exception 'no such partition is to be dropped' using errcode = 'invalid_parameter_value';
      end if;
      if not exists (
        select from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = pg_catalog.format('%I.%I', home, parent)::pg_catalog.regclass and c.relname = partition_name
      ) then return null; end if;
      execute pg_catalog.format('drop table %I.%I', home, partition_name);
      return partition_name;
    end $function$;

CREATE OR REPLACE FUNCTION public.make_partition(parent text, day date)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    declare 
    home constant text := 'public';
    today constant date := (pg_catalog.now() at time zone 'UTC')::date;
    partition_name constant text := parent || pg_catalog.to_char(day::timestamp, '_YYYYMMDD');
    begin
      if (parent in ('deliveries', 'publications', 'publication_batches') and day between today - 1 and today + 31) is not true then
        raise exception 'no such partition is to be made' using errcode = 'invalid_parameter_value';
      end if;
      if exists (
        select from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = pg_catalog.format('%I.%I', home, parent)::pg_catalog.regclass and c.relname = partition_name
      ) then return null; end if;
      execute pg_catalog.format('create table %I.%I (like %I.%I including all)', home, partition_name, home, parent);
      execute pg_catalog.format(
        'alter table %I.%I attach partition %I.%I for values from (%L) to (%L)', home, parent, home, partition_name,
        pg_catalog.to_char(day::timestamp, 'YYYY-MM-DD 00:00:00+00'),
        pg_catalog.to_char((day + 1)::timestamp, 'YYYY-MM-DD 00:00:00+00')
      );
      return partition_name;
    end $function$;

CREATE OR REPLACE FUNCTION public.note_promotion()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      update "public".relay_lease set promoted_at = clock_timestamp();
      return null;
    end $function$;

CREATE OR REPLACE FUNCTION public.operator_log_is_append_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ begin raise exception 'operator_log is append-only'; end $function$;

CREATE OR REPLACE FUNCTION public.present_identity()
 RETURNS database_identity
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    declare present "public".database_identity;
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
      present.events := 'public.events'::regclass::oid;
      present.started_at := pg_postmaster_start_time();
      return present;
    end $function$;

CREATE OR REPLACE FUNCTION public.verify_identity(OUT has_changed boolean, OUT newest_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    declare
      former "public".database_identity;
      present constant "public".database_identity := "public".present_identity();
      least bigint := 100000 * (1 + extract(epoch from clock_timestamp() - timestamptz '2026-01-01 00:00:00+00'));
    begin
      select * into former from "public".database_identity for update;
      has_changed := former is distinct from present;
      if not has_changed then return; end if;
      newest_at := (select recorded_at from "public".events order by sequence desc limit 1);
      perform setval('public.events_sequence_seq'::regclass, least)
      from "public".events_sequence_seq where last_value < least;
      insert into "public".database_identity select present.*
      on conflict (is_the_row) do update set
        system_identifier = excluded.system_identifier, timeline = excluded.timeline, database = excluded.database,
        events = excluded.events, started_at = excluded.started_at;
    end $function$;

create table database_identity (
  is_the_row boolean not null default true,
  system_identifier bigint,
  timeline text,
  database oid not null,
  events oid not null,
  started_at timestamp with time zone not null,
  constraint database_identity_is_the_row_check CHECK (is_the_row),
  constraint database_identity_pkey PRIMARY KEY (is_the_row)
) with (fillfactor=50);
CREATE TRIGGER database_identity_promoted AFTER UPDATE ON public.database_identity FOR EACH ROW WHEN (((new.timeline IS NULL) OR ((old.system_identifier IS DISTINCT FROM new.system_identifier) OR (old.timeline IS DISTINCT FROM new.timeline)))) EXECUTE FUNCTION note_promotion();

create table deliveries (
  id uuid not null,
  received_at timestamp with time zone not null,
  source text collate "C" not null,
  outcome text not null,
  http_status smallint not null,
  reason text,
  job_id text collate "C",
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
  error_code text,
  released_at timestamp with time zone,
  peer_address text,
  signed_by text,
  discarded_at timestamp with time zone,
  discarded_by text,
  discard_note text,
  unanswered text,
  constraint deliveries_outcome_check CHECK ((outcome = ANY (ARRAY['accepted'::text, 'duplicate'::text, 'conflict'::text, 'quarantined'::text, 'malformed'::text, 'unauthorized'::text, 'refused'::text]))),
  constraint deliveries_pkey PRIMARY KEY (id, received_at)
) partition by RANGE (received_at);
CREATE INDEX deliveries_discarded ON ONLY public.deliveries USING btree (received_at, id) WHERE ((outcome = 'quarantined'::text) AND (discarded_at IS NOT NULL));
CREATE INDEX deliveries_error ON ONLY public.deliveries USING btree (error_code, received_at) WHERE (error_code IS NOT NULL);
CREATE INDEX deliveries_job ON ONLY public.deliveries USING btree (source, job_id, received_at);
CREATE INDEX deliveries_outcome ON ONLY public.deliveries USING btree (outcome, received_at) WHERE (outcome <> 'accepted'::text);
CREATE INDEX deliveries_quarantine ON ONLY public.deliveries USING btree (received_at, id) WHERE ((outcome = 'quarantined'::text) AND (released_at IS NULL) AND (discarded_at IS NULL));
CREATE INDEX deliveries_released ON ONLY public.deliveries USING btree (event_sequence) WHERE (released_at IS NOT NULL);
CREATE INDEX deliveries_released_time ON ONLY public.deliveries USING btree (received_at, id) WHERE ((outcome = 'quarantined'::text) AND (released_at IS NOT NULL));
CREATE INDEX deliveries_remote ON ONLY public.deliveries USING btree (remote_address, received_at);
CREATE INDEX deliveries_secret ON ONLY public.deliveries USING btree (secret_fingerprint, received_at);
CREATE INDEX deliveries_source ON ONLY public.deliveries USING btree (source, received_at);
CREATE INDEX deliveries_status ON ONLY public.deliveries USING btree (status, received_at) WHERE (status <> ALL (ARRAY['processing'::text, 'completed'::text]));

create table drift (
  source text collate "C" not null,
  kind text not null,
  status text not null,
  name text not null,
  value_type text not null,
  count bigint not null,
  first_seen_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  sample_delivery_id uuid not null,
  constraint drift_kind_check CHECK ((kind = ANY (ARRAY['field'::text, 'status'::text]))),
  constraint drift_pkey PRIMARY KEY (source, kind, status, name)
);

create table events (
  sequence bigint not null generated always as identity,
  source text collate "C" not null,
  job_id text collate "C" not null,
  status text not null,
  progress_percentage smallint,
  late boolean not null,
  occurred_at timestamp with time zone,
  recorded_at timestamp with time zone not null,
  delivery_id uuid not null,
  content_hash bytea not null,
  repeats integer not null,
  error_code text,
  constraint events_check CHECK (((progress_percentage IS NOT NULL) = (status = 'processing'::text))),
  constraint events_dedup_key UNIQUE NULLS NOT DISTINCT (source, job_id, status, progress_percentage),
  constraint events_pkey PRIMARY KEY (sequence),
  constraint events_status_check CHECK ((status = ANY (ARRAY['processing'::text, 'completed'::text, 'failed'::text])))
) with (fillfactor=95);
CREATE INDEX events_error ON public.events USING btree (error_code, recorded_at) WHERE (error_code IS NOT NULL);
CREATE INDEX events_late ON public.events USING btree (recorded_at, sequence) WHERE late;
CREATE INDEX events_source ON public.events USING btree (source, recorded_at);
CREATE INDEX events_status ON public.events USING btree (status, recorded_at) WHERE (status = 'failed'::text);

create table idempotency_keys (
  token_id text not null,
  key text not null,
  request_hash bytea not null,
  http_status smallint,
  answer text,
  created_at timestamp with time zone not null,
  constraint idempotency_keys_pkey PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_keys_time ON public.idempotency_keys USING btree (created_at);

create table incident_messages (
  id uuid not null,
  incident_id uuid not null,
  moment text not null,
  channel text not null,
  due_at timestamp with time zone not null,
  attempts integer not null default 0,
  sent_at timestamp with time zone,
  given_up_at timestamp with time zone,
  last_error text,
  constraint incident_messages_incident_id_fkey FOREIGN KEY (incident_id) REFERENCES incidents(id) ON DELETE CASCADE,
  constraint incident_messages_incident_id_moment_channel_key UNIQUE (incident_id, moment, channel),
  constraint incident_messages_moment_check CHECK ((moment = ANY (ARRAY['begin'::text, 'end'::text]))),
  constraint incident_messages_pkey PRIMARY KEY (id)
);
CREATE INDEX incident_messages_due ON public.incident_messages USING btree (due_at, id) WHERE ((sent_at IS NULL) AND (given_up_at IS NULL));

create table incidents (
  id uuid not null,
  condition text collate "C" not null,
  subject text collate "C" not null default ''::text,
  severity text not null,
  summary text not null,
  began_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  events_waited bigint not null default 0,
  decided_by text[] not null default '{}'::text[],
  constraint incidents_pkey PRIMARY KEY (id),
  constraint incidents_severity_check CHECK ((severity = ANY (ARRAY['warning'::text, 'critical'::text])))
);
CREATE INDEX incidents_time ON public.incidents USING btree (began_at, id);
CREATE UNIQUE INDEX incidents_open ON public.incidents USING btree (condition, subject) WHERE (ended_at IS NULL);

create table jobs (
  source text collate "C" not null,
  job_id text collate "C" not null,
  first_seen_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  highest_progress smallint,
  completed_at timestamp with time zone,
  failed_at timestamp with time zone,
  last_status text not null default 'processing'::text,
  last_writer bigint,
  writer_changed boolean not null default false,
  is_held boolean not null default false,
  hold_version integer not null default 0,
  constraint jobs_pkey PRIMARY KEY (source, job_id)
) with (fillfactor=90);
CREATE INDEX jobs_source ON public.jobs USING btree (source, first_seen_at);
CREATE INDEX jobs_status ON public.jobs USING btree (last_status, first_seen_at) WHERE (last_status <> 'completed'::text);

create table operator_log (
  id bigint not null generated always as identity,
  at timestamp with time zone not null default now(),
  token_id text,
  actor text not null,
  role text not null,
  action text not null,
  source text,
  subject text,
  detail text,
  remote_address text,
  constraint operator_log_pkey PRIMARY KEY (id)
);
CREATE INDEX operator_log_action ON public.operator_log USING btree (action, at, id);
CREATE INDEX operator_log_actor ON public.operator_log USING btree (actor, at, id);
CREATE INDEX operator_log_source ON public.operator_log USING btree (source, at, id);
CREATE INDEX operator_log_subject ON public.operator_log USING btree (subject, at, id);
CREATE INDEX operator_log_time ON public.operator_log USING btree (at, id);
CREATE INDEX operator_log_token ON public.operator_log USING btree (token_id, at, id);
CREATE TRIGGER operator_log_is_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.operator_log FOR EACH STATEMENT EXECUTE FUNCTION operator_log_is_append_only();

create table outbox_batches (
  first bigint not null,
  sequences bigint[] not null,
  bytes integer not null,
  writer bigint,
  number integer,
  recorded_at timestamp with time zone not null default now(),
  xid xid8 not null default pg_current_xact_id(),
  constraint outbox_batches_pkey PRIMARY KEY (first)
) with (fillfactor=90, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=20000);
CREATE INDEX outbox_batches_time ON public.outbox_batches USING btree (recorded_at);
CREATE INDEX outbox_batches_xid ON public.outbox_batches USING btree (xid);

create table outbox_held (
  sequence bigint not null,
  source text collate "C" not null,
  job_id text collate "C" not null,
  status text not null,
  progress_percentage smallint,
  late boolean not null,
  occurred_at text,
  recorded_at timestamp with time zone not null,
  data text,
  state text not null default 'pending'::text,
  attempts integer not null default 0,
  due_at timestamp with time zone not null default now(),
  last_error text,
  body bytea,
  constraint outbox_held_pkey PRIMARY KEY (sequence),
  constraint outbox_held_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'returned'::text, 'parked'::text])))
) with (fillfactor=90, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=20000);
CREATE INDEX outbox_held_bodiless ON public.outbox_held USING btree (recorded_at) WHERE ((data IS NULL) AND (body IS NULL));
CREATE INDEX outbox_held_job ON public.outbox_held USING btree (source, job_id, sequence) WHERE (state <> 'returned'::text);
CREATE INDEX outbox_held_pending ON public.outbox_held USING btree (sequence) WHERE (state = 'pending'::text);
CREATE INDEX outbox_held_waiting ON public.outbox_held USING btree (state, sequence) WHERE (state <> 'pending'::text);

create table outbox_version (
  is_the_row boolean not null default true,
  version bigint not null default 0,
  constraint outbox_version_is_the_row_check CHECK (is_the_row),
  constraint outbox_version_pkey PRIMARY KEY (is_the_row)
) with (fillfactor=50);

create table publication_batches (
  published_at timestamp with time zone not null,
  id bigint not null default nextval('publications_id'::regclass),
  relay_id uuid not null,
  source text collate "C" not null,
  first bigint not null,
  sequences bigint[] not null,
  durations_ms integer[] not null
) partition by RANGE (published_at);
CREATE INDEX publication_batches_first ON ONLY public.publication_batches USING btree (first);
CREATE INDEX publication_batches_source ON ONLY public.publication_batches USING btree (source, published_at, id);
CREATE INDEX publication_batches_time ON ONLY public.publication_batches USING btree (published_at, id);

create table publications (
  published_at timestamp with time zone not null,
  event_sequence bigint not null,
  attempt integer not null,
  result text not null,
  detail text,
  duration_ms integer not null,
  relay_id uuid not null,
  relay_attempt bigint not null,
  id bigint not null default nextval('publications_id'::regclass),
  source text collate "C",
  replay_id uuid,
  queue text,
  constraint publications_result_check CHECK ((result = ANY (ARRAY['confirmed'::text, 'returned'::text, 'nacked'::text, 'failed'::text])))
) partition by RANGE (published_at);
CREATE INDEX publications_event ON ONLY public.publications USING btree (event_sequence);
CREATE INDEX publications_replay ON ONLY public.publications USING btree (replay_id, published_at, id) WHERE (replay_id IS NOT NULL);
CREATE INDEX publications_result ON ONLY public.publications USING btree (result, published_at, id) WHERE (result <> 'confirmed'::text);
CREATE INDEX publications_source ON ONLY public.publications USING btree (source, published_at, id);
CREATE INDEX publications_time ON ONLY public.publications USING btree (published_at, id);

create table refusal_addresses (
  minute timestamp with time zone not null,
  source text collate "C" not null,
  address text collate "C" not null,
  count bigint not null,
  constraint refusal_addresses_pkey PRIMARY KEY (minute, source, address)
) with (fillfactor=80);

create table refusals (
  minute timestamp with time zone not null,
  source text not null,
  unauthorized bigint not null default 0,
  refused bigint not null default 0,
  constraint refusals_pkey PRIMARY KEY (minute, source)
);

create table relay_lease (
  name text not null,
  holder uuid not null,
  epoch bigint not null,
  expires_at timestamp with time zone not null,
  since timestamp with time zone,
  lapsed_at timestamp with time zone,
  memory jsonb,
  promoted_at timestamp with time zone,
  constraint relay_lease_pkey PRIMARY KEY (name)
);

create table replay_copies (
  "position" bigint not null,
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
  recorded_at timestamp with time zone not null,
  data text not null,
  state text not null default 'pending'::text,
  attempts integer not null default 0,
  due_at timestamp with time zone not null default now(),
  last_error text,
  constraint replay_copies_pkey PRIMARY KEY ("position"),
  constraint replay_copies_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'returned'::text])))
) with (fillfactor=90, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=20000);
CREATE INDEX replay_copies_order ON public.replay_copies USING btree (replay_id, "position");
CREATE INDEX replay_copies_troubled ON public.replay_copies USING btree (replay_id, source, job_id, "position") WHERE (attempts > 0);

create table replay_skips (
  replay_id uuid not null,
  event_sequence bigint not null,
  reason text not null,
  at timestamp with time zone not null default now(),
  constraint replay_skips_pkey PRIMARY KEY (replay_id, event_sequence),
  constraint replay_skips_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES replays(id) ON DELETE CASCADE
);
CREATE INDEX replay_skips_event ON public.replay_skips USING btree (event_sequence);

create table replays (
  id uuid not null,
  created_at timestamp with time zone not null,
  created_by text not null,
  note text,
  sources text[],
  selection text not null,
  up_to_sequence bigint not null,
  queue text,
  rate_per_second integer not null,
  state text not null,
  paused_because text,
  matched bigint not null,
  matched_exactly boolean not null default true,
  cursor_sequence bigint not null default 0,
  queued bigint not null default 0,
  confirmed bigint not null default 0,
  returned bigint not null default 0,
  failed bigint not null default 0,
  skipped bigint not null default 0,
  updated_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  constraint replays_pkey PRIMARY KEY (id),
  constraint replays_state_check CHECK ((state = ANY (ARRAY['running'::text, 'paused'::text, 'cancelled'::text, 'finished'::text])))
);
CREATE INDEX replays_state ON public.replays USING btree (created_at, id) WHERE (state = ANY (ARRAY['running'::text, 'paused'::text]));
CREATE INDEX replays_time ON public.replays USING btree (created_at, id);

create table replicas (
  id uuid not null,
  version text not null,
  host text not null,
  started_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  signs jsonb not null default '{}'::jsonb,
  constraint replicas_pkey PRIMARY KEY (id)
) with (fillfactor=50);

create table rollups (
  minute timestamp with time zone not null,
  measure text not null,
  source text collate "C" not null,
  result text not null,
  bucket smallint not null,
  count bigint not null,
  constraint rollups_measure_check CHECK ((measure = ANY (ARRAY['answer'::text, 'lag'::text]))),
  constraint rollups_pkey PRIMARY KEY (minute, measure, source, result, bucket)
) with (fillfactor=80);

create table rollups_hourly (
  hour timestamp with time zone not null,
  measure text not null,
  source text collate "C" not null,
  result text not null,
  bucket smallint not null,
  count bigint not null,
  constraint rollups_hourly_measure_check CHECK ((measure = ANY (ARRAY['answer'::text, 'lag'::text]))),
  constraint rollups_hourly_pkey PRIMARY KEY (hour, measure, source, result, bucket)
);

create table schema_requirements (
  migration text not null,
  oldest_program text not null,
  constraint schema_requirements_pkey PRIMARY KEY (migration)
);

create table secret_matches (
  source text collate "C" not null,
  fingerprint text collate "C" not null,
  last_matched_at timestamp with time zone not null,
  constraint secret_matches_pkey PRIMARY KEY (source, fingerprint)
);

create table sessions (
  id text not null,
  value_hash bytea not null,
  token_id text not null,
  created_at timestamp with time zone not null default now(),
  last_used_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  remote_address text,
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_token_id_fkey FOREIGN KEY (token_id) REFERENCES tokens(id) ON DELETE CASCADE,
  constraint sessions_value_hash_key UNIQUE (value_hash)
);
CREATE INDEX sessions_token ON public.sessions USING btree (token_id, created_at);

create table sign_in_codes (
  value_hash bytea not null,
  token_id text not null,
  expires_at timestamp with time zone not null,
  constraint sign_in_codes_pkey PRIMARY KEY (value_hash),
  constraint sign_in_codes_token_id_fkey FOREIGN KEY (token_id) REFERENCES tokens(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_codes_token ON public.sign_in_codes USING btree (token_id, expires_at);

create table tokens (
  id text not null,
  name text not null,
  environment text not null,
  role text not null,
  sources text[],
  value_hash bytea not null,
  created_at timestamp with time zone not null,
  created_by text not null,
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint tokens_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint tokens_pkey PRIMARY KEY (id),
  constraint tokens_role_check CHECK ((role = ANY (ARRAY['scraper'::text, 'viewer'::text, 'auditor'::text, 'operator'::text, 'admin'::text]))),
  constraint tokens_value_hash_key UNIQUE (value_hash)
);

create table waits (
  minute timestamp with time zone not null,
  pending integer not null,
  returned integer not null,
  parked integer not null,
  quarantined integer not null,
  oldest_pending_s double precision not null,
  constraint waits_pkey PRIMARY KEY (minute)
) with (fillfactor=80);
