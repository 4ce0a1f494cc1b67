// Discards deliveries in quarantine: they no longer wait for an operator, and cannot be released any more. The delivery's row
// and body stay for `RETENTION_DAYS`, with who discarded it, when and why.

import { sql, type Transaction } from 'kysely';
import { readDeliveriesNamed } from '../audit/deliveries.ts';
import type { Delivery } from '../contract/deliveries.ts';
import type { DiscardItem } from '../contract/quarantine.ts';
import type { Database } from '../../ledger/index.ts';
import { lockNamed, type NamedRequest } from './named-deliveries.ts';
import {
  findOldest,
  type Found,
  lockOne,
  type NotWaiting,
  type QuarantinePlace,
  type QuarantineRequest,
} from './quarantined.ts';

/** Who discards, by the token's name, and why. */
export type Decided = { readonly by: string; readonly note: string };

export type Discarded = Pick<Found, 'id' | 'source' | 'reason'>;

/** @returns the delivery as it is now; undefined if there is no such delivery */
export async function discardOne(
  trx: Transaction<Database>,
  id: string,
  decided: Decided,
): Promise<Delivery | NotWaiting | undefined> {
  const locked = await lockOne(trx, id);
  if (locked === undefined || typeof locked === 'string') return locked;
  await discard(trx, [locked], decided);
  const [delivery] = await readDeliveriesNamed(trx, [locked]);
  return delivery;
}

/**
 * Discards the oldest deliveries that match, at most `limit` of them. Skips those that another transaction has locked.
 * @returns the discarded ones, oldest first; `next`: where the next call goes on, undefined if none are left
 */
export async function discardMany(
  trx: Transaction<Database>,
  request: QuarantineRequest,
  decided: Decided,
): Promise<{ discarded: Discarded[]; next: QuarantinePlace | undefined }> {
  const found = await findOldest(trx, request);
  const ids = await discard(trx, found, decided);
  const last = found.length < request.limit ? undefined : found.at(-1);
  return { discarded: found.filter(({ id }) => ids.has(id)), next: last && { at: last.at, id: last.id } };
}

/** Discards deliveries that are named. A delivery that does not wait keeps back none of the others. */
export async function discardNamed(
  trx: Transaction<Database>,
  request: NamedRequest,
  decided: Decided,
): Promise<{ discarded: Discarded[]; items: DiscardItem[]; next: QuarantinePlace | undefined }> {
  const { waiting, others, next } = await lockNamed(trx, request);
  const ids = await discard(trx, waiting, decided);
  const discarded = waiting.filter(({ id }) => ids.has(id));
  return {
    discarded,
    items: [
      ...discarded.map(({ id }): DiscardItem => ({ delivery_id: id, result: 'discarded', reason: null })),
      ...others,
    ],
    next,
  };
}

/** By a function of migration 0006, since the service's role may not write these columns. @returns the discarded ids */
async function discard(
  trx: Transaction<Database>,
  found: readonly Found[],
  { by, note }: Decided,
): Promise<ReadonlySet<string>> {
  if (found.length === 0) return new Set();
  const { rows } = await sql<{ id: string }>`
    select discard_quarantined(
      ${found.map(({ id }) => id)}::uuid[], ${found.map(({ at }) => at)}::timestamptz[], ${by}, ${note}
    ) as id`.execute(trx);
  return new Set(rows.map(({ id }) => id));
}
