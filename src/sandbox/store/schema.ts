// The sandbox's tables, as migrations. A released migration is never edited: append a new one. The database's
// `user_version` is the number of migrations that were applied.

/** Stored in the file's header, so that another program's database is never taken for ours. */
export const APPLICATION_ID = 0x7a11_5b0c;

const ACCOUNTS = `
  create table accounts (
    id text primary key,
    name text not null unique,
    tier text not null check (tier in ('free', 'basic', 'pro', 'enterprise')),
    signing_secret text not null,
    webhook_url text,
    event_kinds text not null, -- separated by spaces
    max_attempts integer not null,
    created_at text not null
  ) strict;

  create table tokens (
    id text primary key,
    account_id text not null references accounts (id) on delete cascade,
    name text not null,
    environment text not null check (environment in ('live', 'test')),
    hash blob not null unique, -- SHA-256: the token itself is nowhere
    scopes text not null, -- separated by spaces
    created_at text not null,
    expires_at text,
    revoked_at text,
    last_used_at text
  ) strict;
  create index tokens_by_account on tokens (account_id);`;

// `sequence` is the order of creation: lists are read and old jobs deleted by it.
const JOBS = `
  create table jobs (
    sequence integer primary key autoincrement,
    account_id text not null references accounts (id),
    starts integer not null default 0, -- how often it began without being given back
    job_id text not null unique,
    status text not null check (status in ('processing', 'completed', 'failed')),
    job_type text not null,
    input_url text not null,
    output_url text not null,
    input_format text not null,
    output_format text not null,
    webhook_url text,
    progress_percentage integer not null,
    created_at text not null,
    estimated_completion text,
    completed_at text,
    failed_at text,
    error_code text,
    error_message text,
    cost_micros integer,
    cost_cents integer,
    processing_time_seconds integer,
    output_size_bytes integer
  ) strict;
  create index jobs_by_account on jobs (account_id, sequence);
  create index jobs_by_status on jobs (account_id, status, sequence);
  create index jobs_under_way on jobs (sequence) where status = 'processing';`;

const NOTICES = `
  create table notices (
    sequence integer primary key autoincrement,
    id text not null unique,
    account_id text not null,
    job_id text not null,
    kind text not null check (kind in ('completed', 'failed', 'progress')),
    url text not null,
    body blob not null,
    created_at text not null,
    state text not null check (state in ('pending', 'delivered', 'given_up')),
    due_at_ms real,
    attempts integer not null default 0
  ) strict;
  create index notices_due on notices (due_at_ms, sequence) where state = 'pending';
  create index notices_by_job on notices (job_id, sequence);
  create index notices_by_account on notices (account_id, sequence);

  create table attempts (
    notice_id text not null references notices (id) on delete cascade,
    attempt integer not null,
    started_at text not null,
    duration_ms real not null,
    http_status integer,
    error text,
    primary key (notice_id, attempt)
  ) strict, without rowid;`;

const WEBHOOK_SETTINGS = `
  alter table accounts add column retry_first_ms integer; -- null in these four: as the sandbox has it
  alter table accounts add column retry_factor real;
  alter table accounts add column retry_max_ms integer;
  alter table accounts add column timeout_ms integer;`;

const SIGN_INS = `
  create table sign_in_codes (
    hash blob primary key, -- SHA-256: the code itself is nowhere
    account_id text not null references accounts (id) on delete cascade,
    expires_at_ms integer not null,
    is_used integer not null default 0
  ) strict;

  create table sessions (
    hash blob primary key, -- of the cookie's value
    account_id text not null references accounts (id) on delete cascade,
    token_id text references tokens (id), -- the token that signed in; null: a code
    created_at_ms integer not null,
    used_at_ms integer not null
  ) strict;

  -- One row: where the sandbox that serves from this file has its dashboard.
  create table dashboard (url text not null) strict;`;

export const MIGRATIONS: readonly string[] = [
  `${ACCOUNTS}\n${JOBS}\n${NOTICES}`,
  `${WEBHOOK_SETTINGS}\n${SIGN_INS}`,
];
