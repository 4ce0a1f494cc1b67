// What the watch needs: incidents with their messages, what waited at which minute, what each replica alone knows, and the times of a lease. It only adds, so programs
// that know the first release alone run on it as before: they write neither of the new columns.

import { type Kysely, sql } from 'kysely';

const NAME = '0002-watch';
const OLDEST_PROGRAM = '0001-first-release';

type Db = Kysely<unknown>;

export async function up(db: Db): Promise<void> {
  // The locks on both tables wait for statements of some milliseconds. An attempt on the lease waits for them.
  await sql`set local lock_timeout = '3s'`.execute(db);
  await makeIncidents(db);
  await makeWaits(db);
  await sql`
    alter table relay_lease add column since timestamptz, add column lapsed_at timestamptz, add column memory jsonb`.execute(
    db,
  );
  await sql`alter table replicas add column signs jsonb not null default '{}'`.execute(db);
  await sql`comment on column relay_lease.since is 'Since when its holder has had it without a gap; null when it was given up'`.execute(
    db,
  );
  await sql`comment on column relay_lease.lapsed_at is 'When the time before ran out; null if it was given up'`.execute(
    db,
  );
  await sql`comment on column relay_lease.memory is 'What its holder leaves to the next one'`.execute(db);
  await sql`comment on column replicas.signs is 'Of each sign: the seconds since it was last so, as of seen_at'`.execute(
    db,
  );
  await sql`insert into schema_requirements values (${NAME}, ${OLDEST_PROGRAM})`.execute(db);
}

export async function down(db: Db): Promise<void> {
  await sql`drop table waits, incident_messages, incidents`.execute(db);
  await sql`alter table relay_lease drop column since, drop column lapsed_at, drop column memory`.execute(db);
  await sql`alter table replicas drop column signs`.execute(db);
  await sql`delete from schema_requirements where migration = ${NAME}`.execute(db);
}

async function makeIncidents(db: Db): Promise<void> {
  await sql`
    create table incidents (
      id uuid primary key,
      condition text collate "C" not null,
      subject text collate "C" not null default '',
      severity text not null check (severity in ('warning', 'critical')),
      summary text not null,
      began_at timestamptz not null,
      ended_at timestamptz,
      events_waited bigint not null default 0,
      decided_by text[] not null default '{}'
    )`.execute(db);
  await sql`create index incidents_time on incidents (began_at, id)`.execute(db);
  await sql`create unique index incidents_open on incidents (condition, subject) where ended_at is null`.execute(
    db,
  );
  await sql`comment on table incidents is 'What an operator has to know of: from when to when, and who decided'`.execute(
    db,
  );
  await sql`comment on column incidents.began_at is 'When it was first seen; it had to last until it became an incident'`.execute(
    db,
  );
  await sql`comment on column incidents.ended_at is 'When it was last so; null while it goes on'`.execute(db);

  await sql`
    create table incident_messages (
      id uuid primary key,
      incident_id uuid not null references incidents on delete cascade,
      moment text not null check (moment in ('begin', 'end')),
      channel text not null,
      due_at timestamptz not null,
      attempts integer not null default 0,
      sent_at timestamptz,
      given_up_at timestamptz,
      last_error text,
      unique (incident_id, moment, channel)
    )`.execute(db);
  await sql`
    create index incident_messages_due on incident_messages (due_at, id)
    where sent_at is null and given_up_at is null`.execute(db);
  await sql`comment on table incident_messages is 'What is to be told of an incident, once for each channel'`.execute(
    db,
  );
}

async function makeWaits(db: Db): Promise<void> {
  // Each minute's row is updated some six times, without a new entry in the index.
  await sql`
    create table waits (
      minute timestamptz primary key,
      pending integer not null,
      returned integer not null,
      parked integer not null,
      quarantined integer not null,
      oldest_pending_s double precision not null
    ) with (fillfactor = 80)`.execute(db);
  await sql`comment on table waits is 'The most that waited, by the minute, as the watch saw it; without a row nobody looked'`.execute(
    db,
  );
}
