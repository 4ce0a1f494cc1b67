// Finds and locks the deliveries in quarantine that an operator wants to release (release.ts) or discard (discard.ts).

import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import {
  IS_WAITING,
  quarantineConditions,
  readDeliveriesNamed,
  receivedBetween,
} from '../audit/deliveries.ts';
import { COUNTED_MAX, SAMPLE_MAX } from '../contract/orders.ts';
import type { QuarantineFilter, QuarantinePreview } from '../contract/quarantine.ts';
import { type AuthenticBody, type Database, jobKey, TIME_FORMAT, timeText } from '../../ledger/index.ts';

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
export const NOT_WAITING = {
  'never quarantined': 'it is not in quarantine, and never was',
  released: 'it is not in quarantine any more: it was released',
  discarded: 'it is not in quarantine any more: it was discarded; this cannot be undone',
} as const;
export type NotWaiting = keyof typeof NOT_WAITING;

export type QuarantinePlace = { readonly at: string; readonly id: string };

/** Which deliveries, of those that wait. */
export type QuarantineRequest = {
  readonly filter: QuarantineFilter;
  /** Null for all. */
  readonly sources: readonly string[] | null;
  readonly after: QuarantinePlace | undefined;
  readonly limit: number;
};

/** The source of a delivery, to check the caller's scope. Undefined if there is no such delivery. */
export async function sourceOfDelivery(trx: Transaction<Database>, id: string): Promise<string | undefined> {
  const row = await trx.selectFrom('deliveries').select('source').where('id', '=', id).executeTakeFirst();
  return row?.source;
}

/** Locks its row. @returns undefined if there is no such delivery */
export async function lockOne(
  trx: Transaction<Database>,
  id: string,
): Promise<(Quarantined & Found) | NotWaiting | undefined> {
  const found = await trx
    .selectFrom('deliveries')
    .select(['id', 'source', 'job_id', 'reason', 'body', 'body_bytes'])
    .select(['outcome', 'released_at', 'discarded_at', timeText('received_at').as('at')])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  return found && (whyNotWaiting(found) ?? (found as Quarantined & Found));
}

/** Undefined if it waits. */
export function whyNotWaiting(delivery: {
  readonly outcome: string;
  readonly released_at: unknown;
  readonly discarded_at: unknown;
}): NotWaiting | undefined {
  if (delivery.outcome !== 'quarantined') return 'never quarantined';
  if (delivery.released_at !== null) return 'released';
  return delivery.discarded_at === null ? undefined : 'discarded';
}

/**
 * Locks the oldest deliveries that match, from behind `after`; fewer than `limit` if many are of one job, or large. Skips
 * those that another transaction has locked.
 * @returns `next`: where the next call goes on; undefined if none are left
 */
export async function lockOldest(
  trx: Transaction<Database>,
  order: QuarantineRequest,
): Promise<{ locked: Quarantined[]; next: QuarantinePlace | undefined }> {
  const found = await findOldest(trx, order);
  const taken = withinLimits(found);
  const last = taken.at(-1);
  const isLast = found.length < order.limit && taken.length === found.length;
  return {
    locked: await lock(trx, taken),
    next: isLast || last === undefined ? undefined : { at: last.at, id: last.id },
  };
}

/** Of those that wait, by index deliveries_quarantine. Locks nothing. */
export async function findOldest(
  db: Kysely<Database>,
  { filter, sources, after, limit }: QuarantineRequest,
): Promise<Found[]> {
  const { from, to, ...others } = filter;
  const conditions = [
    IS_WAITING,
    ...quarantineConditions({ ...others, sources }),
    ...receivedBetween({ from, to }),
  ];
  if (after !== undefined)
    conditions.push(sql`(t.received_at, t.id) > (${after.at}::timestamptz, ${after.id}::uuid)`);
  const { rows } = await sql<Found>`
    select t.id, t.source, t.job_id, t.reason, t.body_bytes, ${timeText('t.received_at')} as at
    from deliveries t where ${sql.join(conditions, sql` and `)}
    order by t.received_at, t.id limit ${limit}`.execute(db);
  return rows;
}

/** Changes nothing, and locks nothing. `to`: the end of the filter's time, now at the latest. */
export async function previewMatching(
  db: Kysely<Database>,
  request: Pick<QuarantineRequest, 'filter' | 'sources'>,
): Promise<QuarantinePreview> {
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
  { filter, sources }: Pick<QuarantineRequest, 'filter' | 'sources'>,
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

/** This time, but now at the latest. */
export const untilText = (to?: string): RawBuilder<string> =>
  sql`to_char(least(${to ?? null}::timestamptz, now()) at time zone 'UTC', ${sql.raw(TIME_FORMAT)})`;

/** The first ones, up to the one that exceeds a limit of a release. */
export function withinLimits<T extends Found>(found: readonly T[]): T[] {
  const ofJob = new Map<string, number>();
  let bytes = 0;
  const end = found.findIndex(({ source, job_id, body_bytes }, index) => {
    const job = jobKey(source, job_id ?? '');
    const count = (ofJob.get(job) ?? 0) + 1;
    ofJob.set(job, count);
    bytes += body_bytes ?? 0;
    return index > 0 && (bytes > BODIES_BYTES || count > RELEASED_OF_A_JOB);
  });
  return found.slice(0, end < 0 ? found.length : end);
}

/** Locks those of them that wait, by the primary key, and reads their bodies. */
export async function lock(trx: Transaction<Database>, taken: readonly Found[]): Promise<Quarantined[]> {
  if (taken.length === 0) return [];
  const { rows } = await sql<Quarantined>`
    select d.id, d.source, d.job_id, d.body
    from unnest(${taken.map(({ id }) => id)}::uuid[], ${taken.map(({ at }) => at)}::timestamptz[]) as k (id, at)
    join deliveries d on d.id = k.id and d.received_at = k.at
    where d.outcome = 'quarantined' and d.released_at is null and d.discarded_at is null
    for update of d skip locked`.execute(trx);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return taken.flatMap(({ id }) => byId.get(id) ?? []);
}
