// The list of deliveries, those in quarantine among them, one delivery, and its body. Bodies are read by their delivery's
// id alone and never in a list.

import { type Kysely, sql } from 'kysely';
import { parseJson } from '../../json.ts';
import { eventId, type Status, type Database, type DeliveryOutcome, timeText } from '../../ledger/index.ts';
import { byColumn, bySourcesAndJob, byUnusual, statusOf } from './filters.ts';
import { type Filter, type List, type Page, type PageOptions, readPage, typesOf } from './lists.ts';
import { type Spec } from './scan.ts';

/** As the API shows it. */
export type DeliveryItem = {
  readonly id: string;
  readonly received_at: string;
  readonly source: string;
  readonly outcome: DeliveryOutcome;
  readonly http_status: number;
  readonly reason: string | null;
  readonly job_id: string | null;
  readonly status: string | null;
  readonly progress_percentage: number | null;
  readonly error_code: string | null;
  readonly event_id: string | null;
  readonly path: string;
  readonly remote_address: string | null;
  readonly peer_address: string | null;
  readonly secret_fingerprint: string | null;
  readonly body_bytes: number | null;
  readonly body_kept: boolean;
  readonly released_at: string | null;
};

/** Times are RFC 3339. `sources`: those that may be seen, null for all. */
export type DeliveryFilters = {
  readonly sources: readonly string[] | null;
  readonly outcome?: DeliveryOutcome | undefined;
  readonly status?: string | undefined;
  readonly kind?: 'progress' | 'completed' | 'failed' | undefined;
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
  readonly error_code?: string | undefined;
  readonly secret_fingerprint?: string | undefined;
  readonly remote_address?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

export type QuarantineFilters = Pick<
  DeliveryFilters,
  'sources' | 'status' | 'job_id' | 'job_id_prefix' | 'from' | 'to'
> & { readonly released?: boolean | undefined };

// The event by its primary key: a released delivery need not hold what makes the event's id.
const complete = {
  columns: sql`page.*, e.source as event_source, e.job_id as event_job_id, e.status as event_status,
    e.progress_percentage as event_progress`,
  joins: sql`left join events e on e.sequence = page.event_sequence`,
};

const spec: Spec = {
  table: 'deliveries',
  row: sql`t.id, t.received_at, t.source, t.outcome, t.http_status, t.reason, t.job_id, t.status,
    t.progress_percentage, t.error_code, t.event_sequence, t.path, t.remote_address, t.peer_address,
    t.secret_fingerprint, t.body_bytes, t.body is not null as body_kept, t.released_at`,
  columns: sql`t.id, ${timeText('t.received_at')} as received_at, t.source, t.outcome, t.http_status, t.reason, t.job_id,
    t.status, t.progress_percentage, t.error_code, t.event_sequence, t.path, t.remote_address, t.peer_address,
    t.secret_fingerprint, t.body_bytes, t.body_kept, ${timeText('t.released_at')} as released_at`,
  time: 'received_at',
  ties: [{ column: 'id', type: 'uuid' }],
  complete,
};

async function readDeliveries(
  db: Kysely<Database>,
  { filters, own, options }: { filters: DeliveryFilters; own: readonly Filter[]; options: PageOptions },
): Promise<Page<DeliveryItem>> {
  const { sure, maybe, filters: ofJob } = bySourcesAndJob(filters, 'by time');
  const { rows, next } = await readPage(
    db,
    spec,
    {
      from: filters.from,
      to: filters.to,
      ...(sure && { sure }),
      ...(maybe && { maybe }),
      filters: [...ofJob, ...own, ...byStatus(filters.status)],
    },
    options,
  );
  return { items: (rows as DeliveryRow[]).map(toDelivery), next };
}

const byStatus = (status: string | undefined) =>
  byUnusual('status', status, {
    usual: ['processing', 'completed'],
    only: sql`t.status not in ('processing', 'completed')`,
  });

export const deliveries: List<DeliveryFilters, DeliveryItem> = {
  types: typesOf(spec),
  read: (db, filters, options) =>
    readDeliveries(db, {
      filters,
      options,
      own: [
        ...byUnusual('outcome', filters.outcome, { usual: ['accepted'], only: sql`t.outcome <> 'accepted'` }),
        ...byStatus(statusOf(filters.kind)),
        ...byColumn('error_code', filters.error_code, { only: sql`t.error_code is not null` }),
        ...byColumn('secret_fingerprint', filters.secret_fingerprint),
        ...byColumn('remote_address', filters.remote_address),
      ],
    }),
};

/** Those that wait for an operator, or those that were released. */
export const quarantine: List<QuarantineFilters, DeliveryItem> = {
  types: typesOf(spec),
  read: (db, filters, options) => {
    // Indexes deliveries_quarantine and deliveries_released_time hold just these.
    const condition = filters.released
      ? sql`t.outcome = 'quarantined' and t.released_at is not null`
      : sql`t.outcome = 'quarantined' and t.released_at is null`;
    const own = [{ condition, access: { by: 'partial', condition } as const }];
    return readDeliveries(db, { filters, options, own });
  },
};

type DeliveryRow = Omit<DeliveryItem, 'event_id'> & {
  event_sequence: string | null;
  event_source: string | null;
  event_job_id: string;
  event_status: Status;
  event_progress: number | null;
};

function toDelivery(row: DeliveryRow): DeliveryItem {
  const { event_sequence: _, event_source, event_job_id, event_status, event_progress, ...shown } = row;
  if (event_source === null) return { ...shown, event_id: null };
  const key = { jobId: event_job_id, status: event_status, progress: event_progress };
  return { ...shown, event_id: eventId(event_source, key) };
}

/** Those that are named by id and time: the primary key. In the order of their time. */
export async function readDeliveriesNamed(
  db: Kysely<Database>,
  keys: readonly { readonly id: string; readonly at: string }[],
): Promise<DeliveryItem[]> {
  const { rows } = await sql<DeliveryRow>`
    with page as materialized (
      select ${spec.columns} from (
        select ${spec.row}
        from unnest(${keys.map(({ id }) => id)}::uuid[], ${keys.map(({ at }) => at)}::timestamptz[]) as k (id, at)
        join deliveries t on t.id = k.id and t.received_at = k.at
      ) t)
    select ${complete.columns} from page ${complete.joins} order by page.received_at, page.id`.execute(db);
  return rows.map(toDelivery);
}

export type DeliveryDetail = DeliveryItem & {
  readonly headers: Record<string, unknown>;
  readonly body_sha256: string | null;
};

/** Undefined if there is none; it may have gone with its day. */
export async function findDelivery(db: Kysely<Database>, id: string): Promise<DeliveryDetail | undefined> {
  // By the primary key, a look-up in each partition.
  const {
    rows: [row],
  } = await sql<DeliveryRow & { headers: string; body_sha256: string | null }>`
    with page as materialized (
      select ${spec.columns}, t.headers, t.body_sha256
      from (select ${spec.row}, t.headers, encode(t.body_sha256, 'hex') as body_sha256
            from deliveries t where t.id = ${id}::uuid limit 1) t)
    select ${complete.columns} from page ${complete.joins}`.execute(db);
  if (row === undefined) return undefined;
  const { headers, body_sha256, ...delivery } = row;
  return { ...toDelivery(delivery), headers: parseJson(headers) as Record<string, unknown>, body_sha256 };
}

/** As it came. Undefined if there is no such delivery; `body` is null where none was kept. */
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

/** Of one job, oldest first, behind the place (time, id): index deliveries_job. */
export async function readDeliveriesOfJob(
  db: Kysely<Database>,
  job: { source: string; jobId: string },
  { after, limit }: { after: { at: string; id: string }; limit: number },
): Promise<DeliveryItem[]> {
  const { rows } = await sql<DeliveryRow>`
    with page as materialized (
      select ${spec.columns} from (
        select ${spec.row} from deliveries t
        where t.source = ${job.source} and t.job_id = ${job.jobId} and t.received_at >= ${after.at}::timestamptz
          and (t.received_at, t.id) > (${after.at}::timestamptz, ${after.id}::uuid)
        order by t.source, t.job_id, t.received_at, t.id limit ${limit}
      ) t order by t.received_at, t.id)
    select ${complete.columns} from page ${complete.joins} order by page.received_at, page.id`.execute(db);
  return rows.map(toDelivery);
}
