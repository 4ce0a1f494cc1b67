// Counts the refused deliveries that got no audit row of their own, one row a minute and source. Counts are
// kept in memory between flushes: a crash may lose the last seconds of them, never a delivery.

import { sql } from 'kysely';
import type { DatabaseConnection } from './database.ts';

export type RefusalCount = {
  readonly source: string;
  readonly unauthorized: number;
  readonly refused: number;
};

/** Adds the counts to the present minute's rows. Several replicas add to the same row. */
export async function addRefusals(
  { db }: DatabaseConnection,
  counts: readonly RefusalCount[],
): Promise<void> {
  if (counts.length === 0) return;
  // Sorted, so that two replicas take the row locks in one order.
  const rows = counts.toSorted((a, b) => (a.source < b.source ? -1 : 1));
  await db
    .insertInto('refusals')
    .values(
      rows.map(({ source, unauthorized, refused }) => ({
        minute: sql<Date>`date_trunc('minute', now())`,
        source,
        unauthorized: String(unauthorized),
        refused: String(refused),
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['minute', 'source']).doUpdateSet({
        unauthorized: sql`refusals.unauthorized + excluded.unauthorized`,
        refused: sql`refusals.refused + excluded.refused`,
      }),
    )
    .execute();
}
