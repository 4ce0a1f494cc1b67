// A ledger as programs before migration 0010 left it: one table for all of the outbox, with a copy of each event's content.

import type { DeliveryRecord } from '../../src/ledger/record.ts';
import { sha256 } from '../../src/sha256.ts';
import { eventRecord } from './records.ts';
import { completed, type Notification } from './sender.ts';

type EventRecord = DeliveryRecord & { outcome: 'event' };
type Queryable = { readonly query: (text: string, values?: unknown[]) => Promise<unknown> };

/** Its statement for deliveries, word for word. */
export const RECORD_BEFORE = `
with incoming as (
  select * from unnest(
    $1::text[], $2::text[], $3::text[], $4::smallint[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::uuid[],
    $10::int[]
  ) as t (source, job_id, status, progress, content_hash, occurred_at, error_code, data, delivery_id, copies)
),
job as (
  insert into jobs as j (source, job_id, first_seen_at, last_seen_at, highest_progress, completed_at, failed_at)
  select source, job_id, now(), now(), progress,
         case status when 'completed' then now() end, case status when 'failed' then now() end
  from incoming order by source collate "C", job_id collate "C"
  on conflict (source, job_id) do update set
    last_seen_at = greatest(j.last_seen_at, excluded.last_seen_at),
    highest_progress = greatest(j.highest_progress, excluded.highest_progress),
    completed_at = coalesce(j.completed_at, excluded.completed_at),
    failed_at = coalesce(j.failed_at, excluded.failed_at)
  returning j.source, j.job_id, j.highest_progress, j.terminal_at
),
event as (
  insert into events as e (
    source, job_id, status, progress_percentage, late, occurred_at, error_code, recorded_at, delivery_id, content_hash,
    repeats
  )
  select i.source, i.job_id, i.status, i.progress,
         i.status = 'processing' and (job.terminal_at is not null or job.highest_progress > i.progress),
         (rtrim(left(i.occurred_at, 26), 'Z') || 'Z')::timestamptz, i.error_code, now(), i.delivery_id, i.content_hash,
         i.copies - 1
  from incoming i join job using (source, job_id)
  on conflict on constraint events_dedup_key do update set repeats = e.repeats + excluded.repeats + 1
  returning e.sequence, e.source, e.job_id, e.late, e.recorded_at, e.delivery_id, e.content_hash
),
entry as (
  insert into outbox (
    sequence, source, job_id, status, progress_percentage, late, occurred_at, recorded_at, data
  )
  select event.sequence, i.source, i.job_id, i.status, i.progress, event.late, i.occurred_at, event.recorded_at, i.data
  from incoming i join event using (source, job_id)
  where event.delivery_id = i.delivery_id
),
delivery as (
  select t.*, event.sequence as event_sequence, coalesce(event.late, false) as late,
         case
           when t.known_outcome <> 'event' then t.known_outcome
           when event.delivery_id = t.id then 'accepted'
           when event.content_hash = t.content_hash then 'duplicate'
           else 'conflict'
         end as outcome
  from unnest(
    $11::uuid[], $12::text[], $13::text[], $14::smallint[], $15::text[], $16::text[], $17::text[], $18::smallint[],
    $19::text[], $20::bytea[], $21::text[], $22::text[], $23::text[], $24::text[], $25::int[], $26::bytea[],
    $27::bytea[], $28::text[], $29::text[]
  ) as t (
    id, source, known_outcome, http_status, reason, job_id, status, progress, error_code,
    content_hash, path, remote_address, headers, secret_fingerprint, body_bytes, body_sha256, body,
    peer_address, signed_by
  )
  left join event on t.known_outcome = 'event' and event.source = t.source and event.job_id = t.job_id
),
audit as (
  insert into deliveries (
    id, received_at, source, outcome, http_status, reason, job_id, status, progress_percentage, error_code,
    event_sequence, path, remote_address, headers, secret_fingerprint, body_bytes, body_sha256, body,
    peer_address, signed_by
  )
  select id, now(), source, outcome, case outcome when 'accepted' then 202 when 'duplicate' then 200
         when 'conflict' then 200 else http_status end,
         reason, job_id, status, progress, error_code, event_sequence, path, remote_address, headers, secret_fingerprint,
         body_bytes, body_sha256, case when outcome <> 'duplicate' then body end, peer_address, signed_by
  from delivery
)
select id, outcome, late from delivery`;

/** Records events of different jobs in one write. */
export async function recordBefore(database: Queryable, ...contents: readonly Notification[]): Promise<void> {
  await database.query(RECORD_BEFORE, valuesBefore(contents));
}

export function valuesBefore(contents: readonly Notification[]): unknown[] {
  return columnsBefore(contents.map((content) => eventRecord(content)));
}

/** The values of `RECORD_BEFORE`: events of different jobs. */
export function columnsBefore(records: readonly EventRecord[]): unknown[] {
  const column = (pick: (record: EventRecord) => unknown) => records.map(pick);
  return [
    column(({ source }) => source),
    column(({ event }) => event.jobId),
    column(({ event }) => event.status),
    column(({ event }) => event.progress),
    column(({ event }) => event.contentHash),
    column(({ event }) => event.occurredAt),
    column(({ event }) => event.errorCode),
    column(({ event }) => event.data),
    column(({ id }) => id),
    column(() => 1),
    column(({ id }) => id),
    column(({ source }) => source),
    column(({ outcome }) => outcome),
    column(() => null),
    column(({ reason }) => reason),
    column(({ jobId }) => jobId),
    column(({ status }) => status),
    column(({ progress }) => progress),
    column(({ event }) => event.errorCode),
    column(({ event }) => event.contentHash),
    column(({ path }) => path),
    column(({ remoteAddress }) => remoteAddress),
    column(({ headers }) => headers),
    column(({ secretFingerprint }) => secretFingerprint),
    column(({ bodyBytes }) => bodyBytes),
    column(({ body }) => body && sha256(body)),
    column(({ body }) => body),
    column(({ peerAddress }) => peerAddress),
    column(({ signedBy }) => signedBy),
  ];
}

/** As its relay settled an event that was not confirmed. */
export async function settleBefore(
  database: Queryable,
  jobId: string,
  to: {
    readonly state: 'pending' | 'returned' | 'parked';
    readonly attempts: number;
    readonly error: string;
  },
): Promise<void> {
  await database.query(
    `update outbox set state = $2, attempts = $3, last_error = $4, due_at = now()
     where sequence = (select min(sequence) from outbox where job_id = $1 and replay_id is null)`,
    [jobId, to.state, to.attempts, to.error],
  );
}

/** As it published all of these jobs. */
export async function publishBefore(database: Queryable, jobIds: readonly string[]): Promise<void> {
  await database.query('delete from outbox where job_id = any($1)', [jobIds]);
}

/** As its feeder copied the only event of each of these jobs, which was published before. */
export async function copyBefore(
  database: Queryable,
  replay: { readonly id: string; readonly queue: string | null },
  jobIds: readonly string[],
): Promise<void> {
  await database.query(
    `insert into outbox (
       sequence, source, job_id, status, progress_percentage, late, occurred_at, recorded_at, data,
       replay_id, replay_of, replayed_by, queue
     )
     select nextval('events_sequence_seq'), e.source, e.job_id, e.status, e.progress_percentage, e.late, t.occurred_at,
            e.recorded_at, t.data, $1, e.sequence, 'a test', $2
     from unnest($3::text[], $4::text[], $5::text[]) as t (job_id, occurred_at, data) join events e using (job_id)
     order by e.sequence`,
    [
      replay.id,
      replay.queue,
      jobIds,
      ...(['occurredAt', 'data'] as const).map((column) =>
        jobIds.map((jobId) => eventRecord(completed(jobId)).event[column]),
      ),
    ],
  );
}
