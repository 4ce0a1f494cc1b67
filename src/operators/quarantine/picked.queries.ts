// Which deliveries in quarantine an order takes, to release (release.queries.ts) or discard them (discard.queries.ts): those that
// are named, or those of a filter, oldest first.

import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import { type AuthenticBody, type Database, jobKey, timeText } from '../../ledger/index.ts';
import { readDeliveriesNamed } from '../deliveries/queries.ts';
import type { Position } from '../kernel/list/cursor.ts';
import { untilText } from '../kernel/list/range.queries.ts';
import { COUNTED_MAX, SAMPLE_MAX } from '../kernel/order/fields.contract.ts';
import type { Order, Selection } from '../kernel/order/order.ts';
import type { DeliveryItem, QuarantineFilter, QuarantinePreview } from './contract.ts';
import { IS_WAITING, quarantineConditions, receivedBetween } from './queries.ts';

/** Of one job in one call. Each is a statement of its own, and the other jobs stay locked meanwhile. */
export const RELEASED_OF_A_JOB = 8;
/** Bodies in memory at one time. The first delivery is taken whatever its size. */
const BODIES_BYTES = 8 * 1024 * 1024;
/** Deliveries that a preview looks at, as many as the outbox's count. */
const LOOKED_AT_MAX = 100_000;

/** A delivery without its body. `at` is its time with all of its microseconds. */
export type Found = {
  id: string;
  at: string;
  source: string;
  job_id: string | null;
  reason: string | null;
  body_bytes: number | null;
};

/** `body` is null where it is no longer kept, `job_id` where it was recorded with the body alone. */
export type Quarantined = { id: string; source: string; job_id: string | null; body: AuthenticBody | null };

/** Why a delivery can be neither released nor discarded, for people. */
const NOT_WAITING = {
  'never quarantined': 'it is not in quarantine, and never was',
  released: 'it is not in quarantine any more: it was released',
  discarded: 'it is not in quarantine any more: it was discarded; this cannot be undone',
} as const;
type NotWaiting = keyof typeof NOT_WAITING;

/** Undefined if it waits. */
function whyNotWaiting(delivery: {
  readonly outcome: string;
  readonly released_at: unknown;
  readonly discarded_at: unknown;
}): NotWaiting | undefined {
  if (delivery.outcome !== 'quarantined') return 'never quarantined';
  if (delivery.released_at !== null) return 'released';
  return delivery.discarded_at === null ? undefined : 'discarded';
}

type Row = Found & { readonly notWaiting: NotWaiting | undefined };

export type Picked = {
  /** Those that wait, oldest first. They are locked by `lock`, or when they are discarded. */
  readonly waiting: readonly Found[];
  /** What was named and does not wait; it keeps back none of the others. */
  readonly others: DeliveryItem[];
  /** Where the next call goes on; undefined if none are left. */
  readonly next: Position | undefined;
};

/** @param fitting takes the first ones that one call can take, one at least */
export function pickWaiting(
  trx: Transaction<Database>,
  { which, ...order }: Order<QuarantineFilter>,
  fitting: (waiting: readonly Found[]) => readonly Found[] = (waiting) => waiting,
): Promise<Picked> {
  return which.filter === undefined
    ? pickNamed(trx, { ...order, ids: which.ids }, fitting)
    : pickMatching(trx, { ...order, filter: which.filter }, fitting);
}

type Page = Pick<Order<QuarantineFilter>, 'sources' | 'after' | 'limit'>;
type Fitting = NonNullable<Parameters<typeof pickWaiting>[2]>;

const placeOf = (last: Found | undefined): Position | undefined => last && [last.at, last.id];

/** Fewer than `limit` if not so many fit. */
async function pickMatching(
  trx: Transaction<Database>,
  { limit, ...order }: Page & { filter: QuarantineFilter },
  fitting: Fitting,
): Promise<Picked> {
  const found = await findOldest(trx, { ...order, limit });
  const waiting = fitting(found);
  const isLast = found.length < limit && waiting.length === found.length;
  return { waiting, others: [], next: isLast ? undefined : placeOf(waiting.at(-1)) };
}

/** In the order of their time. Waits for those that another transaction has locked. */
async function pickNamed(
  trx: Transaction<Database>,
  { ids, sources, after, limit }: Page & { ids: readonly string[] },
  fitting: Fitting,
): Promise<Picked> {
  const found = await readNamed(trx, { ids, sources, locking: sql`for update` });
  const left = found.filter((row) => after === undefined || isBehind(row, after));
  const waits = left.filter(({ notWaiting }) => notWaiting === undefined);
  const waiting = fitting(waits.slice(0, limit));
  const last = waiting.length < waits.length ? waiting.at(-1) : undefined;
  const page = last === undefined ? left : left.slice(0, left.findIndex(({ id }) => id === last.id) + 1);
  const known = new Set(found.map(({ id }) => id));
  // Said once, by the first call.
  const missing = after === undefined ? [...new Set(ids)].filter((id) => !known.has(id)) : [];
  return {
    waiting,
    others: [
      ...page.flatMap(({ id, notWaiting }) => (notWaiting ? [passedOver(id, notWaiting)] : [])),
      ...missing.map((id) => passedOver(id)),
    ],
    next: placeOf(last),
  };
}

/** By the primary key, in each partition. Locks in the order of their time, so that two orders do not deadlock. */
async function readNamed(
  db: Kysely<Database>,
  { ids, sources, locking }: Pick<Page, 'sources'> & { ids: readonly string[]; locking: RawBuilder<unknown> },
): Promise<Row[]> {
  const { rows } = await sql<Found & { outcome: string; released_at: unknown; discarded_at: unknown }>`
    select t.id, t.source, t.job_id, t.reason, t.body_bytes, ${timeText('t.received_at')} as at,
      t.outcome, t.released_at, t.discarded_at
    from deliveries t
    where t.id = any(${ids}::uuid[]) and (${sources}::text[] is null or t.source = any(${sources}::text[]))
    order by t.received_at, t.id ${locking}`.execute(db);
  return rows.map((row) => ({ ...row, notWaiting: whyNotWaiting(row) }));
}

const isBehind = (row: Found, [at = '', id = '']: Position) => (row.at === at ? row.id > id : row.at > at);

const passedOver = (id: string, notWaiting?: NotWaiting): DeliveryItem => ({
  delivery_id: id,
  result: notWaiting === undefined ? 'not_found' : 'wrong_state',
  event_id: null,
  reason: notWaiting === undefined ? null : NOT_WAITING[notWaiting],
});

/** Of those that wait, by index deliveries_quarantine. Locks nothing. */
async function findOldest(
  db: Kysely<Database>,
  { filter, sources, after, limit }: Page & { filter: QuarantineFilter },
): Promise<Found[]> {
  const { from, to, ...others } = filter;
  const conditions = [
    IS_WAITING,
    ...quarantineConditions({ ...others, sources }),
    ...receivedBetween({ from, to }),
  ];
  if (after !== undefined)
    conditions.push(sql`(t.received_at, t.id) > (${after[0]}::timestamptz, ${after[1]}::uuid)`);
  const { rows } = await sql<Found>`
    select t.id, t.source, t.job_id, t.reason, t.body_bytes, ${timeText('t.received_at')} as at
    from deliveries t where ${sql.join(conditions, sql` and `)}
    order by t.received_at, t.id limit ${limit}`.execute(db);
  return rows;
}

/** Those that wait. Changes nothing, and locks nothing. `to`: the end of the filter's time, now at the latest. */
export async function previewWaiting(
  db: Kysely<Database>,
  { which, sources }: Selection<QuarantineFilter>,
): Promise<QuarantinePreview> {
  if (which.filter !== undefined) return previewMatching(db, { filter: which.filter, sources });
  const named = await readNamed(db, { ids: which.ids, sources, locking: sql`` });
  const waiting = named.filter(({ notWaiting }) => notWaiting === undefined);
  const { rows } = await sql<{ to: string }>`select ${untilText()} as to`.execute(db);
  return {
    matched: waiting.length,
    matched_exactly: true,
    to: rows[0]?.to ?? '',
    sample: await readDeliveriesNamed(db, waiting.slice(0, SAMPLE_MAX)),
  };
}

/** The oldest ones that wait: what a release would take first. Changes nothing, and locks nothing. */
export async function findWaiting(
  db: Kysely<Database>,
  { which, sources }: Selection<QuarantineFilter>,
  limit: number,
): Promise<readonly Found[]> {
  if (which.filter !== undefined)
    return findOldest(db, { filter: which.filter, sources, after: undefined, limit });
  const named = await readNamed(db, { ids: which.ids, sources, locking: sql`` });
  return named.filter(({ notWaiting }) => notWaiting === undefined).slice(0, limit);
}

type Matching = Pick<Page, 'sources'> & { readonly filter: QuarantineFilter };

async function previewMatching(db: Kysely<Database>, request: Matching): Promise<QuarantinePreview> {
  const { count, isAll, to } = await countMatching(db, request);
  const oldest = await findOldest(db, { ...request, after: undefined, limit: SAMPLE_MAX });
  return {
    matched: Math.min(count, COUNTED_MAX),
    matched_exactly: isAll && count <= COUNTED_MAX,
    to,
    sample: await readDeliveriesNamed(db, oldest),
  };
}

/**
 * How many of those that wait match; of the oldest `LOOKED_AT_MAX` in the filter's time, whatever the other filters are.
 * @returns `isAll`: false if there were more to look at
 */
async function countMatching(
  db: Kysely<Database>,
  { filter, sources }: Matching,
): Promise<{ count: number; isAll: boolean; to: string }> {
  const { from, to, ...others } = filter;
  const conditions = [sql`true`, ...quarantineConditions({ ...others, sources })];
  const { rows } = await sql<{ count: number; isAll: boolean; to: string }>`
    select count(*) filter (where ${sql.join(conditions, sql` and `)})::int as count,
           count(*) < ${LOOKED_AT_MAX} as "isAll",
           ${untilText(to)} as to
    from (
      select t.source, t.job_id, t.status, t.reason from deliveries t
      where ${sql.join([IS_WAITING, ...receivedBetween({ from, to })], sql` and `)}
      order by t.received_at, t.id limit ${LOOKED_AT_MAX}
    ) t`.execute(db);
  const [counted] = rows;
  if (counted === undefined) throw new Error('a count gives one row');
  return counted;
}

/** The first ones, up to the one that exceeds a limit of a release. A trial writes nothing, and takes any number of one job. */
export function withinLimits<T extends Found>(found: readonly T[], ofOneJob = RELEASED_OF_A_JOB): T[] {
  const ofJob = new Map<string, number>();
  let bytes = 0;
  const end = found.findIndex(({ source, job_id, body_bytes }, index) => {
    const job = jobKey(source, job_id ?? '');
    const count = (ofJob.get(job) ?? 0) + 1;
    ofJob.set(job, count);
    bytes += body_bytes ?? 0;
    return index > 0 && (bytes > BODIES_BYTES || count > ofOneJob);
  });
  return found.slice(0, end < 0 ? found.length : end);
}

/** Locks those of them that wait, by the primary key, and reads their bodies. */
export async function lock(trx: Transaction<Database>, taken: readonly Found[]): Promise<Quarantined[]> {
  if (taken.length === 0) return [];
  const { rows } = await sql<Quarantined>`
    select t.id, t.source, t.job_id, t.body
    from unnest(${taken.map(({ id }) => id)}::uuid[], ${taken.map(({ at }) => at)}::timestamptz[]) as k (id, at)
    join deliveries t on t.id = k.id and t.received_at = k.at
    where ${IS_WAITING}
    for update of t skip locked`.execute(trx);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return taken.flatMap(({ id }) => byId.get(id) ?? []);
}
