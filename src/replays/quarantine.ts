// Lets go of what was kept aside: a quarantined delivery is understood again, with the present schemas, and then
// tallied as any other. Its row stays, with the time of its release. What is still not understood stays as it is.

import { CompiledQuery, sql, type Transaction } from 'kysely';
import { understand } from '../intake/event.ts';
import type { AuthenticBody } from '../intake/signature.ts';
import { eventId, type JobEvent } from '../ledger/event.ts';
import { jobKey, RELEASE, releaseColumns } from '../ledger/record.ts';
import type { Database } from '../ledger/tables.ts';
import { timeText } from '../ledger/time-text.ts';

export type Release = {
  readonly delivery_id: string;
  readonly source: string;
  readonly job_id: string;
  readonly result: 'accepted' | 'duplicate' | 'conflict' | 'still_quarantined';
  readonly event_id: string | null;
  readonly reason: string | null;
};

export type QuarantineFilter = {
  readonly source?: string | undefined;
  readonly status?: string | undefined;
  readonly job_id?: string | undefined;
  readonly job_id_prefix?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

/** One transaction locks as many jobs. */
export const RELEASED_AT_ONCE = 100;
/** Bodies that are in memory at one time. One is always taken. */
const BODIES_BYTES = 8 * 1024 * 1024;

type Held = {
  id: string;
  receivedAt: string;
  source: string;
  job_id: string;
  body: AuthenticBody | null;
};

/**
 * Releases one. Its row is locked: of two at once, one is told that it has been released.
 * @returns undefined if there is no such delivery, 'wrong state' if it is not in quarantine (any more).
 */
export async function releaseOne(
  trx: Transaction<Database>,
  id: string,
): Promise<Release | 'wrong state' | undefined> {
  const found = await held(trx).where('id', '=', id).select(['outcome', 'released_at']).executeTakeFirst();
  if (found === undefined) return undefined;
  if (found.outcome !== 'quarantined' || found.released_at !== null) return 'wrong state';
  const [release] = await releaseAll(trx, [found as Held]);
  return release;
}

/** Where a delivery's release would be decided: its source. Undefined if there is no such delivery. */
export async function sourceOfDelivery(trx: Transaction<Database>, id: string): Promise<string | undefined> {
  const row = await trx.selectFrom('deliveries').select('source').where('id', '=', id).executeTakeFirst();
  return row?.source;
}

/**
 * Releases the oldest ones that match, from behind `after` (index deliveries_quarantine). Those that somebody else
 * releases at this moment are left to him.
 * @returns `next`: where to go on; undefined when there are no more.
 */
export async function releaseMany(
  trx: Transaction<Database>,
  options: {
    filter: QuarantineFilter;
    sources: readonly string[] | null;
    after: { at: string; id: string } | undefined;
    limit: number;
  },
): Promise<{ releases: Release[]; next: { at: string; id: string } | undefined }> {
  const { filter, sources, after, limit } = options;
  let query = held(trx)
    .select('body_bytes')
    .where('outcome', '=', 'quarantined')
    .where('released_at', 'is', null)
    .orderBy('received_at')
    .orderBy('id')
    .limit(limit)
    .skipLocked();
  if (sources !== null) query = query.where(sql<boolean>`source = any(${[...sources]}::text[])`);
  if (filter.status !== undefined) query = query.where('status', '=', filter.status);
  if (filter.job_id !== undefined) query = query.where('job_id', '=', filter.job_id);
  if (filter.job_id_prefix !== undefined)
    query = query
      .where('job_id', '>=', filter.job_id_prefix)
      .where('job_id', '<', `${filter.job_id_prefix}\u{10FFFF}`);
  if (filter.from !== undefined)
    query = query.where(sql<boolean>`received_at >= ${filter.from}::timestamptz`);
  if (filter.to !== undefined) query = query.where(sql<boolean>`received_at < ${filter.to}::timestamptz`);
  if (after !== undefined)
    query = query.where(sql<boolean>`(received_at, id) > (${after.at}::timestamptz, ${after.id}::uuid)`);
  const found = await query.execute();
  let bytes = 0;
  const taken = found.filter(({ body_bytes }, index) => {
    bytes += body_bytes ?? 0;
    return index === 0 || bytes <= BODIES_BYTES;
  });
  const last = taken.at(-1);
  const isLast = found.length < limit && taken.length === found.length;
  return {
    releases: await releaseAll(trx, taken as Held[]),
    next: isLast || last === undefined ? undefined : { at: last.receivedAt, id: last.id },
  };
}

const held = (trx: Transaction<Database>) =>
  trx
    .selectFrom('deliveries')
    .select(['id', 'source', 'job_id', 'body', timeText('deliveries.received_at').as('receivedAt')])
    .forUpdate();

/** In the order given, which is that of their acceptance for those of one job. */
async function releaseAll(trx: Transaction<Database>, found: readonly Held[]): Promise<Release[]> {
  const understood = found.map((delivery) => ({ delivery, ...understandAgain(delivery) }));
  const outcomes = new Map<string, Release['result']>();
  const released = understood.flatMap(({ delivery, event }) =>
    event === undefined ? [] : [{ source: delivery.source, deliveryId: delivery.id, event }],
  );
  for (const wave of inWaves(released)) {
    const { rows } = await trx.executeQuery<{ id: string; outcome: Release['result'] }>(
      CompiledQuery.raw(RELEASE, releaseColumns(wave)),
    );
    for (const { id, outcome } of rows) outcomes.set(id, outcome);
  }
  return understood.map(({ delivery, event, reason }) => ({
    delivery_id: delivery.id,
    source: delivery.source,
    job_id: delivery.job_id,
    result: outcomes.get(delivery.id) ?? 'still_quarantined',
    event_id: event === undefined ? null : eventId(delivery.source, event),
    reason,
  }));
}

/** A statement takes one event of a job. The first wave has all jobs, so the others lock none that are not locked. */
function inWaves<T extends { source: string; event: JobEvent }>(released: readonly T[]): T[][] {
  const waves: T[][] = [];
  const count = new Map<string, number>();
  for (const each of released) {
    const job = jobKey(each.source, each.event.jobId);
    const wave = count.get(job) ?? 0;
    count.set(job, wave + 1);
    (waves[wave] ??= []).push(each);
  }
  return waves;
}

function understandAgain({ body, job_id: jobId }: Held): { event?: JobEvent; reason: string | null } {
  if (body === null) return { reason: 'its body is no longer kept' };
  const understood = understand(body);
  if (understood.outcome !== 'event') return { reason: understood.reason };
  if (understood.event.jobId !== jobId) return { reason: 'it is understood as of another job now' };
  return { event: understood.event, reason: null };
}
