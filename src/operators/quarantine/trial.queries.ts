// What a release would come to: the oldest deliveries are understood by the present schemas, as a release does it, and nothing is
// changed or locked. So nobody is offered a release that releases nothing.

import { setImmediate as turn } from 'node:timers/promises';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { AuthenticBody, Database } from '../../ledger/index.ts';
import type { Selection } from '../kernel/order/order.ts';
import {
  type QuarantineFilter,
  type QuarantinePreview,
  REASONS_SHOWN_MAX,
  type Trial,
  TRIED_MAX,
} from './contract.ts';
import { type Found, findWaiting, previewWaiting, withinLimits } from './picked.queries.ts';
import { understandAgain } from './release.queries.ts';

/** Deliveries between two turns of the event loop: some ms of the usual sizes. */
const SLICE_ITEMS = 100;

export async function previewRelease(
  trx: Transaction<Database>,
  selection: Selection<QuarantineFilter>,
): Promise<QuarantinePreview> {
  const preview = await previewWaiting(trx, selection);
  const { which, sources } = selection;
  // Of a filter those that the preview has counted: what came later is not released either.
  const counted = which.filter === undefined ? which : { filter: { ...which.filter, to: preview.to } };
  const found = await findWaiting(trx, { which: counted, sources }, TRIED_MAX);
  return { ...preview, trial: await tryAll(trx, withinLimits(found, Number.POSITIVE_INFINITY)) };
}

async function tryAll(db: Kysely<Database>, found: readonly Found[]): Promise<Trial> {
  const reasons = new Map<string, number>();
  for (let from = 0; from < found.length; from += SLICE_ITEMS) {
    for (const delivery of await readBodies(db, found.slice(from, from + SLICE_ITEMS))) {
      const { event, reason } = understandAgain(delivery);
      if (event !== undefined) continue;
      const why = reason ?? 'it is still not understood';
      reasons.set(why, (reasons.get(why) ?? 0) + 1);
    }
    await turn();
  }
  const cannot = [...reasons.values()].reduce((sum, count) => sum + count, 0);
  const most = [...reasons].toSorted(([, a], [, b]) => b - a).slice(0, REASONS_SHOWN_MAX);
  return {
    tried: found.length,
    releasable: found.length - cannot,
    reasons: most.map(([reason, count]) => ({ reason, count })),
  };
}

/** By the primary key, in their partitions. */
async function readBodies(
  db: Kysely<Database>,
  found: readonly Found[],
): Promise<readonly { job_id: string | null; body: AuthenticBody | null }[]> {
  const { rows } = await sql<{ job_id: string | null; body: AuthenticBody | null }>`
    select t.job_id, t.body
    from unnest(${found.map(({ id }) => id)}::uuid[], ${found.map(({ at }) => at)}::timestamptz[]) as k (id, at)
    join deliveries t on t.id = k.id and t.received_at = k.at`.execute(db);
  return rows;
}
