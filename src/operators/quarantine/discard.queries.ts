// Discards deliveries in quarantine: they no longer wait for an operator, and cannot be released any more. The delivery's row
// and body stay for `RETENTION_DAYS`, with who discarded it, when and why.

import { sql, type Transaction } from 'kysely';
import type { Database } from '../../ledger/index.ts';
import type { Order } from '../kernel/order/order.ts';
import type { QuarantineFilter } from './contract.ts';
import { type Found, type Picked, pickWaiting } from './picked.queries.ts';

/**
 * By a function of the tables' owner, since the service's role may not write these columns. It skips those of a filter that another
 * transaction has locked.
 */
export async function discard(
  trx: Transaction<Database>,
  { note, ...order }: Order<QuarantineFilter> & { note: string },
): Promise<{ discarded: Found[] } & Omit<Picked, 'waiting'>> {
  const { waiting, ...rest } = await pickWaiting(trx, order);
  if (waiting.length === 0) return { discarded: [], ...rest };
  const { rows } = await sql<{ id: string }>`
    select discard_quarantined(
      ${waiting.map(({ id }) => id)}::uuid[], ${waiting.map(({ at }) => at)}::timestamptz[], ${order.by}, ${note}
    ) as id`.execute(trx);
  const ids = new Set(rows.map(({ id }) => id));
  return { discarded: waiting.filter(({ id }) => ids.has(id)), ...rest };
}
