create table deliveries (
  id uuid not null,
  received_at timestamp with time zone not null,
  source text not null,
  outcome text not null,
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
  constraint deliveries_outcome_check CHECK ((outcome = ANY (ARRAY['accepted'::text, 'duplicate'::text, 'conflict'::text, 'quarantined'::text, 'malformed'::text, 'unauthorized'::text, 'refused'::text]))),
  constraint deliveries_pkey PRIMARY KEY (id, received_at)
) partition by RANGE (received_at);
CREATE INDEX deliveries_job ON ONLY public.deliveries USING btree (source, job_id, received_at);

create table events (
  sequence bigint not null generated always as identity,
  source text not null,
  job_id text not null,
  status text not null,
  progress_percentage smallint,
  late boolean not null,
  occurred_at timestamp with time zone,
  recorded_at timestamp with time zone not null,
  delivery_id uuid not null,
  content_hash bytea not null,
  repeats integer not null,
  constraint events_check CHECK (((progress_percentage IS NOT NULL) = (status = 'processing'::text))),
  constraint events_dedup_key UNIQUE NULLS NOT DISTINCT (source, job_id, status, progress_percentage),
  constraint events_pkey PRIMARY KEY (sequence),
  constraint events_status_check CHECK ((status = ANY (ARRAY['processing'::text, 'completed'::text, 'failed'::text])))
) with (fillfactor=90);

create table jobs (
  source text not null,
  job_id text not null,
  first_seen_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  highest_progress smallint,
  completed_at timestamp with time zone,
  failed_at timestamp with time zone,
  terminal_at timestamp with time zone generated always as (LEAST(completed_at, failed_at)) stored,
  last_status text not null generated always as (
CASE
    WHEN ((completed_at IS NULL) AND (failed_at IS NULL)) THEN 'processing'::text
    WHEN ((failed_at IS NULL) OR (completed_at > failed_at)) THEN 'completed'::text
    ELSE 'failed'::text
END) stored,
  constraint jobs_pkey PRIMARY KEY (source, job_id)
) with (fillfactor=85);

create table outbox (
  sequence bigint not null,
  source text not null,
  job_id text not null,
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
  constraint outbox_pkey PRIMARY KEY (sequence),
  constraint outbox_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'returned'::text, 'parked'::text])))
) with (fillfactor=90, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=20000);
CREATE INDEX outbox_pending ON public.outbox USING btree (sequence) WHERE (state = 'pending'::text);
CREATE INDEX outbox_troubled ON public.outbox USING btree (source, job_id, sequence) WHERE ((attempts > 0) AND (state <> 'returned'::text));

create table publications (
  published_at timestamp with time zone not null,
  event_sequence bigint not null,
  attempt integer not null,
  result text not null,
  detail text,
  duration_ms integer not null,
  relay_id uuid not null,
  constraint publications_result_check CHECK ((result = ANY (ARRAY['confirmed'::text, 'returned'::text, 'nacked'::text, 'failed'::text])))
) partition by RANGE (published_at);
CREATE INDEX publications_event ON ONLY public.publications USING btree (event_sequence);

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
  constraint relay_lease_pkey PRIMARY KEY (name)
);
