// Makes the daily partitions of deliveries and of both tables of publications ahead of time and has those dropped that are older
// than the retention (drops.ts). Days are UTC by the database's clock. Safe to run at any time, from any number of replicas.
//
// Functions of the database do both, with the rights of the tables' owner: the service's role need not own anything.

import { sql } from 'kysely';
import type { DatabaseConnection } from '../sessions/database.ts';
import { type BeforeDrop, dropOld, type Dropped, takeTurn } from './drops.ts';

/** A week, so that upkeep may fail for days before an insert has no partition to go to. */
export const DAYS_AHEAD = 7;

/** The tables with daily partitions. */
export const PARTITIONED = ['deliveries', 'publications', 'publication_batches'] as const;

/**
 * Makes the missing partitions and drops those that are too old, each part on its own: a drop waits for readers of the table,
 * and a long read must stop neither the creation of partitions nor the other table's drops. Starts no further drop once `signal`
 * is aborted. A day of `deliveries` is dropped only when `beforeDrop` finds nothing to save: if it fails, the day is kept.
 * @returns `hasMore` if a day was too large to be saved in one run: run it again soon
 * @throws the first error, after all parts were tried.
 */
export async function keepPartitions(
  connection: DatabaseConnection,
  {
    beforeDrop,
    ...options
  }: { retentionDays: number; beforeDrop?: BeforeDrop | undefined; signal?: AbortSignal },
): Promise<{ made: string[]; dropped: string[]; hasMore?: true }> {
  const [made, ...drops] = await allInTurn<Dropped>([
    async () => ({ names: await makePartitions(connection), hasMore: false }),
    ...PARTITIONED.map((parent) => {
      const own = { ...options, beforeDrop: parent === 'deliveries' ? beforeDrop : undefined };
      return () => dropOld(connection, parent, own);
    }),
  ]);
  return {
    made: made?.names ?? [],
    dropped: drops.flatMap(({ names }) => names),
    ...(drops.some(({ hasMore }) => hasMore) && { hasMore: true as const }),
  };
}

/** Makes those of yesterday (the clock may step back over midnight), today and the days ahead. */
export function makePartitions({ db }: DatabaseConnection): Promise<string[]> {
  return db.transaction().execute(async (trx) => {
    await takeTurn(trx);
    const { rows } = await sql<{ made: string | null }>`
      select make_partition(parent, (now() at time zone 'UTC')::date + n) as made
      from unnest(${PARTITIONED}::text[]) as parent, generate_series(-1, ${DAYS_AHEAD}::int) as n`.execute(
      trx,
    );
    return rows.flatMap(({ made }) => made ?? []).toSorted();
  });
}

async function allInTurn<T>(parts: readonly (() => Promise<T>)[]): Promise<T[]> {
  const settled: PromiseSettledResult<T>[] = [];
  for (const part of parts) settled.push(...(await Promise.allSettled([part()])));
  return settled.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}
