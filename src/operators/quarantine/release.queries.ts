// Releases deliveries from quarantine: their bodies are understood again, by the present schemas, and their events are
// tallied and put into the outbox like any others. The delivery's row stays, with the time of its release. A delivery that
// is still not understood stays in quarantine.

import { CompiledQuery, type Transaction } from 'kysely';
import { eventId } from '../../event/index.ts';
import {
  type Database,
  type JobEvent,
  jobKey,
  RELEASE_QUARANTINED,
  releaseColumns,
  understand,
} from '../../ledger/index.ts';
import { limitIdleTime } from '../kernel/order/job-holds.queries.ts';
import type { Order } from '../kernel/order/order.ts';
import type { QuarantineFilter } from './contract.ts';
import { lock, type Picked, pickWaiting, type Quarantined, withinLimits } from './picked.queries.ts';

export type Release = {
  readonly delivery_id: string;
  readonly source: string;
  readonly job_id: string | null;
  readonly result: 'accepted' | 'duplicate' | 'conflict' | 'still_quarantined';
  readonly event_id: string | null;
  readonly reason: string | null;
};

/** Releases deliveries: those of a filter that another transaction has locked are skipped, named ones are waited for. */
export async function release(
  trx: Transaction<Database>,
  order: Order<QuarantineFilter>,
): Promise<{ releases: Release[] } & Omit<Picked, 'waiting'>> {
  const { waiting, ...rest } = await pickWaiting(trx, order, withinLimits);
  return { releases: await releaseAll(trx, await lock(trx, waiting)), ...rest };
}

/** In the order given: by the time of their delivery. */
async function releaseAll(
  trx: Transaction<Database>,
  deliveries: readonly Quarantined[],
): Promise<Release[]> {
  const understood = deliveries.map((delivery) => ({ delivery, ...understandAgain(delivery) }));
  const outcomes = await tally(
    trx,
    understood.flatMap(({ delivery: { source, id }, event }) =>
      event === undefined ? [] : [{ source, deliveryId: id, event }],
    ),
  );
  return understood.map(({ delivery, event, reason }) => ({
    delivery_id: delivery.id,
    source: delivery.source,
    job_id: delivery.job_id,
    result: outcomes.get(delivery.id) ?? 'still_quarantined',
    event_id: event === undefined ? null : eventId(delivery.source, event),
    reason,
  }));
}

type Understood = { readonly source: string; readonly deliveryId: string; readonly event: JobEvent };

/**
 * The first wave locks jobs until the end of the transaction, and intake waits for them. So all that takes long is done
 * before: bodies are read and understood.
 * @returns the outcomes by the deliveries' ids
 */
async function tally(
  trx: Transaction<Database>,
  released: readonly Understood[],
): Promise<ReadonlyMap<string, Release['result']>> {
  const outcomes = new Map<string, Release['result']>();
  if (released.length === 0) return outcomes;
  // Not before, since to understand a large body takes longer than the limit, and no job is locked by then.
  await limitIdleTime(trx);
  for (const wave of inWaves(released)) {
    const { rows } = await trx.executeQuery<{ id: string; outcome: Release['result'] }>(
      CompiledQuery.raw(RELEASE_QUARANTINED, releaseColumns(wave)),
    );
    for (const { id, outcome } of rows) outcomes.set(id, outcome);
  }
  return outcomes;
}

/**
 * A statement takes one event of a job: the first wave has the first event of each job, the second wave the second ones. So
 * the first wave locks all jobs, in sorted order, and the others lock no further ones.
 */
function inWaves(released: readonly Understood[]): Understood[][] {
  const waves: Understood[][] = [];
  const count = new Map<string, number>();
  for (const each of released) {
    const job = jobKey(each.source, each.event.jobId);
    const wave = count.get(job) ?? 0;
    count.set(job, wave + 1);
    (waves[wave] ??= []).push(each);
  }
  return waves;
}

/** What a release makes of it: an event, or the reason why it stays in quarantine. */
export function understandAgain({ body, job_id: jobId }: Pick<Quarantined, 'body' | 'job_id'>): {
  event?: JobEvent;
  reason: string | null;
} {
  if (body === null) return { reason: 'its body is no longer kept' };
  const understood = understand(body);
  if (understood.outcome !== 'event') return { reason: understood.reason };
  if (jobId !== null && understood.event.jobId !== jobId)
    return { reason: 'it is understood as of another job now' };
  return { event: understood.event, reason: null };
}
