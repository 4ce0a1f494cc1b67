// The list of deliveries, one delivery, and its body. No list reads bodies. The quarantine is made of the same rows.

import { type Kysely, sql } from 'kysely';
import { parseJson } from '../../base/json/json.ts';
import { NO_SOURCE } from '../../base/signing/signature-cause.ts';
import { eventId, type Status } from '../../event/index.ts';
import { BODY_SHA256, type Database } from '../../ledger/index.ts';
import { partsByDay } from '../kernel/list/days.queries.ts';
import {
  byAllSources,
  byColumn,
  type FilterTable,
  type Scoped,
  sourcesAndJobs,
  statusOf,
} from '../kernel/list/filters.queries.ts';
import { createList, type List, questionOf } from '../kernel/list/list.queries.ts';
import type { ListSpec } from '../kernel/list/range.queries.ts';
import { shownColumns } from '../kernel/list/shown-columns.queries.ts';
import type { Delivery, DeliveryDetail, deliveryFilters } from './contract.ts';

export type DeliveryFilters = Scoped<typeof deliveryFilters>;

/** A delivery with what only those may see who see its `signed_by`, too: `shownTo` makes what a caller sees. */
export type AuditedDelivery = Delivery & { readonly signed_by: string | null };

/** Joined to a page. */
type FromEvent = 'event_source' | 'event_job_id' | 'event_status' | 'event_progress';

type DeliveryRow = Omit<AuditedDelivery, 'event_id'> & {
  event_sequence: string | null;
  event_source: string | null;
  event_job_id: string;
  event_status: Status;
  event_progress: number | null;
};

// The event by its primary key: the columns of a released delivery may differ from those that make the event's id.
const complete = {
  columns: sql`page.*, e.source as event_source, e.job_id as event_job_id, e.status as event_status,
    e.progress_percentage as event_progress`,
  joins: sql`left join events e on e.sequence = page.event_sequence`,
};

export const deliverySpec: ListSpec<DeliveryRow> = {
  table: 'deliveries',
  row: sql`t.id, t.received_at, t.source, t.outcome, t.http_status, t.reason, t.job_id, t.status,
    t.progress_percentage, t.error_code, t.event_sequence, t.path, t.remote_address, t.peer_address,
    t.secret_fingerprint, t.body_bytes, t.body is not null as body_kept, t.released_at,
    t.signed_by, t.discarded_at, t.discarded_by, t.discard_note, t.unanswered`,
  columns: shownColumns<Omit<DeliveryRow, FromEvent>>({
    id: 'column',
    received_at: 'time',
    source: 'column',
    outcome: 'column',
    http_status: 'column',
    reason: 'column',
    job_id: 'column',
    status: 'column',
    progress_percentage: 'column',
    error_code: 'column',
    event_sequence: 'column',
    path: 'column',
    remote_address: 'column',
    peer_address: 'column',
    secret_fingerprint: 'column',
    body_bytes: 'column',
    body_kept: 'column',
    released_at: 'time',
    signed_by: 'column',
    discarded_at: 'time',
    discarded_by: 'column',
    discard_note: 'column',
    unanswered: 'column',
  }),
  time: 'received_at',
  ties: [{ column: 'id', type: 'uuid' }],
  // Index deliveries_source.
  all: (bounds) =>
    partsByDay('received_at', bounds, Date.now()).map((part) => byAllSources('deliveries', part)),
  complete,
};

export const byStatus = (status: string) =>
  byColumn('status', status, {
    usual: ['processing', 'completed'],
    only: sql`t.status not in ('processing', 'completed')`,
  });

// Indexes deliveries_job and deliveries_source.
export const ofSourcesAndJobs = sourcesAndJobs('deliveries', 'in order');

/** Where the filters of `deliveries` become SQL, and by which index. */
const deliveryTable: FilterTable<DeliveryFilters> = {
  ...ofSourcesAndJobs,
  // Index deliveries_error.
  error_code: (code) => byColumn('error_code', code, { only: sql`t.error_code is not null` }),
  // Both by deliveries_status, which leaves out the usual ones.
  status: byStatus,
  kind: (kind) => byStatus(statusOf(kind)),
  // Index deliveries_outcome, which leaves out the usual one.
  outcome: (outcome) =>
    byColumn('outcome', outcome, { usual: ['accepted'], only: sql`t.outcome <> 'accepted'` }),
  // Index deliveries_secret.
  secret_fingerprint: (fingerprint) => byColumn('secret_fingerprint', fingerprint),
  // Index deliveries_remote.
  remote_address: (address) => byColumn('remote_address', address),
};

export const deliveries: List<DeliveryFilters, AuditedDelivery> = createList(deliverySpec, {
  toQuestion: questionOf(deliveryTable),
  toItem: toDelivery,
});

export function toDelivery(row: DeliveryRow): AuditedDelivery {
  const { event_sequence: _, event_source, event_job_id, event_status, event_progress, ...shown } = row;
  if (event_source === null) return { ...shown, event_id: null };
  const key = { jobId: event_job_id, status: event_status, progress: event_progress };
  return { ...shown, event_id: eventId(event_source, key) };
}

/**
 * What a caller sees who is limited to `sources` (null: to none). That another source's secret signed it is told to those who
 * see both. Others see the reason of a signature that matches nothing: the column has it.
 */
export function shownTo<Shown extends AuditedDelivery>(
  sources: readonly string[] | null,
  delivery: Shown,
): Shown {
  const { signed_by: signer } = delivery;
  if (signer === null || !(sources === null || sources.includes(signer))) return delivery;
  const reason =
    delivery.reason === NO_SOURCE
      ? `${NO_SOURCE}; signed with the secret of ${signer}`
      : `signed with the secret of another source: ${signer}`;
  return { ...delivery, reason };
}

/** The deliveries with these ids and times (primary key), in the order of their time. */
export async function readDeliveriesNamed(
  db: Kysely<Database>,
  keys: readonly { readonly id: string; readonly at: string }[],
): Promise<AuditedDelivery[]> {
  const { rows } = await sql<DeliveryRow>`
    with page as materialized (
      select ${deliverySpec.columns} from (
        select ${deliverySpec.row}
        from unnest(${keys.map(({ id }) => id)}::uuid[], ${keys.map(({ at }) => at)}::timestamptz[]) as k (id, at)
        join deliveries t on t.id = k.id and t.received_at = k.at
      ) t)
    select ${complete.columns} from page ${complete.joins} order by page.received_at, page.id`.execute(db);
  return rows.map(toDelivery);
}

/** Undefined if there is none, or no longer: a day's partition is dropped after `RETENTION_DAYS`. */
export async function findDelivery(
  db: Kysely<Database>,
  id: string,
): Promise<(AuditedDelivery & DeliveryDetail) | undefined> {
  // By the primary key, a look-up in each partition.
  const {
    rows: [row],
  } = await sql<DeliveryRow & { headers: string; body_sha256: string | null }>`
    with page as materialized (
      select ${deliverySpec.columns}, t.headers, t.body_sha256
      from (select ${deliverySpec.row}, t.headers, encode(${sql.raw(BODY_SHA256)}, 'hex') as body_sha256
            from deliveries t where t.id = ${id}::uuid limit 1) t)
    select ${complete.columns} from page ${complete.joins}`.execute(db);
  if (row === undefined) return undefined;
  const { headers, body_sha256, ...delivery } = row;
  return { ...toDelivery(delivery), headers: parseJson(headers) as Record<string, unknown>, body_sha256 };
}

/** The body as it came; null if it was not kept. Undefined if there is no such delivery. */
export async function findBody(
  db: Kysely<Database>,
  id: string,
): Promise<{ readonly source: string; readonly body: Buffer | null } | undefined> {
  const row = await db
    .selectFrom('deliveries')
    .select(['source', 'body'])
    .where('id', '=', id)
    .executeTakeFirst();
  return row;
}

/** The deliveries of one job, oldest first, from behind the place (time, id): index deliveries_job. */
export async function readDeliveriesOfJob(
  db: Kysely<Database>,
  job: { source: string; jobId: string },
  { after, limit }: { after: { at: string; id: string }; limit: number },
): Promise<AuditedDelivery[]> {
  const { rows } = await sql<DeliveryRow>`
    with page as materialized (
      select ${deliverySpec.columns} from (
        select ${deliverySpec.row} from deliveries t
        where t.source = ${job.source} and t.job_id = ${job.jobId} and t.received_at >= ${after.at}::timestamptz
          and (t.received_at, t.id) > (${after.at}::timestamptz, ${after.id}::uuid)
        order by t.source, t.job_id, t.received_at fetch first (${limit}) rows with ties
      ) t order by t.received_at, t.id limit ${limit})
    select ${complete.columns} from page ${complete.joins} order by page.received_at, page.id`.execute(db);
  return rows.map(toDelivery);
}
