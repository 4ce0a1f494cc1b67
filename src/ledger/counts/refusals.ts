// What the ledger keeps of refused deliveries besides their rows: counts for each minute and source of those without a row, and
// the busiest addresses. Both are counted in memory between flushes: a crash may lose the last seconds of them, never
// a delivery.

import { sql } from 'kysely';
import type { Logger } from 'pino';
import { type AddressCounts, busiest, countAddress } from './address-counts.ts';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';
import { createCounter } from './counter.ts';

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

/** Counts all refusals, also those with a row of their own. */
export type RefusedAddresses = {
  /** Counts in memory. `source` comes from a closed set: the configured ones, and `unknown` for all others. */
  readonly notice: (source: string, address: string) => void;
  /** Writes the last counts and stops. */
  readonly close: () => Promise<void>;
};

/** Of a source, at each flush: with six flushes a minute as many rows as refusals may have by default. */
const ADDRESSES_WRITTEN = 10;

/** More than can be configured, so it is never reached. */
const SOURCES_MAX = 10_000;

/** Rows are found by the primary key and taken in its order, or two replicas could deadlock. */
const ADD_ADDRESSES: Statement = {
  name: 'add-refusal-addresses',
  text: `
insert into refusal_addresses as r (minute, source, address, count)
select date_trunc('minute', now()), source, address, count
from unnest($1::text[], $2::text[], $3::bigint[]) as t (source, address, count)
order by source collate "C", address collate "C"
on conflict (minute, source, address) do update set count = r.count + excluded.count`,
};

export function createRefusedAddresses(options: {
  connection: DatabaseConnection;
  /** See `createCounter`. */
  firstFlushMs?: number;
  log: Logger;
}): RefusedAddresses {
  const { connection, firstFlushMs, log } = options;
  const counter = createCounter<{ source: string; addresses: AddressCounts }>({
    name: 'refused addresses',
    merge: (into, from) => {
      for (const [address, count] of from.addresses) countAddress(into.addresses, address, count);
    },
    write: async (sources) => {
      const rows = sources.flatMap(({ source, addresses }) =>
        busiest(addresses, ADDRESSES_WRITTEN).map(({ address, count }) => ({ source, address, count })),
      );
      await connection.execute(ADD_ADDRESSES, [
        rows.map(({ source }) => source),
        rows.map(({ address }) => address),
        rows.map(({ count }) => String(count)),
      ]);
    },
    rowsPerGroup: SOURCES_MAX,
    groupOf: () => '',
    firstFlushMs,
    log,
  });
  return {
    notice: (source, address) => counter.add(source, { source, addresses: new Map([[address, 1]]) }),
    close: counter.close,
  };
}
