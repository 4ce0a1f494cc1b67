// Lets go of what was kept aside: a quarantined delivery is understood again, with the present schemas, and then
// tallied as any other. Its row stays, with the time of its release. What is still not understood stays as it is.

import { CompiledQuery, sql, type Transaction } from 'kysely';
import { prefixEnd } from '../audit/filters.ts';
import {
  type AuthenticBody,
  understand,
  type Conflicts,
  findAlike,
  type DatabaseConnection,
  type Statement,
  eventId,
  type JobEvent,
  correctContentHash,
  type FirstBody,
  firstBodiesAhead,
  jobKey,
  RELEASE,
  releaseColumns,
  type Database,
  timeText,
} from '../../ledger/index.ts';

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
/** Each is a statement of its own, and the jobs of all the others stay locked meanwhile. */
export const RELEASED_OF_A_JOB = 8;
/** Bodies that are in memory at one time. One is always taken. */
const BODIES_BYTES = 8 * 1024 * 1024;
/**
 * A replica that freezes while it holds jobs' locks loses them before the intake of the others gives up on them, which
 * it does after 2 s with the default of `ANSWER_DEADLINE_MS`. Set only once bodies are understood: a large one takes
 * longer than this, and no job is locked by then.
 */
const FROZEN_MS = 1_000;

/** What can be told of a delivery without its body. `at` is its time with all of its microseconds. */
type Waiting = { id: string; at: string; source: string; job_id: string; body_bytes: number | null };

type Held = Pick<Waiting, 'id' | 'source' | 'job_id'> & { body: AuthenticBody | null };

/**
 * Releases one. Its row is locked: of two at once, one is told that it has been released.
 * @returns undefined if there is no such delivery, 'wrong state' if it is not in quarantine (any more).
 */
export async function releaseOne(
  trx: Transaction<Database>,
  id: string,
): Promise<Release | 'wrong state' | undefined> {
  const found = await trx
    .selectFrom('deliveries')
    .select(['id', 'source', 'job_id', 'body', 'outcome', 'released_at'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
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

type Order = {
  readonly filter: QuarantineFilter;
  readonly sources: readonly string[] | null;
  readonly after: { at: string; id: string } | undefined;
  readonly limit: number;
};

/**
 * Releases the oldest ones that match, from behind `after`: fewer than `limit` where many are of one job, or large. Those
 * that somebody else releases at this moment are left to him.
 * @returns `next`: where to go on; undefined when there are no more.
 */
export async function releaseMany(
  trx: Transaction<Database>,
  order: Order,
): Promise<{ releases: Release[]; next: { at: string; id: string } | undefined }> {
  const found = await findWaiting(trx, order);
  const taken = takeFrom(found);
  const last = taken.at(-1);
  const isLast = found.length < order.limit && taken.length === found.length;
  return {
    releases: await releaseAll(trx, await hold(trx, taken)),
    next: isLast || last === undefined ? undefined : { at: last.at, id: last.id },
  };
}

/** By index deliveries_quarantine. Locks nothing. */
async function findWaiting(
  trx: Transaction<Database>,
  { filter, sources, after, limit }: Order,
): Promise<Waiting[]> {
  let query = trx
    .selectFrom('deliveries')
    .select(['id', 'source', 'job_id', 'body_bytes', timeText('deliveries.received_at').as('at')])
    .where('outcome', '=', 'quarantined')
    .where('released_at', 'is', null)
    .orderBy('received_at')
    .orderBy('id')
    .limit(limit);
  if (sources !== null) query = query.where(sql<boolean>`source = any(${[...sources]}::text[])`);
  if (filter.status !== undefined) query = query.where('status', '=', filter.status);
  if (filter.job_id !== undefined) query = query.where('job_id', '=', filter.job_id);
  if (filter.job_id_prefix !== undefined)
    query = query
      .where('job_id', '>=', filter.job_id_prefix)
      .where('job_id', '<', prefixEnd(filter.job_id_prefix));
  if (filter.from !== undefined)
    query = query.where(sql<boolean>`received_at >= ${filter.from}::timestamptz`);
  if (filter.to !== undefined) query = query.where(sql<boolean>`received_at < ${filter.to}::timestamptz`);
  if (after !== undefined)
    query = query.where(sql<boolean>`(received_at, id) > (${after.at}::timestamptz, ${after.id}::uuid)`);
  return (await query.execute()) as Waiting[];
}

/** The first ones, up to the one that would be too much. */
function takeFrom(found: readonly Waiting[]): Waiting[] {
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

/** Locks these and no others, by the primary key, and reads their bodies. */
async function hold(trx: Transaction<Database>, taken: readonly Waiting[]): Promise<Held[]> {
  if (taken.length === 0) return [];
  const { rows } = await sql<Held>`
    select d.id, d.source, d.job_id, d.body
    from unnest(${taken.map(({ id }) => id)}::uuid[], ${taken.map(({ at }) => at)}::timestamptz[]) as k (id, at)
    join deliveries d on d.id = k.id and d.received_at = k.at
    where d.outcome = 'quarantined' and d.released_at is null
    for update of d skip locked`.execute(trx);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return taken.flatMap(({ id }) => byId.get(id) ?? []);
}

/**
 * In the order given, which is that of their acceptance for those of one job. Jobs are locked from the first wave to the
 * end of the transaction, and intake waits for them: what takes long (bodies are read and understood, also those of events
 * that these conflict with) is done before.
 */
async function releaseAll(trx: Transaction<Database>, found: readonly Held[]): Promise<Release[]> {
  const understood = found.map((delivery) => ({ delivery, ...understandAgain(delivery) }));
  const outcomes = new Map<string, Release['result']>();
  const released = understood.flatMap(({ delivery, event }) =>
    event === undefined ? [] : [{ source: delivery.source, deliveryId: delivery.id, event }],
  );
  const execute = executeIn(trx);
  const corrections = await lookAhead(execute, released);
  if (released.length > 0) await giveUpWhenFrozen(trx);
  for (const wave of inWaves(released)) {
    const { rows } = await trx.executeQuery<{ id: string; outcome: Release['result'] }>(
      CompiledQuery.raw(RELEASE, releaseColumns(wave)),
    );
    for (const { id, outcome } of rows) outcomes.set(id, outcome);
  }
  for (const { first, contentHash, ids } of corrections) {
    const conflicts = ids.filter((id) => outcomes.get(id) === 'conflict');
    if (conflicts.length === 0) continue;
    if (!(await correctContentHash(execute, first, { contentHash, ids: conflicts }))) continue;
    for (const id of conflicts) outcomes.set(id, 'duplicate');
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

type Correction = { first: FirstBody; contentHash: Buffer; ids: readonly string[] };

/**
 * Events whose hash was made of mangled keys, which some of these would conflict with (conflicts.ts). One that is made
 * after this look has its hash from today's reader.
 */
async function lookAhead(
  execute: DatabaseConnection['execute'],
  released: readonly { source: string; deliveryId: string; event: JobEvent }[],
): Promise<readonly Correction[]> {
  if (released.length === 0) return [];
  const hashes: Conflicts = new Map(released.map(({ deliveryId, event }) => [deliveryId, event.contentHash]));
  const firstBodies = await firstBodiesAhead(execute, released);
  return firstBodies.flatMap((first) => {
    const alike = findAlike(first, hashes);
    return alike === undefined ? [] : [{ first, ...alike }];
  });
}

function executeIn(trx: Transaction<Database>): DatabaseConnection['execute'] {
  return async <Row>({ text }: Statement, values: unknown[]) =>
    (await trx.executeQuery<Row>(CompiledQuery.raw(text, values))).rows;
}

/** Postgres ends this transaction when nothing more is heard of it. */
async function giveUpWhenFrozen(trx: Transaction<Database>): Promise<void> {
  await sql`select set_config('idle_in_transaction_session_timeout', ${`${FROZEN_MS}ms`}, true)`.execute(trx);
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
