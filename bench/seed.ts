// Fills a ledger with history: events and jobs that were received and published long ago, and a backlog that is not published.
// By SQL, into tables with all indexes and constraints, vacuumed and analysed as autovacuum would have done.
//
// For n events: n/2 jobs with two events each (progress and completed); deliveries with bodies of 400 bytes and
// publications for the newest million of them, in today's partitions, since RETENTION_DAYS drops older ones. Job ids are
// scattered, as random ids are. Each chunk is inserted in their order.

import { SEEDED_RUN } from './load/notifications.ts';
import type { Stage } from './stage.ts';

/** Rows of deliveries and publications that a month's retention leaves of a long history. */
const KEPT_ROWS = 1_000_000;
const CHUNK = 250_000;
/** Events that the relay settles together under load; 1,024 is a multiple, so they share a row. */
const SETTLED = 256;

/** One for each core. Each runs pairs of statements, since the two of a pair differ in cost. */
const SESSIONS = 2;
const shareOf = (index: number) => Math.floor(index / 2) % SESSIONS;

const FAST = ['set synchronous_commit = off', "set work_mem = '256MB'"];

export async function seedLedger(stage: Stage, database: string, events: number): Promise<void> {
  const { run } = stage.databases;
  const statements = [
    ...chunks(events / 2).flatMap((chunk) => [jobsOf(chunk), eventsOf(chunk)]),
    ...chunks(Math.min(events, KEPT_ROWS)).flatMap((chunk) => [deliveriesOf(chunk), publicationsOf(chunk)]),
  ];
  await Promise.all(
    Array.from({ length: SESSIONS }, (_, session) =>
      run(database, [...FAST, ...statements.filter((_text, index) => shareOf(index) === session)]),
    ),
  );
  await run(database, ['vacuum (analyze)', 'checkpoint']);
}

/** Outbox entries as the intake writes them, each of its own job, with data of about half a KiB. */
export async function seedBacklog(stage: Stage, database: string, entries: number): Promise<void> {
  await addBacklog(stage, database, { from: 1, to: entries });
  await stage.databases.run(database, ['vacuum (analyze)', 'checkpoint']);
}

/** Adds entries with the numbers `from` to `to`, while the database is in use. */
export async function addBacklog(stage: Stage, database: string, { from, to }: Chunk): Promise<void> {
  const parts = chunks(to - from + 1).map((chunk) => ({
    from: chunk.from + from - 1,
    to: chunk.to + from - 1,
  }));
  await stage.databases.run(database, [...FAST, ...parts.flatMap(backlogOf)]);
}

type Chunk = { readonly from: number; readonly to: number };

function chunks(count: number): Chunk[] {
  return Array.from({ length: Math.ceil(count / CHUNK) }, (_, index) => ({
    from: index * CHUNK + 1,
    to: Math.min(count, (index + 1) * CHUNK),
  }));
}

const JOB_ID = `'job_' || substr(md5(g::text), 1, 8) || '_${SEEDED_RUN}_' || g`;
const HASH = 'sha256(int8send(g))';
/** A time in today's partition, whatever the hour is. */
const TODAY = "date_trunc('day', now(), 'UTC') + random() * (now() - date_trunc('day', now(), 'UTC'))";
const series = ({ from, to }: Chunk) => `generate_series(${from}, ${to}) g`;

function jobsOf(chunk: Chunk): string {
  return `insert into jobs (source, job_id, first_seen_at, last_seen_at, highest_progress, completed_at, last_status)
    select 'default', ${JOB_ID}, now() - interval '90 days', now() - interval '89 days', 45, now() - interval '89 days', 'completed'
    from ${series(chunk)} order by 2`;
}

function eventsOf(chunk: Chunk): string {
  return `insert into events
      (source, job_id, status, progress_percentage, late, occurred_at, recorded_at, delivery_id, content_hash, repeats)
    select 'default', ${JOB_ID}, kind.status, kind.progress, false, kind.occurred_at, now() - interval '89 days',
           uuidv7(), ${HASH}, 0
    from ${series(chunk)},
      (values ('processing', 45::smallint, null::timestamptz), ('completed', null, now() - interval '89 days'))
        as kind (status, progress, occurred_at)
    order by 2`;
}

function deliveriesOf(chunk: Chunk): string {
  return `insert into deliveries
      (id, received_at, source, outcome, http_status, job_id, status, progress_percentage, event_sequence, path,
       remote_address, headers, secret_fingerprint, body_bytes, body_sha256, body)
    select uuidv7(), ${TODAY}, 'default', 'accepted', 202, ${JOB_ID}, 'completed', null, g, '/webhooks',
           '127.0.0.1', '{"content-type":"application/json","content-length":"400","user-agent":"conversion-service"}',
           '0123456789abcdef', 400, null, convert_to(rpad(md5(g::text), 400, md5('c' || g)), 'UTF8')
    from ${series(chunk)}`;
}

function publicationsOf(chunk: Chunk): string {
  return `insert into publication_batches (published_at, relay_id, source, first, sequences, durations_ms)
    select ${TODAY}, '00000000-0000-4000-8000-000000000001', 'default', min(g), array_agg(g order by g), array_agg(3)
    from ${series(chunk)} group by g / ${SETTLED}`;
}

function backlogOf(chunk: Chunk): string[] {
  const data = `'{"job_id":"' || job_id || '","status":"completed","job_type":"video","progress_percentage":100,'
    || '"cost_micros":1250000,"cost_cents":125,"processing_time_seconds":264,"output_size_bytes":10485760,'
    || '"input_format":"mp4","output_format":"webm","created_at":"2026-11-21T09:58:17.204Z",'
    || '"completed_at":"2026-11-21T10:02:41.917Z","trace":"' || rpad(md5(job_id), 150, md5('d' || job_id)) || '"}'`;
  return [
    `insert into jobs (source, job_id, first_seen_at, last_seen_at, completed_at, last_status)
     select 'default', ${JOB_ID}, now(), now(), now(), 'completed' from ${series(chunk)}`,
    `with event as (
       insert into events
         (source, job_id, status, late, occurred_at, recorded_at, delivery_id, content_hash, repeats)
       select 'default', ${JOB_ID}, 'completed', false, now(), now(), uuidv7(), ${HASH}, 0
       from ${series(chunk)} returning sequence, source, job_id, recorded_at, delivery_id
     ),
     delivery as (
       insert into deliveries (id, received_at, source, outcome, http_status, job_id, status, event_sequence, path, headers,
                               body_bytes, body)
       select delivery_id, recorded_at, source, 'accepted', 202, job_id, 'completed', sequence, '/webhooks', '{}',
              octet_length(body), convert_to(body, 'UTF8')
       from (select event.*, ${data} as body from event) as event
     )
     insert into outbox_batches (first, sequences, bytes)
     select min(sequence), array_agg(sequence order by sequence), count(*) * 600 from event group by sequence / ${SETTLED}`,
  ];
}
