// Who knocks: the addresses that refused deliveries came from most, by source. All refusals count, also those with a row
// of their own. Bounded in memory and in rows; a crash may lose the last seconds of it.

import type { Logger } from 'pino';
import { type AddressCounts, busiest, countAddress } from './address-counts.ts';
import type { DatabaseConnection, Statement } from './database.ts';
import { createTally } from './tally.ts';

export type RefusedAddresses = {
  /** Counts in memory. `source` comes from a closed set: the configured ones, and `unknown` for all others. */
  readonly notice: (source: string, address: string) => void;
  /** Writes what is there and stops. */
  readonly close: () => Promise<void>;
};

/** Of a source, each time that is written: with six times a minute as many rows as refusals may have by default. */
const ADDRESSES_WRITTEN = 10;

/** Beyond what can be configured: a limit that is never met. */
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
  firstFlushMs?: number;
  log: Logger;
}): RefusedAddresses {
  const { connection, firstFlushMs, log } = options;
  const tally = createTally<{ source: string; addresses: AddressCounts }>({
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
    notice: (source, address) => tally.add(source, { source, addresses: new Map([[address, 1]]) }),
    close: tally.close,
  };
}
