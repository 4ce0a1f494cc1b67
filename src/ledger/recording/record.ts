// Records a batch of deliveries: one statement, so one round trip and one commit, writes the deliveries,
// their jobs, the new events and the outbox entries, or nothing at all. Guarantees: one event per dedup key
// at any concurrency (3), and events of a job numbered in the order in which they were accepted (5).
//
// It is one statement and no transaction block on purpose: a replica that freezes cannot hold its locks.

import { types } from 'pg';
import { byteaArray, int2Array, int4Array, textArray, uuidArray } from './arrays.ts';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';
import type { JobEvent } from '../understanding/event.ts';
import type { DeliveryOutcome } from '../schema/tables.ts';

/** One inbound request. What is unknown, or not known yet, is null. */
export type Delivery = {
  /** UUIDv7, made by us: it names the delivery in logs even if the ledger could not be reached. */
  readonly id: string;
  /** As the path claims it, until the signature is checked; then a configured source, or `unknown`. */
  readonly source: string;
  readonly path: string;
  /** The sender's address: the peer, or the address that a trusted proxy names. */
  readonly remoteAddress: string | null;
  /** The proxy that it came through; null where the sender is the peer. */
  readonly peerAddress: string | null;
  /** A JSON object of the request headers that are safe to keep. */
  readonly headers: string;
  readonly secretFingerprint: string | null;
  readonly jobId: string | null;
  readonly status: string | null;
  readonly progress: number | null;
  /** Why it is quarantined, malformed, refused or unauthorized. */
  readonly reason: string | null;
  /** Of an unauthorized one: another source whose secret signed it. Apart from `reason`, since not every reader may know it. */
  readonly signedBy: string | null;
  readonly bodyBytes: number | null;
  /** As it came. Recorded for every authentic delivery that is not a duplicate; of a duplicate its SHA-256 is. */
  readonly body: Buffer | null;
};

/** A delivery that can be recorded. The ledger decides whether an event is accepted, a duplicate or a conflict. */
export type DeliveryRecord = Delivery &
  (
    | { readonly outcome: 'event'; readonly event: JobEvent }
    | {
        readonly outcome: Exclude<DeliveryOutcome, 'accepted' | 'duplicate' | 'conflict'>;
        readonly httpStatus: number;
      }
  );

export type RecordedDelivery = { readonly outcome: DeliveryOutcome; readonly late: boolean };

/** And what the relay needs to know of it. */
export type TalliedDelivery = RecordedDelivery & {
  /** Of an accepted event that is in a batch of the outbox now. Null for all others, and for events that are held. */
  readonly pending: { readonly sequence: string; readonly recordedAt: Date } | null;
  /** The delivery before this one of the same job was recorded by another writer (R3). */
  readonly writerChanged: boolean;
  /** The event was accepted behind one of its job that is held, so it is held, too. */
  readonly held: boolean;
};

/** Names one write: the writer (a 64-bit number), and the write's number among those of this writer. */
export type WriteMark = { readonly writer: string; readonly number: number };

/** Deliveries of one event: the first is accepted if the event is new, the others are its copies. */
type EventGroup = {
  readonly event: JobEvent;
  readonly source: string;
  readonly firstId: string;
  copies: number;
};

/**
 * Locks rows of `jobs` sorted by (source, job_id) as bytes, and `events` rows only under their job's lock (R46).
 *
 * - `job` runs before `event` for each row, since `event` joins what `job` returns: a sequence is drawn only under the job's lock
 *   (R1).
 * - `fresh` has the events that are new. They are still to be published, all as one row of `batch`; but if an event of the
 *   job is held, a new one stands behind it, in `held` (R4).
 *
 * `late` needs no read of the job's former row: highest_progress exceeds this event's only if an earlier event's
 * did, and a progress event ends no job.
 *
 * `occurred_at` is cut to microseconds, all that a timestamptz holds: Postgres refuses text beyond 128 bytes.
 */
const TALLY = `
with incoming as (
  select * from unnest(
    $1::text[], $2::text[], $3::text[], $4::smallint[], $5::bytea[], $6::text[], $7::text[], $8::uuid[], $9::int[]
  ) as t (source, job_id, status, progress, content_hash, occurred_at, error_code, delivery_id, copies)
),
job as (
  insert into jobs as j (
    source, job_id, first_seen_at, last_seen_at, highest_progress, completed_at, failed_at, last_status, last_writer
  )
  select source, job_id, now(), now(), progress,
         case status when 'completed' then now() end, case status when 'failed' then now() end, status, $11::bigint
  from incoming order by source collate "C", job_id collate "C"
  on conflict (source, job_id) do update set
    last_seen_at = greatest(j.last_seen_at, excluded.last_seen_at),
    highest_progress = greatest(j.highest_progress, excluded.highest_progress),
    completed_at = coalesce(j.completed_at, excluded.completed_at),
    failed_at = coalesce(j.failed_at, excluded.failed_at),
    last_status = case
      when excluded.completed_at is not null and j.completed_at is null then 'completed'
      when excluded.failed_at is not null and j.failed_at is null then 'failed'
      else j.last_status
    end,
    last_writer = excluded.last_writer,
    writer_changed = j.last_writer is distinct from excluded.last_writer,
    hold_version = j.hold_version + j.is_held::int
  returning j.source, j.job_id, j.highest_progress, j.last_status, j.writer_changed, j.is_held
),
event as (
  insert into events as e (
    source, job_id, status, progress_percentage, late, occurred_at, error_code, recorded_at, delivery_id, content_hash,
    repeats
  )
  select i.source, i.job_id, i.status, i.progress,
         i.status = 'processing' and (job.last_status <> 'processing' or job.highest_progress > i.progress),
         (rtrim(left(i.occurred_at, 26), 'Z') || 'Z')::timestamptz, i.error_code, now(), i.delivery_id, i.content_hash,
         i.copies - 1
  from incoming i join job using (source, job_id)
  on conflict on constraint events_dedup_key do update set repeats = e.repeats + excluded.repeats + 1
  returning e.sequence, e.source, e.job_id, e.late, e.recorded_at, e.delivery_id, e.content_hash
),
fresh as (
  select event.sequence, event.late, event.recorded_at, i.source, i.job_id, i.status, i.progress, job.is_held
  from incoming i join event using (source, job_id) join job using (source, job_id)
  where event.delivery_id = i.delivery_id
),
batch as (
  insert into outbox_batches (first, sequences, bytes, writer, number)
  select min(sequence), array_agg(sequence order by sequence), $10::int, $11::bigint, $12::int
  from fresh where not is_held having count(*) > 0
),
held as (
  insert into outbox_held (sequence, source, job_id, status, progress_percentage, late, recorded_at)
  select sequence, source, job_id, status, progress, late, recorded_at from fresh where is_held
)`;

const RECORD: Statement = {
  name: 'record-batch',
  text: `${TALLY},
delivery as (
  select t.*, event.sequence as event_sequence, coalesce(event.late, false) as late,
         coalesce(job.writer_changed, false) as writer_changed, coalesce(job.is_held, false) as is_held,
         case
           when t.known_outcome <> 'event' then t.known_outcome
           when event.delivery_id = t.id then 'accepted'
           when event.content_hash = t.content_hash then 'duplicate'
           else 'conflict'
         end as outcome
  from unnest(
    $13::uuid[], $14::text[], $15::text[], $16::smallint[], $17::text[], $18::text[], $19::text[], $20::smallint[],
    $21::text[], $22::bytea[], $23::text[], $24::text[], $25::text[], $26::text[], $27::int[], $28::bytea[],
    $29::text[], $30::text[]
  ) as t (
    id, source, known_outcome, http_status, reason, job_id, status, progress, error_code,
    content_hash, path, remote_address, headers, secret_fingerprint, body_bytes, body,
    peer_address, signed_by
  )
  left join event on t.known_outcome = 'event' and event.source = t.source and event.job_id = t.job_id
  left join job on t.known_outcome = 'event' and job.source = t.source and job.job_id = t.job_id
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
         body_bytes, case when outcome = 'duplicate' then sha256(body) end, case when outcome <> 'duplicate' then body end,
         peer_address, signed_by
  from delivery
)
select id, outcome, late, writer_changed as "writerChanged", outcome = 'accepted' and is_held as held,
       case when outcome = 'accepted' and not is_held then event_sequence end as sequence, now()::text as "recordedAt"
from delivery`,
};

type RecordedRow = Pick<TalliedDelivery, 'outcome' | 'late' | 'writerChanged' | 'held'> & {
  readonly id: string;
  readonly sequence: string | null;
  /** The same in each row, so it is not parsed for each. */
  readonly recordedAt: string;
};

/**
 * Records the batch, all or nothing, and returns each delivery's outcome, in the order of the batch.
 * A batch has at most one dedup key per job, since its events share the job's row. The batch writer ensures this.
 * Not idempotent: if the result is unknown, let the sender repeat: the dedup key finds what was written.
 * @param mark not used before. Without it no relay has the events in memory
 * @throws the driver's errors; `isRetryable` and `faultOf` say what to do.
 */
export async function recordDeliveries(
  connection: Pick<DatabaseConnection, 'execute'>,
  batch: readonly DeliveryRecord[],
  mark?: WriteMark,
): Promise<TalliedDelivery[]> {
  const rows = await connection.execute<RecordedRow>(RECORD, [
    ...eventColumns(groupByEvent(batch)),
    bytesOfEvents(batch),
    mark?.writer ?? null,
    mark?.number ?? null,
    ...deliveryColumns(batch),
  ]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const recordedAt = toTime(rows[0]?.recordedAt ?? '');
  return batch.map((delivery) => {
    const row = byId.get(delivery.id);
    if (row === undefined) throw new Error('the ledger answered for other deliveries than it was given');
    const { outcome, late, writerChanged, held, sequence } = row;
    return {
      outcome,
      late,
      writerChanged,
      held,
      pending: sequence === null ? null : { sequence, recordedAt },
    };
  });
}

/** As the driver reads a time, so that an event has the same one whether it comes from here or from a table. */
const toTime: (text: string) => Date = types.getTypeParser(types.builtins.TIMESTAMPTZ);

/** About: a body that comes again counts again. */
const bytesOfEvents = (batch: readonly DeliveryRecord[]): number =>
  batch.reduce((sum, { outcome, body }) => sum + (outcome === 'event' ? (body?.length ?? 0) : 0), 0);

function groupByEvent(batch: readonly DeliveryRecord[]): EventGroup[] {
  const groups = new Map<string, EventGroup>();
  for (const delivery of batch) {
    if (delivery.outcome !== 'event') continue;
    const job = jobKey(delivery.source, delivery.event.jobId);
    const group = groups.get(job);
    if (group === undefined) {
      groups.set(job, { event: delivery.event, source: delivery.source, firstId: delivery.id, copies: 1 });
    } else {
      group.copies += 1;
    }
  }
  return [...groups.values()];
}

/**
 * Records the events of quarantined deliveries, with the same order of locks. The caller has locked the deliveries'
 * rows already.
 */
export const RELEASE_QUARANTINED = `${TALLY},
released as (
  update deliveries d set released_at = now(), event_sequence = event.sequence
  from incoming i join event using (source, job_id)
  where d.id = i.delivery_id
  returning d.id, case
    when event.delivery_id = d.id then 'accepted'
    when event.content_hash = i.content_hash then 'duplicate'
    else 'conflict'
  end as outcome
)
select id, outcome from released`;

/** The values of `RELEASE_QUARANTINED`: one event a job at most. Their batch is of no writer: no relay has it in memory. */
export function releaseColumns(
  released: readonly { source: string; deliveryId: string; event: JobEvent }[],
): unknown[] {
  const bytes = released.reduce((sum, { event }) => sum + event.data.length, 0);
  const groups = released.map(({ source, deliveryId, event }) => ({
    source,
    event,
    firstId: deliveryId,
    copies: 1,
  }));
  return [...eventColumns(groups), bytes, null, null];
}

/** Names one job across sources. Neither part can contain a space. */
export function jobKey(source: string, jobId: string): string {
  return `${source} ${jobId}`;
}

function eventColumns(groups: readonly EventGroup[]): Buffer[] {
  return [
    textArray(groups.map((group) => group.source)),
    textArray(groups.map((group) => group.event.jobId)),
    textArray(groups.map((group) => group.event.status)),
    int2Array(groups.map((group) => group.event.progress)),
    byteaArray(groups.map((group) => group.event.contentHash)),
    textArray(groups.map((group) => group.event.occurredAt)),
    textArray(groups.map((group) => group.event.errorCode)),
    uuidArray(groups.map((group) => group.firstId)),
    int4Array(groups.map((group) => group.copies)),
  ];
}

function deliveryColumns(batch: readonly DeliveryRecord[]): Buffer[] {
  return [
    uuidArray(batch.map((delivery) => delivery.id)),
    textArray(batch.map((delivery) => delivery.source)),
    textArray(batch.map((delivery) => delivery.outcome)),
    int2Array(batch.map((delivery) => (delivery.outcome === 'event' ? null : delivery.httpStatus))),
    textArray(batch.map((delivery) => delivery.reason)),
    textArray(batch.map((delivery) => delivery.jobId)),
    textArray(batch.map((delivery) => delivery.status)),
    int2Array(batch.map((delivery) => delivery.progress)),
    textArray(batch.map((delivery) => (delivery.outcome === 'event' ? delivery.event.errorCode : null))),
    byteaArray(batch.map((delivery) => (delivery.outcome === 'event' ? delivery.event.contentHash : null))),
    textArray(batch.map((delivery) => delivery.path)),
    textArray(batch.map((delivery) => delivery.remoteAddress)),
    textArray(batch.map((delivery) => delivery.headers)),
    textArray(batch.map((delivery) => delivery.secretFingerprint)),
    int4Array(batch.map((delivery) => delivery.bodyBytes)),
    byteaArray(batch.map((delivery) => delivery.body)),
    textArray(batch.map((delivery) => delivery.peerAddress)),
    textArray(batch.map((delivery) => delivery.signedBy)),
  ];
}
