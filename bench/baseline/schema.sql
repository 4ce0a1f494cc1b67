-- What the handler of the baseline keeps: one row a webhook, unique by what it tells.
create table webhook_events (
  id bigint generated always as identity primary key,
  event_key text not null unique,
  job_id text not null,
  status text not null,
  body bytea not null,
  received_at timestamptz not null default now(),
  published_at timestamptz
);
