// The schema of the first release. Frozen once released: a change to it is a new migration, which states the oldest program that may
// run on it, limits its waits for locks, and builds what takes long ahead (src/ledger/migrations.ts). `migrations/schema.sql` is what
// all migrations give.
//
// Every index on `deliveries`, `events` and `publications` is in the order of its list, so that a page costs the same wherever it is.
// What nearly every row has (accepted, completed, confirmed) is in no index but that of its source: each index is some 4 µs of every
// delivery, and such rows are met at once in the order of the list. Rows of a write have one time, so most indexes leave out
// what only orders them: Postgres then keeps one copy of their key and a list of their places.

import { type Kysely, sql } from 'kysely';

const NAME = '0001-first-release';

/** The sequence is above all that was ever given, if no more than so many numbers were given in a second since 2026 began. */
const PER_SECOND = 100_000;

/** Publications of a batch count up from its id. */
const IDS_OF_A_BATCH = 1_024;

/** Rows come and go: vacuumed by count and not by share. */
const PASSING = sql`fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000`;

type Db = Kysely<unknown>;

export async function up(db: Db): Promise<void> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  const home = rows[0]?.schema ?? 'public';
  await makeRequirements(db);
  await makeLedger(db);
  await makeOutbox(db);
  await makePublications(db);
  await makeReplays(db);
  await makeAccess(db);
  await makeStatistics(db);
  await makeReplicas(db);
  await makeUpkeep(db, home);
  await makeDecisions(db, home);
  await makeIdentity(db, home);
}

export async function down(db: Db): Promise<void> {
  await sql`
    drop function verify_identity(), present_identity(), make_partition(text, date), drop_partition(text, date),
      discard_quarantined(uuid[], timestamptz[], text, text)`.execute(db);
  await sql`
    drop table database_identity, replicas, relay_lease, secret_matches, drift, rollups_hourly, rollups, refusal_addresses, refusals,
      idempotency_keys, operator_log, sign_in_codes, sessions, tokens, replay_copies, replay_skips, replays, publication_batches,
      publications, outbox_version, outbox_held, outbox_batches, deliveries, events, jobs, schema_requirements`.execute(
    db,
  );
  await sql`drop function operator_log_is_append_only()`.execute(db);
  await sql`drop sequence publications_id`.execute(db);
}

async function makeRequirements(db: Db): Promise<void> {
  await sql`
    create table schema_requirements (
      migration text primary key,
      oldest_program text not null
    )`.execute(db);
  await describe(db, 'schema_requirements', 'The oldest program that may run on each migration', {
    oldest_program: 'A program is named by the newest migration that it knows',
  });
  await sql`insert into schema_requirements values (${NAME}, ${NAME})`.execute(db);
}

async function makeLedger(db: Db): Promise<void> {
  await sql`
    create table jobs (
      source text collate "C" not null,
      job_id text collate "C" not null,
      first_seen_at timestamptz not null,
      last_seen_at timestamptz not null,
      highest_progress smallint,
      completed_at timestamptz,
      failed_at timestamptz,
      last_status text not null default 'processing',
      last_writer bigint,
      writer_changed boolean not null default false,
      is_held boolean not null default false,
      hold_version integer not null default 0,
      primary key (source, job_id)
    ) with (fillfactor = 90)`.execute(db);
  await describe(
    db,
    'jobs',
    'One row a job. Its lock gives the events of a job one order: it is taken before a sequence number is',
    {
      completed_at: 'When it was first told that it was completed; failed_at likewise',
      last_status:
        'Which of its ends was told last for the first time; processing before any. Not generated: Postgres would parse the expression anew for each delivery',
      last_writer: 'Who wrote its last delivery',
      writer_changed: 'Whether the one before was another',
      is_held: 'Later events wait behind one that is held',
      hold_version:
        'Grows with each hold, and with each delivery meanwhile, so that who saw the last held event leave ends the hold only if none has come since',
    },
  );
  // By when a job was first seen, which never changes: a progress event then touches no index (HOT).
  await sql`create index jobs_source on jobs (source, first_seen_at)`.execute(db);
  await sql`create index jobs_status on jobs (last_status, first_seen_at) where last_status <> 'completed'`.execute(
    db,
  );

  await sql`
    create table events (
      sequence bigint generated always as identity primary key,
      source text collate "C" not null,
      job_id text collate "C" not null,
      status text not null check (status in ('processing', 'completed', 'failed')),
      progress_percentage smallint check ((progress_percentage is not null) = (status = 'processing')),
      late boolean not null,
      occurred_at timestamptz,
      recorded_at timestamptz not null,
      delivery_id uuid not null,
      content_hash bytea not null,
      repeats integer not null,
      error_code text,
      constraint events_dedup_key unique nulls not distinct (source, job_id, status, progress_percentage)
    ) with (fillfactor = 95)`.execute(db);
  await describe(
    db,
    'events',
    'The dedup ledger. Slim and not partitioned, since a unique key cannot span partitions; kept for good',
    {
      sequence: 'The order in which events were accepted; it has gaps',
      delivery_id: 'The delivery that told it first',
      content_hash: 'SHA-256 of the canonical content: a repeat with another is a conflict',
      repeats: 'Deliveries that told it again, with the same content or another',
    },
  );
  await sql`create index events_source on events (source, recorded_at)`.execute(db);
  await sql`create index events_status on events (status, recorded_at) where status = 'failed'`.execute(db);
  await sql`create index events_error on events (error_code, recorded_at) where error_code is not null`.execute(
    db,
  );
  await sql`create index events_late on events (recorded_at, sequence) where late`.execute(db);
  await makeDeliveries(db);
}

async function makeDeliveries(db: Db): Promise<void> {
  // By day, so that old bodies go by dropping a table. No DEFAULT partition: every new one would make Postgres scan it.
  await sql`
    create table deliveries (
      id uuid not null,
      received_at timestamptz not null,
      source text collate "C" not null,
      outcome text not null check (
        outcome in ('accepted', 'duplicate', 'conflict', 'quarantined', 'malformed', 'unauthorized', 'refused')
      ),
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
      released_at timestamptz,
      peer_address text,
      signed_by text,
      discarded_at timestamptz,
      discarded_by text,
      discard_note text,
      unanswered text,
      primary key (id, received_at)
    ) partition by range (received_at)`.execute(db);
  await describe(db, 'deliveries', 'The audit record of every request, by day', {
    secret_fingerprint: 'Of the secret that signed it',
    body_sha256: 'Null where the body is kept',
    body: 'Kept where it is the only record of what was told',
    released_at: 'When an operator had a quarantined one understood after all',
    peer_address: 'Of the proxy that it came through; null where the sender connected itself',
    signed_by: 'The other source whose secret signed an unauthorized one',
    discarded_by: 'Names the token, also after it is gone',
    unanswered: 'Why its answer did not reach its sender; null for nearly all',
  });
  for (const [name, columns] of Object.entries({
    job: sql`(source, job_id, received_at)`,
    source: sql`(source, received_at)`,
    secret: sql`(secret_fingerprint, received_at)`,
    remote: sql`(remote_address, received_at)`,
    outcome: sql`(outcome, received_at) where outcome <> 'accepted'`,
    status: sql`(status, received_at) where status not in ('processing', 'completed')`,
    error: sql`(error_code, received_at) where error_code is not null`,
    // Few rows each.
    quarantine: sql`(received_at, id) where outcome = 'quarantined' and released_at is null and discarded_at is null`,
    discarded: sql`(received_at, id) where outcome = 'quarantined' and discarded_at is not null`,
    released_time: sql`(received_at, id) where outcome = 'quarantined' and released_at is not null`,
    // The delivery of an event that was released, which its time alone does not find.
    released: sql`(event_sequence) where released_at is not null`,
  })) {
    await sql`create index ${sql.id(`deliveries_${name}`)} on deliveries ${columns}`.execute(db);
  }
}

async function makeOutbox(db: Db): Promise<void> {
  await sql`
    create table outbox_batches (
      first bigint primary key,
      sequences bigint[] not null,
      bytes integer not null,
      writer bigint,
      number integer,
      recorded_at timestamptz not null default now(),
      xid xid8 not null default pg_current_xact_id()
    ) with (${PASSING})`.execute(db);
  await describe(db, 'outbox_batches', 'Events that are still to be published, a row for those of a write', {
    first: 'The lowest sequence when it was written; it stays when events leave the batch',
    sequences: 'Ascending, of the events that are still to be published',
    bytes: 'Of the bodies of these events, about',
    writer: 'Null: an operator, who released quarantined deliveries',
    number: 'Among the batches of this writer',
    recorded_at: 'The same as that of its events, so that the batch of an event is found by it',
    xid: 'What a load has not seen was written by a transaction that had not ended then',
  });
  await sql`create index outbox_batches_xid on outbox_batches (xid)`.execute(db);
  await sql`create index outbox_batches_time on outbox_batches (recorded_at)`.execute(db);

  await sql`
    create table outbox_held (
      sequence bigint primary key,
      source text collate "C" not null,
      job_id text collate "C" not null,
      status text not null,
      progress_percentage smallint,
      late boolean not null,
      occurred_at text,
      recorded_at timestamptz not null,
      data text,
      state text not null default 'pending' check (state in ('pending', 'returned', 'parked')),
      attempts integer not null default 0,
      due_at timestamptz not null default now(),
      last_error text,
      body bytea
    ) with (${PASSING})`.execute(db);
  await describe(
    db,
    'outbox_held',
    'Events that need more than a place in a batch: they failed, were returned or parked, or wait behind such a one of their job',
    {
      data: 'Null: it is read from the body of the delivery',
      body: 'Of an event that is no longer understood when the day of its delivery is dropped',
    },
  );
  await sql`create index outbox_held_pending on outbox_held (sequence) where state = 'pending'`.execute(db);
  await sql`
    create index outbox_held_job on outbox_held (source, job_id, sequence) where state <> 'returned'`.execute(
    db,
  );
  await sql`create index outbox_held_waiting on outbox_held (state, sequence) where state <> 'pending'`.execute(
    db,
  );
  // Before a day of deliveries is dropped, those that need its bodies are found.
  await sql`
    create index outbox_held_bodiless on outbox_held (recorded_at) where data is null and body is null`.execute(
    db,
  );

  await sql`
    create table outbox_version (
      is_the_row boolean primary key default true check (is_the_row),
      version bigint not null default 0
    ) with (fillfactor = 50)`.execute(db);
  await describe(
    db,
    'outbox_version',
    'One row. It changes when an operator takes an event out of a batch: the leader then forgets what waits in its memory',
  );
  await sql`insert into outbox_version default values`.execute(db);

  await sql`
    create table relay_lease (
      name text primary key,
      holder uuid not null,
      epoch bigint not null,
      expires_at timestamptz not null
    )`.execute(db);
  await describe(db, 'relay_lease', 'Who leads. Times are those of the database, never of a replica');
}

async function makePublications(db: Db): Promise<void> {
  // Each row has as many ids as it may have publications. A cursor between two of them belongs to one row.
  await sql`create sequence publications_id increment by ${sql.lit(IDS_OF_A_BATCH)}`.execute(db);
  await sql`
    create table publications (
      published_at timestamptz not null,
      event_sequence bigint not null,
      attempt integer not null,
      result text not null check (result in ('confirmed', 'returned', 'nacked', 'failed')),
      detail text,
      duration_ms integer not null,
      relay_id uuid not null,
      relay_attempt bigint not null,
      id bigint not null default nextval('publications_id'),
      source text collate "C",
      replay_id uuid,
      queue text
    ) partition by range (published_at)`.execute(db);
  await describe(db, 'publications', 'Attempts to publish, but for confirmed first ones; by day', {
    relay_attempt: 'Counts the attempts of its relay: one whose record is repeated is on record once',
    replay_id: 'Null, as its queue is, for what the relay published of its own accord',
  });
  await sql`create index publications_event on publications (event_sequence)`.execute(db);
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

  await sql`
    create table publication_batches (
      published_at timestamptz not null,
      id bigint not null default nextval('publications_id'),
      relay_id uuid not null,
      source text collate "C" not null,
      first bigint not null,
      sequences bigint[] not null,
      durations_ms integer[] not null
    ) partition by range (published_at)`.execute(db);
  await describe(
    db,
    'publication_batches',
    'Confirmed first attempts, which are nearly all: a row for many; by day',
    {
      id: 'Of its first publication; the others count up from it',
      first: 'The lowest of sequences',
      sequences: `Ascending. All have the same sequence / ${IDS_OF_A_BATCH}, so an event is found among few rows`,
    },
  );
  await sql`create index publication_batches_time on publication_batches (published_at, id)`.execute(db);
  await sql`create index publication_batches_source on publication_batches (source, published_at, id)`.execute(
    db,
  );
  await sql`create index publication_batches_first on publication_batches (first)`.execute(db);
}

async function makeReplays(db: Db): Promise<void> {
  await sql`
    create table replays (
      id uuid primary key,
      created_at timestamptz not null,
      created_by text not null,
      note text,
      sources text[],
      selection text not null,
      up_to_sequence bigint not null,
      queue text,
      rate_per_second integer not null,
      state text not null check (state in ('running', 'paused', 'cancelled', 'finished')),
      paused_because text,
      matched bigint not null,
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
  await describe(db, 'replays', 'What an operator asked to be published again', {
    created_by: 'Names the token, also after it is gone',
    sources: 'Those that it may touch; null for all',
    selection: 'What was asked, as JSON: {"event_ids": [...]} or {"filter": {...}}',
    up_to_sequence: 'Events that are accepted later are not meant',
    matched_exactly: 'False: there are at least as many',
  });
  await sql`create index replays_state on replays (created_at, id) where state in ('running', 'paused')`.execute(
    db,
  );
  await sql`create index replays_time on replays (created_at, id)`.execute(db);

  await sql`
    create table replay_skips (
      replay_id uuid not null references replays on delete cascade,
      event_sequence bigint not null,
      reason text not null,
      at timestamptz not null default now(),
      primary key (replay_id, event_sequence)
    )`.execute(db);
  await describe(db, 'replay_skips', 'Events that a replay left out, and why: the first ones of each');
  await sql`create index replay_skips_event on replay_skips (event_sequence)`.execute(db);

  await sql`
    create table replay_copies (
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
    ) with (${PASSING})`.execute(db);
  await describe(
    db,
    'replay_copies',
    'Copies that replays still have to publish: a bounded number at a time',
    {
      position:
        'Drawn from the sequence of events under the lock of the job: the copy stands behind all that the job has by then',
      replay_of: 'The sequence of the event',
    },
  );
  await sql`create index replay_copies_order on replay_copies (replay_id, position)`.execute(db);
  await sql`
    create index replay_copies_troubled on replay_copies (replay_id, source, job_id, position)
    where attempts > 0`.execute(db);
}

async function makeAccess(db: Db): Promise<void> {
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
  await describe(db, 'tokens', 'Who may ask. The value is shown once and kept as its SHA-256');

  await sql`
    create table sessions (
      id text primary key,
      value_hash bytea not null unique,
      token_id text not null references tokens on delete cascade,
      created_at timestamptz not null default now(),
      last_used_at timestamptz not null default now(),
      expires_at timestamptz not null,
      ended_at timestamptz,
      remote_address text
    )`.execute(db);
  await describe(
    db,
    'sessions',
    'Of the console. A session ends with its token: it has no rights of its own. Its value stands in a cookie, and here as its SHA-256',
  );
  await sql`create index sessions_token on sessions (token_id, created_at)`.execute(db);

  await sql`
    create table sign_in_codes (
      value_hash bytea primary key,
      token_id text not null references tokens on delete cascade,
      expires_at timestamptz not null
    )`.execute(db);
  await describe(db, 'sign_in_codes', 'Each begins one session. A used one is deleted');
  await sql`create index sign_in_codes_token on sign_in_codes (token_id, expires_at)`.execute(db);

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
  await describe(db, 'operator_log', 'What operators did and looked at. Nobody may change it, not even we');
  await sql`create index operator_log_time on operator_log (at, id)`.execute(db);
  for (const column of ['actor', 'action', 'subject', 'source'])
    await sql`create index ${sql.id(`operator_log_${column}`)} on operator_log (${sql.id(column)}, at, id)`.execute(
      db,
    );
  await sql`create index operator_log_token on operator_log (token_id, at, id)`.execute(db);
  await sql`
    create function operator_log_is_append_only() returns trigger language plpgsql as
    $$ begin raise exception 'operator_log is append-only'; end $$`.execute(db);
  await sql`
    create trigger operator_log_is_append_only before update or delete or truncate on operator_log
    for each statement execute function operator_log_is_append_only()`.execute(db);

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
  await describe(db, 'idempotency_keys', 'The answers that repeated requests get again');
  await sql`create index idempotency_keys_time on idempotency_keys (created_at)`.execute(db);
}

async function makeStatistics(db: Db): Promise<void> {
  await sql`
    create table refusals (
      minute timestamptz not null,
      source text not null,
      unauthorized bigint not null default 0,
      refused bigint not null default 0,
      primary key (minute, source)
    )`.execute(db);
  await describe(
    db,
    'refusals',
    'Unauthorized and refused deliveries beyond the rate at which each gets a row of its own',
  );

  await sql`
    create table refusal_addresses (
      minute timestamptz not null,
      source text collate "C" not null,
      address text collate "C" not null,
      count bigint not null,
      primary key (minute, source, address)
    ) with (fillfactor = 80)`.execute(db);
  await describe(
    db,
    'refusal_addresses',
    'The busiest addresses of refused deliveries: a bounded number a source and minute',
  );

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
  await describe(db, 'rollups', 'Counts for statistics, by the minute; added up in memory before');
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
  await describe(
    db,
    'rollups_hourly',
    'The same of two days ago and before, by the hour: a year of minutes would be too many to add up',
  );

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
  await describe(
    db,
    'drift',
    'Fields and statuses that authentic bodies had and the schemas of events do not know',
  );

  await sql`
    create table secret_matches (
      source text collate "C" not null,
      fingerprint text collate "C" not null,
      last_matched_at timestamptz not null,
      primary key (source, fingerprint)
    )`.execute(db);
  await describe(
    db,
    'secret_matches',
    'When each secret matched last: kept longer than the deliveries, for rotations',
  );
}

async function makeReplicas(db: Db): Promise<void> {
  // No index but the primary key: a heartbeat then changes none, and the table has some hundred rows at most.
  await sql`
    create table replicas (
      id uuid primary key,
      version text not null,
      host text not null,
      started_at timestamptz not null,
      seen_at timestamptz not null
    ) with (fillfactor = 50)`.execute(db);
  await describe(db, 'replicas', 'The running replicas, and when each was last heard of');
}

/**
 * What the service may do to tables that it does not own, by functions that run with the rights of their owner: so its own role need
 * not own anything. Whoever may call them must not gain more by it: each takes ids, times or a day, never a name, and the
 * search_path is fixed, with pg_temp last. Every table in them is named with its schema all the same.
 */
const withOwnersRights = (home: string) =>
  sql`security definer set search_path = pg_catalog, ${sql.id(home)}, pg_temp`;

/** The daily partitions. */
async function makeUpkeep(db: Db, home: string): Promise<void> {
  const safely = withOwnersRights(home);
  const isOurs = sql`parent in ('deliveries', 'publications', 'publication_batches')`;
  const names = sql`
    home constant text := ${sql.lit(home)};
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

  // Never what the shortest RETENTION_DAYS, one, would keep. Locks the parent against all: alone in its transaction.
  await sql`
    create function drop_partition(parent text, day date) returns text language plpgsql ${safely} as $$
    declare ${names}
    begin
      if (${isOurs} and day < today - 1) is not true then
        raise exception 'no such partition is to be dropped' using errcode = 'invalid_parameter_value';
      end if;
      if not ${isThere} then return null; end if;
      execute pg_catalog.format('drop table %I.%I', home, partition_name);
      return partition_name;
    end $$`.execute(db);
  await sql`revoke all on function make_partition(text, date), drop_partition(text, date) from public`.execute(
    db,
  );
}

async function makeDecisions(db: Db, home: string): Promise<void> {
  const safely = withOwnersRights(home);
  // The service's role may discard what waits, and can neither take a discard back nor change who did it and why. Deliveries
  // that another transaction has locked are left alone: of a discard and a release at once, one wins.
  await sql`
    create function discard_quarantined(ids uuid[], times timestamptz[], who text, why text) returns setof uuid
    language sql ${safely} as $$
      with waiting as materialized (
        select d.id, d.received_at
        from unnest(ids, times) as k (id, at)
        join ${sql.id(home)}.deliveries d on d.id = k.id and d.received_at = k.at
        where d.outcome = 'quarantined' and d.released_at is null and d.discarded_at is null
        for update of d skip locked
      )
      update ${sql.id(home)}.deliveries d set discarded_at = now(), discarded_by = who, discard_note = why
      from waiting w where d.id = w.id and d.received_at = w.received_at
      returning d.id
    $$`.execute(db);
  await sql`
    revoke all on function discard_quarantined(uuid[], timestamptz[], text, text) from public`.execute(db);
}

/**
 * Tells a database that was restored, or that lost transactions in a failover, from the one that gave the last numbers, so that no
 * `sequence` is on the bus twice. No single fact tells: a snapshot keeps every identifier, and a promotion raises the timeline and
 * loses nothing. So whatever may be a loss counts as one, and the sequence leaves out numbers.
 */
async function makeIdentity(db: Db, home: string): Promise<void> {
  await sql`
    create table database_identity (
      is_the_row boolean primary key default true check (is_the_row),
      system_identifier bigint,
      timeline text,
      database oid not null,
      events oid not null,
      started_at timestamptz not null
    ) with (fillfactor = 50)`.execute(db);
  await describe(
    db,
    'database_identity',
    'One row: what the database was when the sequence of events was raised last. A dump brings its own row along',
    {
      system_identifier: 'Null, as the timeline may be, where the server keeps it to itself',
      started_at:
        'When the server was started: no restore goes without it, but for those that make the database anew',
    },
  );

  // By functions that every role may call, unless the server's owner has revoked it, or has none of them.
  await sql`
    create function present_identity() returns ${sql.id(home)}.database_identity language plpgsql
    set search_path = pg_catalog, ${sql.id(home)}, pg_temp as $$
    declare present ${sql.id(home)}.database_identity;
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
      present.events := ${sql.lit(`${home}.events`)}::regclass::oid;
      present.started_at := pg_postmaster_start_time();
      return present;
    end $$`.execute(db);

  // The service's role may draw numbers and not set them. This can only raise the sequence, and to no number of the caller's choice.
  // It locks the row: of sessions that begin at once, the first one raises, and the others find it done. Returns null for the time
  // if nothing has changed, or else when the newest event that is there was recorded.
  await sql`
    create function verify_identity(out has_changed boolean, out newest_at timestamptz)
    language plpgsql ${withOwnersRights(home)} as $$
    declare
      former ${sql.id(home)}.database_identity;
      present constant ${sql.id(home)}.database_identity := ${sql.id(home)}.present_identity();
      least bigint := ${sql.lit(PER_SECOND)} * (1 + extract(epoch from clock_timestamp() - timestamptz '2026-01-01 00:00:00+00'));
    begin
      select * into former from ${sql.id(home)}.database_identity for update;
      has_changed := former is distinct from present;
      if not has_changed then return; end if;
      newest_at := (select recorded_at from ${sql.id(home)}.events order by sequence desc limit 1);
      perform setval(${sql.lit(`${home}.events_sequence_seq`)}::regclass, least)
      from ${sql.id(home)}.events_sequence_seq where last_value < least;
      insert into ${sql.id(home)}.database_identity select present.*
      on conflict (is_the_row) do update set
        system_identifier = excluded.system_identifier, timeline = excluded.timeline, database = excluded.database,
        events = excluded.events, started_at = excluded.started_at;
    end $$`.execute(db);
  await sql`revoke all on function present_identity(), verify_identity() from public`.execute(db);
  // Also a new ledger is perhaps not the first one of its subscribers.
  await sql`select from verify_identity()`.execute(db);
}

/** For whoever looks with psql. */
async function describe(
  db: Db,
  table: string,
  what: string,
  columns: Readonly<Record<string, string>> = {},
): Promise<void> {
  await sql`comment on table ${sql.id(table)} is ${sql.lit(what)}`.execute(db);
  for (const [column, meaning] of Object.entries(columns))
    await sql`comment on column ${sql.id(table)}.${sql.id(column)} is ${sql.lit(meaning)}`.execute(db);
}
