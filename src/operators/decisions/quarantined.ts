// Finds and locks the quarantined deliveries that an operator wants to release (release.ts).

import { sql, type Transaction } from 'kysely';
import type { z } from 'zod';
import { waitingInQuarantine } from '../audit/deliveries.ts';
import type { quarantineFilters } from '../contract/quarantine.ts';
import { type AuthenticBody, type Database, jobKey, timeText } from '../../ledger/index.ts';

export type QuarantineFilter = Omit<z.output<z.ZodObject<typeof quarantineFilters>>, 'released'>;

/** Of one job in one call. Each is a statement of its own, and the other jobs stay locked meanwhile. */
export const RELEASED_OF_A_JOB = 8;
/** Bodies in memory at one time. The first delivery is taken whatever its size. */
const BODIES_BYTES = 8 * 1024 * 1024;

/** A delivery without its body. `at` is its time with all of its microseconds. */
type Found = { id: string; at: string; source: string; job_id: string; body_bytes: number | null };

/** `body` is null where it is no longer kept. */
export type Quarantined = { id: string; source: string; job_id: string; body: AuthenticBody | null };

export type ReleasePlace = { readonly at: string; readonly id: string };

export type ReleaseRequest = {
  readonly filter: QuarantineFilter;
  /** Null for all. */
  readonly sources: readonly string[] | null;
  readonly after: ReleasePlace | undefined;
  readonly limit: number;
};

/** The source of a delivery, to check the caller's scope. Undefined if there is no such delivery. */
export async function sourceOfDelivery(trx: Transaction<Database>, id: string): Promise<string | undefined> {
  const row = await trx.selectFrom('deliveries').select('source').where('id', '=', id).executeTakeFirst();
  return row?.source;
}

/** Locks its row. @returns undefined if there is no such delivery, 'wrong state' if it is not in quarantine (any more) */
export async function lockOne(
  trx: Transaction<Database>,
  id: string,
): Promise<Quarantined | 'wrong state' | undefined> {
  const found = await trx
    .selectFrom('deliveries')
    .select(['id', 'source', 'job_id', 'body', 'outcome', 'released_at'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (found === undefined) return undefined;
  const isQuarantined = found.outcome === 'quarantined' && found.released_at === null;
  return isQuarantined ? (found as Quarantined) : 'wrong state';
}

/**
 * Locks the oldest deliveries that match, from behind `after`; fewer than `limit` if many are of one job, or large. Skips
 * those that another transaction has locked.
 * @returns `next`: where the next call goes on; undefined if none are left
 */
export async function lockOldest(
  trx: Transaction<Database>,
  order: ReleaseRequest,
): Promise<{ locked: Quarantined[]; next: ReleasePlace | undefined }> {
  const found = await findOldest(trx, order);
  const taken = withinLimits(found);
  const last = taken.at(-1);
  const isLast = found.length < order.limit && taken.length === found.length;
  return {
    locked: await lock(trx, taken),
    next: isLast || last === undefined ? undefined : { at: last.at, id: last.id },
  };
}

/** By index deliveries_quarantine. Locks nothing. */
async function findOldest(
  trx: Transaction<Database>,
  { filter, sources, after, limit }: ReleaseRequest,
): Promise<Found[]> {
  const { from, to, ...others } = filter;
  const conditions = waitingInQuarantine({ ...others, sources });
  if (from !== undefined) conditions.push(sql`t.received_at >= ${from}::timestamptz`);
  if (to !== undefined) conditions.push(sql`t.received_at < ${to}::timestamptz`);
  if (after !== undefined)
    conditions.push(sql`(t.received_at, t.id) > (${after.at}::timestamptz, ${after.id}::uuid)`);
  const { rows } = await sql<Found>`
    select t.id, t.source, t.job_id, t.body_bytes, ${timeText('t.received_at')} as at
    from deliveries t where ${sql.join(conditions, sql` and `)}
    order by t.received_at, t.id limit ${limit}`.execute(trx);
  return rows;
}

/** The first ones, up to the one that exceeds a limit. */
function withinLimits(found: readonly Found[]): Found[] {
  const ofJob = new Map<string, number>();
  let bytes = 0;
  const end = found.findIndex(({ source, job_id, body_bytes }, index) => {
    const job = jobKey(source, job_id);
    const count = (ofJob.get(job) ?? 0) + 1;
    ofJob.set(job, count);
    bytes += body_bytes ?? 0;
    return index > 0 && (bytes > BODIES_BYTES || count > RELEASED_OF_A_JOB);
  });
  return found.slice(0, end < 0 ? found.length : end);
}

/** Locks these deliveries by the primary key, and reads their bodies. */
async function lock(trx: Transaction<Database>, taken: readonly Found[]): Promise<Quarantined[]> {
  if (taken.length === 0) return [];
  const { rows } = await sql<Quarantined>`
    select d.id, d.source, d.job_id, d.body
    from unnest(${taken.map(({ id }) => id)}::uuid[], ${taken.map(({ at }) => at)}::timestamptz[]) as k (id, at)
    join deliveries d on d.id = k.id and d.received_at = k.at
    where d.outcome = 'quarantined' and d.released_at is null
    for update of d skip locked`.execute(trx);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return taken.flatMap(({ id }) => byId.get(id) ?? []);
}
