// Finds and locks deliveries that an operator named one by one, to release or discard those of them that wait in quarantine.

import { type RawBuilder, sql, type Transaction } from 'kysely';
import { readDeliveriesNamed } from '../audit/deliveries.ts';
import { SAMPLE_MAX } from '../contract/orders.ts';
import type { QuarantinePreview } from '../contract/quarantine.ts';
import { type Database, timeText } from '../../ledger/index.ts';
import {
  type Found,
  NOT_WAITING,
  type NotWaiting,
  type QuarantinePlace,
  untilText,
  whyNotWaiting,
} from './quarantined.ts';

type Named = {
  readonly ids: readonly string[];
  /** Null for all. Deliveries of other sources count as not there. */
  readonly sources: readonly string[] | null;
};

export type NamedRequest = Named & {
  /** Where the call before ended. */
  readonly after: QuarantinePlace | undefined;
  readonly limit: number;
};

/** A delivery that was named, and that nothing is done to. */
export type PassedOver = {
  readonly delivery_id: string;
  readonly result: 'wrong_state' | 'not_found';
  readonly reason: string | null;
};

type Row = Found & { notWaiting: NotWaiting | undefined };

/**
 * In the order of their time. Waits for those that another transaction has locked.
 * @param fitting takes the first ones that one call can take, one at least
 * @returns `next`: where the next call goes on; undefined if none are left
 */
export async function lockNamed(
  trx: Transaction<Database>,
  { after, limit, ...named }: NamedRequest,
  fitting: (waiting: readonly Row[]) => readonly Row[] = (waiting) => waiting,
): Promise<{ waiting: readonly Found[]; others: PassedOver[]; next: QuarantinePlace | undefined }> {
  const found = await readNamed(trx, named, sql`for update`);
  const left = found.filter((row) => after === undefined || isBehind(row, after));
  const waits = left.filter(({ notWaiting }) => notWaiting === undefined);
  const waiting = fitting(waits.slice(0, limit));
  const last = waiting.length < waits.length ? waiting.at(-1) : undefined;
  const page = last === undefined ? left : left.slice(0, left.indexOf(last) + 1);
  const known = new Set(found.map(({ id }) => id));
  // Said once, by the first call.
  const missing = after === undefined ? [...new Set(named.ids)].filter((id) => !known.has(id)) : [];
  return {
    waiting,
    others: [
      ...page.flatMap(({ id, notWaiting }) => (notWaiting ? [passedOver(id, notWaiting)] : [])),
      ...missing.map((id) => passedOver(id)),
    ],
    next: last && { at: last.at, id: last.id },
  };
}

/** Changes nothing, and locks nothing. */
export async function previewNamed(trx: Transaction<Database>, named: Named): Promise<QuarantinePreview> {
  const waiting = (await readNamed(trx, named, sql``)).filter(({ notWaiting }) => notWaiting === undefined);
  const { rows } = await sql<{ to: string }>`select ${untilText()} as to`.execute(trx);
  return {
    matched: waiting.length,
    matched_exactly: true,
    to: rows[0]?.to ?? '',
    sample: await readDeliveriesNamed(trx, waiting.slice(0, SAMPLE_MAX)),
  };
}

/** By the primary key, in each partition. Locks in the order of their time, so that two orders do not deadlock. */
async function readNamed(
  trx: Transaction<Database>,
  { ids, sources }: Named,
  lock: RawBuilder<unknown>,
): Promise<Row[]> {
  const { rows } = await sql<Found & { outcome: string; released_at: unknown; discarded_at: unknown }>`
    select t.id, t.source, t.job_id, t.reason, t.body_bytes, ${timeText('t.received_at')} as at,
      t.outcome, t.released_at, t.discarded_at
    from deliveries t
    where t.id = any(${ids}::uuid[]) and (${sources}::text[] is null or t.source = any(${sources}::text[]))
    order by t.received_at, t.id ${lock}`.execute(trx);
  return rows.map((row) => ({ ...row, notWaiting: whyNotWaiting(row) }));
}

const isBehind = (row: Found, place: QuarantinePlace) =>
  row.at === place.at ? row.id > place.id : row.at > place.at;

const passedOver = (id: string, notWaiting?: NotWaiting): PassedOver => ({
  delivery_id: id,
  result: notWaiting === undefined ? 'not_found' : 'wrong_state',
  reason: notWaiting === undefined ? null : NOT_WAITING[notWaiting],
});
